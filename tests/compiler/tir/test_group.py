"""Kernels with all threads of a group: results, and what is found wrong with them by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.kernels import SCHEDULES, bound, plain, row_sums, tiled
from vdla import te
from vdla.compiler.targets.gpu.passes import to_kernels
from vdla.compiler.tir import (
    Barrier,
    Buffer,
    For,
    If,
    Load,
    PrimFunc,
    Seq,
    Store,
    Var,
    show,
)
from vdla.compiler.tir.group import run_groups
from vdla.compiler.tir.interp import InterpError, run
from vdla.compiler.tir.ir import const
from vdla.compiler.tir.parser import parse
from vdla.compiler.tir.visitor import rewrite, rewrite_expr, walk

RNG = np.random.default_rng(37)


def arrays_of(func: PrimFunc):
    return [RNG.standard_normal(p.shape).astype(p.dtype) for p in func.params]


def findings(func: PrimFunc) -> list[str]:
    return [str(found) for found in run_groups(func, arrays_of(func))]


def without(func: PrimFunc, gone) -> PrimFunc:
    """A function less one of its statements."""
    return replace(func, body=rewrite(func.body, lambda s: Seq(()) if s is gone else s))


def statements(func: PrimFunc, kind, buffer: str = ""):
    found = [s for s in walk(func.body) if isinstance(s, kind)]
    return [s for s in found if not buffer or s.buffer.name == buffer]


@pytest.mark.parametrize("name", SCHEDULES)
def test_kernels_compute_what_their_schedules_say_and_nothing_is_wrong(name):
    s = SCHEDULES[name]()
    kernels = to_kernels(s.mod)
    wanted = arrays_of(s.mod)
    outputs = [a.copy() for a in wanted]
    run(s.mod, wanted)
    assert run_groups(kernels, outputs) == ()
    np.testing.assert_allclose(outputs[-1], wanted[-1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in SCHEDULES if name != "naive"])
def test_no_barrier_can_be_left_out(name):
    kernels = to_kernels(SCHEDULES[name]().mod)
    barriers = statements(kernels, Barrier)
    assert barriers
    for barrier in barriers:
        assert any(text.startswith("race: ") for text in findings(without(kernels, barrier)))


# Planted faults -----------------------------------------------------------------------------------


def test_a_missing_barrier_before_shared_memory_is_read():
    kernels = to_kernels(tiled(16, 8, 2, 4).mod)
    _, second = statements(kernels, Barrier)
    found = findings(without(kernels, second))
    assert any(
        text.startswith('race: A_shared[0, 0]: thread (0, 0) writes it in "A_shared[')
        and ' reads it in "C_local[y, x] = C_local[y, x] + ' in text
        and text.endswith('", with no barrier between')
        for text in found
    )


def test_a_missing_barrier_before_shared_memory_is_filled_again():
    kernels = to_kernels(tiled(16, 8, 2, 4).mod)
    first, _ = statements(kernels, Barrier)
    found = findings(without(kernels, first))
    assert any('reads it in "C_local[' in x and 'writes it in "B_shared[' in x for x in found)


def test_a_missing_barrier_between_steps_of_a_tree():
    kernels = to_kernels(row_sums().mod)
    for barrier in statements(kernels, Barrier):
        (found, *_) = findings(without(kernels, barrier))
        assert found.startswith("race: out_rf")


def test_a_double_buffer_that_is_filled_where_it_is_read():
    kernels = to_kernels(tiled(16, 8, 2, 4, ahead=True).mod)

    def wrong(expr):
        if isinstance(expr, Load) and expr.buffer.name == "A_shared":
            return Load(expr.buffer, ((expr.indices[0] + 1) % 2, *expr.indices[1:]))
        return expr

    body = rewrite(kernels.body, fe=lambda e: rewrite_expr(e, wrong))
    found = findings(replace(kernels, body=body))
    assert any(text.startswith("race: A_shared[") for text in found)


def test_a_tile_that_is_loaded_short_by_one():
    kernels = to_kernels(SCHEDULES["window"]().mod)
    store = statements(kernels, Store, "Y")[0]
    shorter = rewrite(kernels.body, lambda s: If(store.indices[0] < 9, s) if s is store else s)
    found = findings(replace(kernels, body=shorter))
    assert any(
        text.startswith('uninitialized read: Y[9]: thread (7) reads it in "') for text in found
    )


def test_sums_that_begin_with_nothing():
    kernels = to_kernels(tiled(16, 8, 2, 4).mod)
    init = statements(kernels, Store, "C_local")[0]
    found = findings(without(kernels, init))
    assert found[0].startswith(
        'uninitialized read: C_local[0, 0]: thread (0, 0) reads it in "C_local['
    )


def test_a_store_by_every_thread_that_one_should_do():
    kernels = to_kernels(row_sums().mod)
    guards = [s for s in statements(kernels, If) if "tx == 0" in show(s.cond)]
    body = rewrite(kernels.body, lambda s: s.then if any(s is g for g in guards) else s)
    found = findings(replace(kernels, body=body))
    assert any(text.startswith('race: out[0]: thread (0) writes it in "out[') for text in found)


def test_a_barrier_under_a_condition_of_some_threads():
    func = parse("""
func f(A: float32[8]):
    for t in 8 thread("threadIdx.x"):
        if t < 4:
            A[t] = 0.0
        A[t] = 1.0
""")
    body = rewrite(func.body, lambda s: replace(s, then=Barrier()) if isinstance(s, If) else s)
    assert findings(replace(func, body=body)) == [  # which verify refuses
        'divergent barrier: thread (0) reaches it and thread (4) doesn\'t, parted by "if t < 4:"'
    ]


def test_groups_that_write_one_element():
    func = parse("""
func f(A: float32[8]):
    for b in 2 thread("blockIdx.x"):
        for t in 5 thread("threadIdx.x"):
            A[b * 3 + t] = 1.0
""")
    assert findings(func) == [
        'race: A[3]: group (0) writes it in "A[b * 3 + t] = 1.0" and group (1) writes it in '
        '"A[b * 3 + t] = 1.0", in one kernel'
    ]


def test_threads_that_write_one_value_to_one_element():
    func = parse("""
func f(A: float32[8]):
    for t in 4 thread("threadIdx.x"):
        A[t // 2] = 1.0
""")
    assert findings(func) == [
        'race: A[0]: thread (0) writes it in "A[t // 2] = 1.0" and thread (1) writes it in '
        '"A[t // 2] = 1.0", with no barrier between'
    ]


def test_an_index_that_leaves_its_buffer():
    t, buffer = Var("t"), Buffer("A", (8,), "float32")
    loop = For(t, 9, "thread", Store(buffer, (t,), const(1.0)), "threadIdx.x")
    with pytest.raises(InterpError, match=r"^A: dimension 0: expected an index in 0..7, found 8$"):
        findings(PrimFunc("f", (buffer,), loop))


def test_only_the_chosen_side_of_a_selection_is_loaded():
    func = parse("""
func f(A: float32[4], B: float32[8]):
    for t in 8 thread("threadIdx.x"):
        B[t] = select(t < 4, A[t], 0.0)
""")
    assert findings(func) == []


# Random tilings -----------------------------------------------------------------------------------


def compare(s) -> None:
    """Kernels of a schedule find nothing wrong, and compute what its loops do one by one."""
    wanted = [RNG.integers(-99, 99, p.shape).astype(p.dtype) for p in s.mod.params]
    arrays = [a.copy() for a in wanted]
    run(s.mod, wanted)
    assert run_groups(to_kernels(s.mod), arrays) == ()
    for found, want in zip(arrays, wanted, strict=True):
        np.testing.assert_array_equal(found, want)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([1, 3, 4, 8]),
    st.sampled_from([1, 2, 7]),
)
def test_random_tiles_of_an_elementwise_stage(high, wide, y_factor, x_factor):
    x = te.placeholder((high, wide), "float32", "X")
    c = te.compute((high, wide), lambda i, j: x[i, j] * 2.0 + 1.0, "C")
    s = te.create_schedule(c)
    tile = s[c].tile(*s[c].axis, min(y_factor, high), min(x_factor, wide))
    by, bx, ty, tx = tile
    bound(s[c], blockIdx_y=by, blockIdx_x=bx, threadIdx_y=ty, threadIdx_x=tx)
    compare(s)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.integers(64, 700))
def test_random_rows_are_reduced_in_trees(rows, size):
    x = te.placeholder((rows, size), "int32", "X")
    k = te.reduce_axis((0, size), "k")
    compare(plain(te.compute((rows,), lambda n: te.sum(x[n, k], axis=k), "out")))


@settings(max_examples=8, deadline=None)
@given(
    st.integers(1, 3),
    st.sampled_from([(4, 1), (4, 2), (8, 2), (8, 4), (6, 3)]),
    st.sampled_from([1, 2, 3, 5, 8, 24]),
    st.booleans(),
    st.booleans(),
)
def test_random_tiles_of_a_product(tiles, tile_and_part, depth, ahead, unroll):
    tile, part = tile_and_part
    size = tile * tiles
    least = -(-tile // part**2)  # so that each thread of a group loads something
    depth = min(max(depth, least), size)
    ahead = ahead and -(-size // depth) != 2  # insert_barriers refuses some double buffers of two
    compare(tiled(size, tile, part, depth, ahead=ahead, unroll=unroll, dtype="int32"))
