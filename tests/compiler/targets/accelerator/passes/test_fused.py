"""Loops that a schedule fused, in stages that instructions read: nested again, and right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vdla
from vdla import te
from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError

LANES = 4


def product(rows, columns, depth, attach, kind):
    """A product of vectors whose outer loops are fused; its operands are loaded inside them."""
    ins = vdla.intrinsics("tiny")
    a = te.placeholder((rows, depth, LANES), "int8", "A")
    w = te.placeholder((columns, depth, LANES, LANES), "int8", "W")
    ko, ki = te.reduce_axis((0, depth), "ko"), te.reduce_axis((0, LANES), "ki")

    def value(m, n, l):
        left, right = a[m, ko, ki].astype("int32"), w[n, ko, l, ki].astype("int32")
        return te.sum(left * right, axis=[ko, ki])

    c = te.compute((rows, columns, LANES), value, "C")
    s = te.create_schedule(c)
    made = s.cache_write(c, vdla.ACC)
    copies = s.cache_read(a, vdla.INP, [made]), s.cache_read(w, vdla.WGT, [made])
    fused = s[c].fuse(*c.axis[:2])
    if attach:
        s[made].compute_at(s[c], fused)
        for copy in copies:
            s[copy].compute_at(s[c], fused)
    if kind == "unrolled":
        s[c].unroll(fused)
    inner = made.axis[2]
    s[made].reorder(*made.axis[:2], made.reduce_axis[0], inner, made.reduce_axis[1])
    for stage, axis in ((made, made.axis[2]), *((t, t.axis[2]) for t in copies), (c, c.axis[2])):
        s[stage].tensorize(axis, ins)
    return s, [a, w, c]


@settings(max_examples=30)
@given(
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)),
    attach=st.booleans(), kind=st.sampled_from(["serial", "unrolled"]), seed=st.integers(0, 99),
)  # fmt: skip
def test_a_product_with_fused_loops(sizes, attach, kind, seed):
    s, args = product(*sizes, attach, kind)
    rng = np.random.default_rng(seed)
    a, w = (rng.integers(-128, 128, t.shape).astype(np.int8) for t in args[:2])
    kernel, found = vdla.build(s, args, "tiny"), np.zeros(args[2].shape, np.int32)
    kernel(a, w, found)
    np.testing.assert_array_equal(found, np.einsum("mki,nkli->mnl", a.astype(int), w.astype(int)))
    assert kernel.check() == []


def transposed(dims, order, factor):
    """X with its outer axes in another order, plus 1; all fused, and split again."""
    ins = vdla.intrinsics("tiny")
    x = te.placeholder((*dims, LANES), "int32", "X")
    shape = (*(dims[n] for n in order), LANES)

    def value(*i):
        return x[(*(i[order.index(n)] for n in range(len(dims))), i[-1])] + 1

    y = te.compute(shape, value, "Y")
    s = te.create_schedule(y)
    made = s.cache_write(y, vdla.ACC)
    copy = s.cache_read(x, vdla.ACC, [made])
    fused = s[made].fuse(*made.axis[:-1])
    if factor:
        s[made].split(fused, factor=factor)
    for stage in (y, made, copy):
        s[stage].tensorize(s[stage].axis[-1], ins)
    return s, [x, y]


@settings(max_examples=40)
@given(
    dims=st.tuples(*[st.integers(1, 4)] * 3),
    order=st.permutations(range(3)),
    seed=st.integers(0, 9),
)
def test_all_loops_of_a_stage_fused(dims, order, seed):
    """Three loops in one are taken apart by two divisors."""
    s, args = transposed(dims, order, None)
    x = np.random.default_rng(seed).integers(-99, 99, args[0].shape).astype(np.int32)
    found = np.zeros(args[1].shape, np.int32)
    vdla.build(s, args, "tiny")(x, found)
    np.testing.assert_array_equal(found, x.transpose(*order, 3) + 1)


def test_a_fused_loop_that_is_split_across_its_parts_is_refused():
    """The message says what would help."""
    s, args = transposed((2, 4, 4), (0, 2, 1), 2)
    with pytest.raises(CodegenError, match=r"expected an index linear in the loops, found .* // 4"
                                           r".*; split loops before they are fused$"):  # fmt: skip
        vdla.build(s, args, "tiny")


def test_the_loops_are_in_the_text():
    s, args = product(3, 2, 1, True, "serial")
    text = vdla.build(s, args, "tiny").passes["loops"]
    assert "%" not in text
    assert "//" not in text
