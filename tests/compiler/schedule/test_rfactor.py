"""A reduction in parts."""

from __future__ import annotations

import numpy as np
import pytest
from scheduling import RNG, body, check, matmul, rejects

from vdla import te
from vdla.compiler import tir


def test_rfactor():
    _, b, c, d, s = matmul()
    s[c].split(c.reduce_axis[0], factor=2)
    ko, ki = s[c].leaf_iter_vars[-2:]
    copy = s.cache_read(b, "near", [c])
    part = s.rfactor(c, ki)
    assert (part.name, part.shape) == ("C_rf", (2, 6, 4))
    assert [v.name for v in s[part].leaf_iter_vars] == ["k_i", "y", "x", "k_o"]
    assert s[c].leaf_iter_vars == (*c.axis, *s[c].op.reduce_axis)
    assert body(s)[2:] == [
        "alloc C_rf: int32[2, 6, 4]",
        "for i0 in 5:",
        "    for i1 in 4:",
        "        B_near[i0, i1] = B[i0, i1]",
        "for k_i in 2:",
        "    for y in 6:",
        "        for x in 4:",
        "            C_rf[k_i, y, x] = 0",
        "            for k_o in 3:",
        "                if k_o * 2 + k_i < 5:",
        "                    C_rf[k_i, y, x] = C_rf[k_i, y, x] + A[y, k_o * 2 + k_i] * "
        "B_near[k_o * 2 + k_i, x]",
        "for y_1 in 6:",
        "    for x_1 in 4:",
        "        C[y_1, x_1] = 0",
        "        for k_i_1 in 2:",
        "            C[y_1, x_1] = C[y_1, x_1] + C_rf[k_i_1, y_1, x_1]",
        "for y_2 in 6:",
        "    for x_2 in 4:",
        "        D[y_2, x_2] = max(C[y_2, x_2], 0)",
    ]
    check(s)
    rejects(
        lambda: s[c].split(ko, factor=2),
        "split C.k_o: expected a present loop, found that it was factored out into C_rf",
    )
    s[copy].compute_at(s[part], s[part].op.axis[0])
    s[part].compute_at(s[c], s[c].op.reduce_axis[0])
    s[c].compute_at(s[d], d.axis[0])
    check(s)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_rfactor_of_any_loop_at_any_place(at, which):
    _, _, c, _, s = matmul()
    y, _ = s[c].split(c.axis[0], factor=4)
    ko, ki = s[c].split(c.reduce_axis[0], factor=3)
    kio, kii = s[c].split(ki, factor=2)
    s[c].reorder(kii, y, ko)
    part = s.rfactor(c, (ko, kio, kii)[which], factor_axis=at)
    assert part.shape[at] == 2
    assert s[part].op.axis[at].name == ("k_o", "k_i_o", "k_i_i")[which]
    check(s)
    again = te.create_schedule(s.built.stages["D"].outputs)
    again.replay(s.trace)
    assert tir.show(again.mod) == tir.show(s.mod)


def test_rfactor_starts_from_the_init_once():
    a, bias = te.placeholder((3, 8), "int32", "A"), te.placeholder((3,), "int32", "bias")
    k = te.reduce_axis((0, 8), "k")
    c = te.compute((3,), lambda y: te.sum(a[y, k], axis=k, init=bias[y]), "C")
    s = te.create_schedule(c)
    part = s.rfactor(c, s[c].split(k, factor=4)[0])
    assert len(s[part].reduce_axis) == 1
    check(s)
    s.rfactor(part, s[part].reduce_axis[0])
    check(s)
    s.cache_write(c, "near")
    s[c].split(c.axis[0], factor=2)
    check(s)


def test_rfactor_of_a_tuple():
    argmax = te.comm_reducer(
        lambda x, y: (
            te.select(te.any(x[1] > y[1], te.all(te.equal(x[1], y[1]), x[0] < y[0])), x[0], y[0]),
            te.max(x[1], y[1]),
        ),
        lambda t0, t1: (te.max_value(t0), te.min_value(t1)),
    )
    a, k = te.placeholder((3, 7), "int32", "A"), te.reduce_axis((0, 7), "k")
    index, value = te.compute((3,), lambda y: argmax((k, a[y, k]), axis=k), "T")
    s = te.create_schedule([index, value])
    _, ki = s[index].split(k, factor=3)
    parts = s.rfactor(index, ki)
    assert [p.name for p in parts] == ["T_rf_v0", "T_rf_v1"]
    assert s[parts[0]] is s[parts[1]]
    x = RNG.integers(0, 3, (3, 7)).astype("int32")
    for func in (s.mod, s.lower()):
        found = tir.evaluate(func, x)
        np.testing.assert_array_equal(found[0], x.argmax(axis=1))
        np.testing.assert_array_equal(found[1], x.max(axis=1))


def test_rfactor_errors():
    _, _, c, d, s = matmul()
    y, _ = c.axis
    (k,) = c.reduce_axis
    rejects(lambda: s.rfactor(c, y), "rfactor C: expected a loop of the reduction (k), found y")
    rejects(lambda: s.rfactor(c, k, 3), "rfactor C: expected factor_axis in 0..2, found 3")
    rejects(lambda: s.rfactor(d, d.axis[0]), "rfactor D: expected a reduction, found none")
    s[c].compute_at(s[d], d.axis[0])
    rejects(
        lambda: s.rfactor(c, k),
        "rfactor C: expected a stage of its own, found it attached; call it before compute_at",
    )
    a = te.placeholder((4, 4), "int32", "A")
    b = te.compute((4, 4), lambda y, x: a[y, x] + 1, "B")
    r = te.reduce_axis((0, 4), "r")
    c = te.compute((4,), lambda y: te.sum(b[y, r], axis=r), "C")
    s = te.create_schedule(c)
    s[b].compute_at(s[c], c.axis[0])
    rejects(
        lambda: s.rfactor(c, r),
        "rfactor C: expected loops of its own alone, found B attached to them; call it before "
        "compute_at",
    )
