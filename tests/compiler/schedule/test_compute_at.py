"""Each primitive: what it makes, and what it says when it can't be applied."""

from __future__ import annotations

import numpy as np
import pytest

from vdla import te
from vdla.compiler import tir
from vdla.compiler.schedule import ScheduleError

RNG = np.random.default_rng(0)


def chain(n=10, m=8):
    """A -> B -> C, elementwise."""
    a = te.placeholder((n, m), "int32", "A")
    b = te.compute((n, m), lambda y, x: a[y, x] + 1, "B")
    c = te.compute((n, m), lambda y, x: b[y, x] * 2, "C")
    return a, b, c, te.create_schedule(c)


def matmul(n=6, m=4, k=5):
    a, b = te.placeholder((n, k), "int32", "A"), te.placeholder((k, m), "int32", "B")
    r = te.reduce_axis((0, k), "k")
    c = te.compute((n, m), lambda y, x: te.sum(a[y, r] * b[r, x], axis=r), "C")
    d = te.compute((n, m), lambda y, x: te.max(c[y, x], 0), "D")
    return a, b, c, d, te.create_schedule(d)


def check(s):
    """The schedule computes what its tensors say, before and after lowering."""
    func = s.built.func
    arrays = [RNG.integers(-9, 9, p.shape).astype(p.dtype) for p in func.params[:-1]]
    (expected,) = tir.evaluate(func, *arrays)
    for mod in (s.mod, s.lower()):
        np.testing.assert_array_equal(tir.evaluate(mod, *arrays)[0], expected)


def body(s):
    """The lowered function's lines below its head."""
    return [line[4:] for line in tir.show(s.lower()).splitlines()[1:]]


def rejects(action, text):
    with pytest.raises(ScheduleError) as error:
        action()
    assert str(error.value) == text


# --- loops --------------------------------------------------------------------------------------


def test_split():
    _, b, c, s = chain()
    s[b].compute_inline()
    yo, yi = s[c].split(c.axis[0], factor=4)
    assert [v.name for v in s[c].leaf_iter_vars] == ["y_o", "y_i", "x"]
    assert (s[c].extent(yo), s[c].extent(yi)) == (3, 4)
    assert body(s) == [
        "for y_o in 3:",
        "    for y_i in 4:",
        "        for x in 8:",
        "            if y_o * 4 + y_i < 10:",
        "                C[y_o * 4 + y_i, x] = (A[y_o * 4 + y_i, x] + 1) * 2",
    ]
    check(s)


def test_split_by_parts():
    _, _, c, s = chain()
    yo, yi = s[c].split(c.axis[0], nparts=5)
    assert (s[c].extent(yo), s[c].extent(yi)) == (5, 2)
    check(s)


def test_split_errors():
    _, b, c, s = chain()
    y, x = c.axis
    rejects(lambda: s[c].split(y), "split C.y: expected one of factor and nparts")
    rejects(
        lambda: s[c].split(y, factor=11),
        "split C.y: expected factor in 1..10 (the loop's extent), found 11",
    )
    rejects(
        lambda: s[c].split(x, nparts=0),
        "split C.x: expected nparts in 1..8 (the loop's extent), found 0",
    )
    rejects(
        lambda: s[c].split(b.axis[0], factor=2),
        "split C: expected one of its loops (y, x), found B.y",
    )
    s[c].split(y, factor=2)
    rejects(
        lambda: s[c].split(y, factor=2),
        "split C.y: expected a present loop, found that it was split into C.y_o, C.y_i",
    )


def test_tile():
    _, _, c, s = chain()
    loops = s[c].tile(*c.axis, 5, 4)
    assert s[c].leaf_iter_vars == loops
    assert [v.name for v in loops] == ["y_o", "x_o", "y_i", "x_i"]
    check(s)


def test_fuse():
    _, b, c, s = chain()
    s[b].compute_inline()
    both = s[c].fuse(*c.axis)
    assert s[c].leaf_iter_vars == (both,)
    assert body(s) == [
        "for y_x in 80:",
        "    C[y_x // 8, y_x % 8] = (A[y_x // 8, y_x % 8] + 1) * 2",
    ]
    check(s)


def test_fuse_errors():
    _, _, c, s = chain()
    y, x = c.axis
    rejects(
        lambda: s[c].fuse(x, y),
        "fuse C.x: expected y (0..10) directly inside x (0..8), found Block",
    )
    rejects(lambda: s[c].fuse(), "fuse C: expected at least one loop, found none")
    _, _, c, _, s = matmul()
    rejects(
        lambda: s[c].fuse(c.axis[1], c.reduce_axis[0]),
        "fuse C.x: expected loops of one kind, found x (0..4, spatial) and k (0..5, reduce) in C",
    )


def test_reorder():
    _, _, c, _, s = matmul()
    y, x = c.axis
    (k,) = c.reduce_axis
    s[c].reorder(k, x)
    assert s[c].leaf_iter_vars == (y, k, x)
    s[c].reorder(x, k, y)
    assert s[c].leaf_iter_vars == (x, k, y)
    check(s)


def test_reorder_errors():
    _, b, c, s = chain()
    y, x = c.axis
    rejects(lambda: s[c].reorder(y, y), "reorder C: a loop is named twice")
    s[b].compute_at(s[c], y)
    rejects(
        lambda: s[c].reorder(x, y),
        "reorder C: expected a perfect nest from y (0..10) to x (0..8), found Alloc in between "
        "(a stage is attached there: reorder before compute_at)",
    )


# --- annotations --------------------------------------------------------------------------------


def test_loop_kinds():
    _, b, c, s = chain()
    s[b].compute_inline()
    y, x = c.axis
    s[c].bind(y, te.thread_axis("vthread"))
    s[c].vectorize(x)
    s[c].pragma(x, "dma", 2)
    s[c].pragma(x, "dma", "whole")
    assert body(s)[:2] == [
        'for y in 10 vthread("vthread"):',
        '    for x in 8 vectorized @dma="whole":',
    ]
    s[c].parallel(y)
    s[c].unroll(x)
    assert body(s)[:2] == ["for y in 10 parallel:", '    for x in 8 unrolled @dma="whole":']
    check(s)


@pytest.mark.parametrize("primitive", ["vectorize", "parallel", "bind"])
def test_reductions_are_not_independent(primitive):
    _, _, c, _, s = matmul()
    (k,) = c.reduce_axis
    more = (te.thread_axis("vthread"),) if primitive == "bind" else ()
    rejects(
        lambda: getattr(s[c], primitive)(k, *more),
        f"{primitive} C.k: expected a loop over spatial axes, found that C reduces over it "
        f"(v_k = k, 0..5)",
    )
    s[c].unroll(k)


# --- where things are computed ------------------------------------------------------------------


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


# --- memories -----------------------------------------------------------------------------------


def test_cache_read():
    a, b, c, s = chain()
    copy = s.cache_read(a, "vdla.inp", [b])
    assert copy.name == "A_inp"
    s[b].compute_inline()
    yo, _ = s[c].split(c.axis[0], factor=5)
    s[copy].compute_at(s[c], yo)
    assert body(s)[:5] == [
        "for y_o in 2:",
        '    alloc A_inp: int32[5, 8] @"vdla.inp"',
        "    for i0 in 5:",
        "        for i1 in 8:",
        "            A_inp[i0, i1] = A[y_o * 5 + i0, i1]",
    ]
    check(s)


def test_cache_read_of_some_readers():
    a = te.placeholder((4,), "int32", "A")
    b = te.compute((4,), lambda i: a[i] + 1, "B")
    c = te.compute((4,), lambda i: a[i] * b[i], "C")
    s = te.create_schedule(c)
    s.cache_read(a, "near", [c])
    assert "    B[i] = A[i] + 1" in body(s)[3:] or any("B[i] = A[i]" in x for x in body(s))
    assert any("A_near[i_1]" in line for line in body(s))
    check(s)
    rejects(
        lambda: s.cache_read(b, "near", [b]),
        "cache_read B: expected readers of it, found B, which doesn't read it",
    )


def test_cache_write():
    a, _, c, d, s = matmul()
    local = s.cache_write(d, "vdla.acc")
    s[c].compute_inline() if not c.reduce_axis else None
    assert [t.scope for t in (local, a)] == ["vdla.acc", "global"]
    assert body(s)[-3:] == [
        "for y_2 in 6:",
        "    for x_2 in 4:",
        "        D[y_2, x_2] = D_acc[y_2, x_2]",
    ]
    s[local].compute_at(s[d], d.axis[0])
    check(s)


def test_cache_write_of_a_reduction():
    _, _, c, d, s = matmul()
    local = s.cache_write(c, "vdla.acc")
    ko, _ = s[local].split(local.reduce_axis[0], factor=2)
    s[local].reorder(ko, *local.axis)
    s[c].compute_inline()
    s[local].compute_at(s[d], d.axis[0])
    check(s)


def test_cache_write_errors():
    _, b, c, s = chain()
    s[c].split(c.axis[0], factor=2)
    rejects(
        lambda: s.cache_write(c, "near"),
        "cache_write C: expected the loops te made (y, x), found y_o, y_i, x; call it before "
        "scheduling",
    )
    s[b].compute_at(s[c], c.axis[1])
    rejects(
        lambda: s.cache_write(b, "near"),
        "cache_write B: expected a stage of its own, found it attached; call it before compute_at",
    )


def test_set_scope():
    _, b, c, s = chain()
    s[b].set_scope("vdla.acc")
    assert body(s)[0] == 'alloc B: int32[10, 8] @"vdla.acc"'
    check(s)
    rejects(
        lambda: s[c].set_scope("vdla.acc"),
        "set_scope C: expected an intermediate stage, found the output C, which stays in scope "
        "global",
    )


# --- back to the root, and in parts --------------------------------------------------------------


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


# --- how buffers lie, and what is asked for early ------------------------------------------------


def test_storage_align():
    a = te.placeholder((4, 3, 5), "int32", "A")
    b = te.compute((4, 3, 5), lambda z, y, x: a[z, y, x] + 1, "B")
    c = te.compute((4, 3, 5), lambda z, y, x: b[3 - z, 2 - y, x] * 2, "C")
    s = te.create_schedule(c)
    s[b].storage_align(b.axis[1], 8, 1)
    s[b].storage_align(b.axis[0], 16, 3)
    assert body(s)[0] == "alloc B: int32[4, 3, 5] align(1, 8, 1) align(0, 16, 3)"
    buffer = s.buffers["B"]
    assert (buffer.strides, buffer.span) == ((35, 9, 1), 140)
    assert (c.strides, c.span) == ((15, 5, 1), 60)
    check(s)
    s[b].storage_align(b.axis[0], 32, 0)
    assert s.buffers["B"].strides == (32, 9, 1)
    s[b].compute_at(s[c], c.axis[0])
    assert s.buffers["B"].strides == (32, 9, 1)
    check(s)


def test_storage_align_errors():
    _, b, c, s = chain()
    rejects(
        lambda: s[c].storage_align(c.axis[0], 8, 0),
        "storage_align C: expected an intermediate stage, found the output C, which lies as "
        "numpy has it",
    )
    rejects(
        lambda: s[b].storage_align(c.axis[0], 8, 0),
        "storage_align B: expected one of its axes (y, x), found y",
    )
    rejects(
        lambda: s[b].storage_align(b.axis[0], 8, 8),
        "storage_align B: expected factor >= 1 and offset in 0..factor-1, found 8 and 8",
    )
    s[b].storage_align(b.axis[0], 8, 0)
    rejects(
        lambda: s[b].set_scope("vdla.acc"),
        "set_scope B: expected scope global of an aligned buffer, found vdla.acc, where "
        "entries lie densely",
    )
    _, b, _, s = chain()
    s[b].set_scope("vdla.acc")
    rejects(
        lambda: s[b].storage_align(b.axis[0], 8, 0),
        "storage_align B: expected a buffer in scope global, found it in vdla.acc, where "
        "entries lie densely",
    )


def test_prefetch():
    a, b, c, s = chain()
    s[b].compute_inline()
    yo, _ = s[c].split(c.axis[0], factor=4)
    s[c].prefetch(a, yo, 2)
    assert body(s)[:3] == [
        "for y_o in 3:",
        "    prefetch A[y_o * 4 + 8 +: 4, 0 +: 8]",
        "    for y_i in 4:",
    ]
    assert s.trace[-1].to_json() == {
        "primitive": "prefetch",
        "stage": "C",
        "args": {"tensor": "A", "axis": "C.y_o", "offset": 2},
    }
    check(s)


def test_prefetch_errors():
    a, b, c, s = chain()
    y, _ = c.axis
    rejects(
        lambda: s[c].prefetch(b, y, 0),
        "prefetch C.y: expected an offset of at least 1 step, found 0",
    )
    rejects(
        lambda: s[c].prefetch(a, y),
        "prefetch C.y: expected a loop that reads A, found none that does inside",
    )
    rejects(lambda: s[c].prefetch("Z", y), "prefetch C.y: expected one of A, B, C, found Z")
    s[b].compute_at(s[c], y)
    rejects(
        lambda: s[c].prefetch(b, y),
        "prefetch C.y: expected a tensor made before the loop, found B made in each step",
    )
    s[b].set_scope("vdla.acc")
    rejects(
        lambda: s[c].prefetch(b, y),
        "prefetch C.y: expected a tensor in scope global, found B in vdla.acc; double_buffer "
        "fills on-chip memory ahead of time",
    )


# --- traces -------------------------------------------------------------------------------------


def test_the_trace_names_what_was_done():
    a, b, c, s = chain()
    copy = s.cache_read(a, "near", [b])
    yo, yi = s[c].split(c.axis[0], factor=4)
    s[c].reorder(yi, yo)
    s[b].compute_at(s[c], yi)
    s[copy].set_scope("far")
    assert [step.to_json() for step in s.trace] == [
        {"primitive": "cache_read", "stage": "A", "args": {"scope": "near", "readers": ["B"]}},
        {"primitive": "split", "stage": "C", "args": {"axis": "C.y", "factor": 4}},
        {"primitive": "reorder", "stage": "C", "args": {"axes": ["C.y_i", "C.y_o"]}},
        {"primitive": "compute_at", "stage": "B", "args": {"parent": "C", "axis": "C.y_i"}},
        {"primitive": "set_scope", "stage": "A_near", "args": {"scope": "far"}},
    ]


def test_replay_errors():
    from vdla.compiler.schedule import Step

    _, _, _, s = chain()
    rejects(
        lambda: s.replay([Step("melt", "C")]),
        "replay: expected a primitive of split, fuse, reorder, compute_at, compute_root, "
        "compute_inline, set_scope, double_buffer, storage_align, unroll, vectorize, parallel, "
        "bind, pragma, prefetch, tensorize, found 'melt'",
    )
    rejects(
        lambda: s.replay([Step("split", "C", {"axis": "C.z", "factor": 2})]),
        "loop: expected one of B.y, B.x, C.y, C.x, found C.z",
    )
    rejects(
        lambda: s.replay([Step("tensorize", "C", {"axis": "C.x", "intrin": "gemm"})]),
        "replay: expected an intrinsic of , found 'gemm'",
    )
