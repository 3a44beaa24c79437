"""Where a stage is computed: inside its readers, inline, or by itself again."""

from __future__ import annotations

import pytest
from scheduling import body, chain, check, matmul, rejects

from vdla import te
from vdla.compiler import tir


def test_compute_inline():
    _, b, _, s = chain()
    s[b].compute_inline()
    assert body(s) == ["for y in 10:", "    for x in 8:", "        C[y, x] = (A[y, x] + 1) * 2"]
    check(s)
    rejects(lambda: s[b], "stage: expected one of C, found B")


def test_compute_inline_errors():
    _, _, c, d, s = matmul()
    rejects(
        s[c].compute_inline, "compute_inline C: expected an elementwise stage, found a reduction"
    )
    rejects(
        s[d].compute_inline, "compute_inline D: expected an intermediate stage, found an output"
    )
    _, b, c, s = chain()
    s[b].split(b.axis[0], factor=3)
    rejects(
        s[b].compute_inline,
        "compute_inline B: expected unguarded loops, found a predicate; inline before splitting",
    )
    _, b, c, s = chain()
    s[b].compute_at(s[c], c.axis[0])
    rejects(s[b].compute_inline, "compute_inline B: expected a stage of its own, found it attached")


def test_compute_at():
    _, b, c, s = chain()
    yo, _ = s[c].split(c.axis[0], factor=4)
    s[b].compute_at(s[c], yo)
    assert body(s) == [
        "for y_o in 3:",
        "    alloc B: int32[4, 8]",
        "    for y in 4:",
        "        for x in 8:",
        "            if y_o * 4 + y < 10:",
        "                B[y, x] = A[y_o * 4 + y, x] + 1",
        "    for y_i in 4:",
        "        for x_1 in 8:",
        "            if y_o * 4 + y_i < 10:",
        "                C[y_o * 4 + y_i, x_1] = B[y_i, x_1] * 2",
    ]
    check(s)


def test_compute_at_takes_the_union_of_the_reads():
    a = te.placeholder((20,), "int32", "A")
    b = te.compute((20,), lambda i: a[i] + 1, "B")
    c = te.compute((8,), lambda i: b[2 * i] + b[2 * i + 5] - b[i + i + 2], "C")
    s = te.create_schedule(c)
    io, _ = s[c].split(c.axis[0], factor=4)
    s[b].compute_at(s[c], io)
    assert "    alloc B: int32[12]" in body(s)  # 2 * 3 + 5 + 1
    check(s)


def test_compute_at_takes_a_whole_dimension_where_it_cannot_tell():
    a = te.placeholder((20,), "int32", "A")
    b = te.compute((20,), lambda i: a[i] + 1, "B")
    c = te.compute((4, 20), lambda i, j: b[i * j % 20] + b[j], "C")
    s = te.create_schedule(c)
    s[b].compute_at(s[c], c.axis[0])
    assert "    alloc B: int32[20]" in body(s)
    check(s)


@pytest.mark.parametrize(("stride", "dilation", "extent"), [(1, 1, 6), (2, 1, 9), (1, 2, 8)])
def test_compute_at_of_windows(stride, dilation, extent):
    a = te.placeholder((40,), "int32", "A")
    b = te.compute((40,), lambda i: a[i] + 1, "B")
    k = te.reduce_axis((0, 3), "k")
    c = te.compute((16,), lambda i: te.sum(b[i * stride + k * dilation], axis=k), "C")
    s = te.create_schedule(c)
    io, _ = s[c].split(c.axis[0], factor=4)
    s[b].compute_at(s[c], io)
    assert f"    alloc B: int32[{extent}]" in body(s)
    check(s)


def test_compute_at_carries_attached_stages():
    a = te.placeholder((16,), "int32", "A")
    b = te.compute((16,), lambda i: a[i] + 1, "B")
    c = te.compute((16,), lambda i: b[i] * 2, "C")
    d = te.compute((16,), lambda i: c[i] - 3, "D")
    s = te.create_schedule(d)
    s[b].compute_at(s[c], c.axis[0])
    io, _ = s[d].split(d.axis[0], factor=5)
    s[c].compute_at(s[d], io)
    assert [line.strip() for line in body(s) if "alloc" in line] == [
        "alloc C: int32[5]",
        "alloc B: int32[1]",
    ]
    check(s)


def test_compute_at_under_a_virtual_thread_allocates_per_thread():
    _, b, c, s = chain()
    s[c].bind(c.axis[1], te.thread_axis("vthread"))
    s[c].reorder(c.axis[1], c.axis[0])
    s[b].compute_at(s[c], c.axis[1])
    assert body(s)[:2] == ['for x in 8 vthread("vthread"):', "    alloc B: int32[10, 1]"]
    check(s)


def test_compute_at_errors():
    a = te.placeholder((8, 8), "int32", "A")
    b = te.compute((8, 8), lambda y, x: a[y, x] + 1, "B")
    c = te.compute((8, 8), lambda y, x: b[y, x] * 2, "C")
    d = te.compute((8, 8), lambda y, x: b[y, x] + c[y, x], "D")
    s = te.create_schedule(d)
    rejects(
        lambda: s[b].compute_at(s[c], c.axis[0]),
        "compute_at B at C's loop y (0..8): expected all its readers inside that loop, found D "
        "outside",
    )
    rejects(
        lambda: s[d].compute_at(s[c], c.axis[0]),
        "compute_at D: expected an intermediate stage, found an output",
    )
    rejects(
        lambda: s[c].compute_at(s[c], c.axis[0]),
        "compute_at C at C's loop y (0..8): expected a loop of a reader, found one of its own",
    )
    rejects(
        lambda: s[c].compute_at(s[d], c.axis[0]),
        "compute_at C at D: expected one of its loops (y, x), found C.y",
    )
    s[c].split(c.axis[0], factor=4)
    rejects(
        lambda: s[c].compute_at(s[d], d.axis[0]),
        "compute_at C: expected its spatial loops as te made them (one of 0..8), found y_o * 4 "
        "+ y_i; split or fuse the stage after compute_at",
    )


def test_a_stage_is_attached_once():
    _, b, c, s = chain()
    s[b].compute_at(s[c], c.axis[0])
    rejects(
        lambda: s[b].compute_at(s[c], c.axis[1]),
        "compute_at B: expected a stage of its own, found it already attached",
    )


def test_compute_root_undoes_compute_at():
    _, b, c, s = chain()
    before = tir.show(s.mod)
    yo, _ = s[c].split(c.axis[0], factor=4)
    split = tir.show(s.mod)
    s[b].compute_at(s[c], yo)
    s[b].compute_root()
    assert tir.show(s.mod) == split != before
    check(s)
    s[b].compute_root()
    assert tir.show(s.mod) == split
    s[b].compute_at(s[c], yo)
    check(s)


def test_compute_root_after_more_was_done():
    a = te.placeholder((40,), "int32", "A")
    b = te.compute((40,), lambda i: a[i] + 1, "B")
    k = te.reduce_axis((0, 3), "k")
    c = te.compute((16,), lambda i: te.sum(b[i * 2 + k], axis=k), "C")
    s = te.create_schedule(c)
    io, ii = s[c].split(c.axis[0], factor=5)
    s[b].compute_at(s[c], io)
    s[b].split(b.axis[0], factor=3)
    s[c].split(io, factor=2)
    s[c].unroll(ii)
    s[b].double_buffer()
    s[b].compute_root()
    assert s[b].leaf_iter_vars == b.axis
    assert body(s)[:3] == ["alloc B: int32[40] x2", "for i in 40:", "    B[i] = A[i] + 1"]
    check(s)
    rejects(
        lambda: s[b].split(next(v for n, v in s.axes.items() if n == "B.i_o"), factor=2),
        "split B.i_o: expected a present loop, found that it was made whole by compute_root",
    )


def test_compute_root_of_nested_stages():
    a = te.placeholder((16,), "int32", "A")
    b = te.compute((16,), lambda i: a[i] + 1, "B")
    c = te.compute((16,), lambda i: b[i] * 2, "C")
    d = te.compute((16,), lambda i: c[i] - 3, "D")
    s = te.create_schedule(d)
    io, _ = s[d].split(d.axis[0], factor=5)
    s[c].compute_at(s[d], io)
    s[b].compute_at(s[d], io)
    rejects(
        s[c].compute_root,
        "compute_root C: expected to read what is computed outside of loops, found B inside; "
        "call compute_root on it first",
    )
    s[b].compute_root()
    s[c].compute_root()
    check(s)
    s[b].compute_at(s[c], c.axis[0])
    s[c].compute_at(s[d], io)
    rejects(
        s[c].compute_root,
        "compute_root C: expected a stage with none attached to it, found B; call compute_root "
        "on it first",
    )


def test_compute_root_of_an_output_changes_nothing():
    _, _, c, s = chain()
    s[c].split(c.axis[0], factor=4)
    before = tir.show(s.mod)
    s[c].compute_root()
    assert tir.show(s.mod) == before
