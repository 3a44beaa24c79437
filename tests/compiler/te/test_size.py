"""Sizes that are given when a schedule is built."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vdla
from vdla import te
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.te.size import STAND_IN, Size, at
from vdla.compiler.te.tensor import TEError
from vdla.support.errors import UserError


def add_one(split=None):
    """C = A + 1 over [n, 4], its rows perhaps split."""
    n = te.var("n")
    a = te.placeholder((n, 4), "int32", "A")
    c = te.compute((n, 4), lambda i, l: a[i, l] + 1, "C")
    s = te.create_schedule(c.op)
    if split:
        s[c].split(c.op.axis[0], factor=split)
    return s, a, c


@pytest.mark.parametrize("rows", [1, 3, 8, 37])
def test_rows_on_the_processor(rows):
    s, a, c = add_one()
    kernel = vdla.build(s, [a, c], "cpu", sizes={"n": rows})
    x, y = np.arange(4 * rows, dtype=np.int32).reshape(rows, 4), np.zeros((rows, 4), np.int32)
    kernel(x, y)
    np.testing.assert_array_equal(y, x + 1)


def scaled(ins):
    """C = 2 A + 3 on the accelerator, in tiles of four rows, A and C on chip."""
    n = te.var("n")
    a = te.placeholder((n, 4), "int32", "A")
    b = te.compute((n, 4), lambda i, l: a[i, l] + a[i, l], "B")
    c = te.compute((n, 4), lambda i, l: b[i, l] + 3, "C")
    s = te.create_schedule(c)
    out = s.cache_write(c, "vdla.acc")
    loaded = s.cache_read(a, "vdla.acc", [b])
    s[b].set_scope("vdla.acc")
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    for stage in (out, b, loaded):
        s[stage].compute_at(s[c], outer)
    for stage in (loaded, b, out, c):
        s[stage].tensorize(s[stage].op.axis[1], ins)
    return s, a, c


@pytest.mark.parametrize("rows", [4, 12, 40])
@pytest.mark.parametrize("target", ["tiny", "cpu"])
def test_tiles_on_the_accelerator(rows, target):
    s, a, c = scaled(vdla.intrinsics("tiny"))
    kernel = vdla.build(s, [a, c], target, sizes={"n": rows})
    assert kernel.check() == []
    x = np.random.default_rng(0).integers(-1000, 1000, (rows, 4), dtype=np.int32)
    y = np.zeros_like(x)
    kernel(x, y)
    np.testing.assert_array_equal(y, 2 * x + 3)


def test_one_schedule_is_built_for_several_sizes():
    s, *_ = add_one(split=4)
    texts = {vdla.build(s, ["A", "C"], "cpu", sizes={"n": n}).passes["loops"] for n in (8, 12)}
    assert len(texts) == 2
    assert all(str(STAND_IN) not in text for text in texts)


@settings(max_examples=20, deadline=None)
@given(m=st.integers(1, 9), k=st.integers(1, 9), n=st.integers(1, 9), factor=st.integers(1, 4))
def test_products_of_matrices(m, k, n, factor):
    """Reductions, sizes of sizes and sizes in expressions."""
    rows, inner, columns = te.var("m"), te.var("k"), te.var("n")
    a = te.placeholder((rows, inner), "int32", "A")
    b = te.placeholder((inner, columns), "int32", "B")
    r = te.reduce_axis((0, inner), "r")
    product = te.compute((rows, columns), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "P")
    # Padded by a row and a column on each side, the size of the inner dimension added.
    c = te.compute(
        (rows + 2, 2 + columns),
        lambda i, j: te.select(
            te.all(i >= 1, i <= rows, j >= 1, j < columns + 1),
            product[te.minimum(te.maximum(i - 1, 0), rows - 1),
                    te.minimum(te.maximum(j - 1, 0), columns - 1)] + inner,
            -1,
        ),
        "C",
    )  # fmt: skip
    s = te.create_schedule(c)
    s[product].split(product.op.axis[0], nparts=1)
    if factor <= n + 2:
        s[c].vectorize(s[c].split(c.op.axis[1], factor=factor)[1])
    x, y = np.arange(m * k, dtype=np.int32).reshape(m, k), np.ones((k, n), np.int32)
    z = np.zeros((m + 2, n + 2), np.int32)
    vdla.build(s, [a, b, c], "cpu", sizes={"m": m, "k": k, "n": n})(x, y, z)
    np.testing.assert_array_equal(z, np.pad(x @ y + k, 1, constant_values=-1))


def test_a_size_in_a_primitive():
    """Half the rows, whatever they are."""
    s, a, c = add_one()
    n = a.shape[0]
    s[c].split(c.op.axis[0], factor=n // 2)
    text = vdla.build(s, [a, c], "cpu", sizes={"n": 10}).passes["loops"]
    assert "in 2" in text
    assert "in 5" in text


@given(st.integers(1, 99), st.integers(1, 99))
def test_arithmetic_follows_a_size(n, k):
    size = te.var("n")
    made = (k + size * 3 - 1) // k % (size + k) - (k - size)
    assert isinstance(made, Size)
    assert at(made, {"n": n}) == (k + n * 3 - 1) // k % (n + k) - (k - n)
    assert made == (k + STAND_IN * 3 - 1) // k % (STAND_IN + k) - (k - STAND_IN)


def test_a_size_as_a_float_in_an_expression():
    """A mean over n: the divisor is the size that is given."""
    n = te.var("n")
    a, r = te.placeholder((n,), "float32", "A"), te.reduce_axis((0, n), "r")
    total = te.compute((1,), lambda i: te.sum(a[r], axis=r), "total")
    mean = te.compute((1,), lambda i: total[i] / te.const(n, "int32").astype("float32"), "mean")
    kernel = vdla.build(te.create_schedule(mean), [a, mean], "cpu", sizes={"n": 5})
    y = np.zeros(1, np.float32)
    kernel(np.arange(5, dtype=np.float32), y)
    assert y[0] == 2
    with pytest.raises(
        UserError, match=r"found it as a float, .*te\.const\(n, \"int32\"\)\.astype"
    ):
        te.compute((1,), lambda i: total[i] / n, "mean")


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (None, "sizes: expected those of te.var, n, found none"),
        ({"m": 3}, "sizes: expected those of te.var, n, found m"),
        ({"n": 3, "m": 3}, "sizes: expected those of te.var, n, found m, n"),
        ({"n": 0}, "sizes: expected n to be a positive int, found 0"),
        ({"n": 2.5}, "sizes: expected n to be a positive int, found 2.5"),
        ({"n": "x"}, "sizes: expected n to be a positive int, found 'x'"),
    ],
)
def test_sizes_that_do_not_fit(sizes, message):
    s, a, c = add_one()
    with pytest.raises(ScheduleError) as refused:
        vdla.build(s, [a, c], "cpu", sizes=sizes)
    assert str(refused.value) == message


def test_a_primitive_that_does_not_apply_to_a_size():
    s, a, c = add_one(split=8)
    with pytest.raises(ScheduleError, match=r"^sizes n = 3: split C\.i: expected factor in 1\.\.3"):
        vdla.build(s, [a, c], "cpu", sizes={"n": 3})


def test_sizes_of_a_schedule_without():
    a = te.placeholder((8, 4), "int32", "A")
    s = te.create_schedule(te.compute((8, 4), lambda i, l: a[i, l], "C"))
    with pytest.raises(ScheduleError, match=r"expected those of te\.var, none, found n"):
        vdla.build(s, target="cpu", sizes={"n": 8})
    with pytest.raises(UserError, match=r"expected sizes of a schedule with te\.var, found a"):
        vdla.build(s.mod, target="cpu", sizes={"n": 8})


def test_names():
    with pytest.raises(TEError, match="var: expected a name, found '1n'"):
        te.var("1n")


def test_scans_have_numbers():
    n = te.var("n")
    state = te.placeholder((8, n), "int32", "state")
    a = te.placeholder((8, n), "int32", "A")
    init = te.compute((1, n), lambda _, i: a[0, i], "init")
    step = te.compute((8, n), lambda t, i: state[t - 1, i] + a[t, i], "step")
    out = te.scan(init, step, state, inputs=[a])
    with pytest.raises(TEError, match=r"expected tensors by te\.compute where sizes are given"):
        vdla.build(te.create_schedule(out), target="cpu", sizes={"n": 8})
