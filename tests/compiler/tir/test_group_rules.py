"""The rules by which threads run side by side, each by a small kernel as text."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.kernel_texts import AHEAD, MATMUL, TREE, drawn, findings, race
from vdla.compiler.tir import verify
from vdla.compiler.tir.group import run_groups
from vdla.compiler.tir.interp import run
from vdla.compiler.tir.parser import parse


@pytest.mark.parametrize("checks", [True, False])
def test_a_product_in_tiles(checks):
    func = verify(parse(MATMUL))
    a, b, c = drawn(func)
    assert run_groups(func, [a, b, c], checks) == ()
    np.testing.assert_array_equal(c, a @ b)
    found = np.zeros_like(c)
    run(func, [a, b, found])
    np.testing.assert_array_equal(found, c)


def test_a_buffer_that_is_filled_ahead_under_a_condition():
    func = verify(parse(AHEAD))
    a, b = drawn(func)
    assert run_groups(func, [a, b]) == ()
    np.testing.assert_array_equal(b, a[:, ::-1])


def test_a_tree():
    func = verify(parse(TREE))
    a, b = drawn(func)
    assert run_groups(func, [a, b]) == ()
    assert b[0] == a.sum()


def test_several_nests_in_a_group_run_one_behind_the_other():
    func = verify(
        parse("""
func f(A: int32[4], B: int32[4]):
    for b in 1 thread("blockIdx.x"):
        alloc S: int32[4] @"shared"
        for t in 4 thread("threadIdx.x"):
            S[t] = A[t]
            barrier
            A[t] = S[3 - t]
        for u in 2 thread("threadIdx.x"):
            alloc own: int32[1] @"local"
            own[0] = A[3 - u]
            barrier
            A[u] = own[0] + S[u]
        B[0] = A[0]
""")
    )
    a, b = drawn(func)
    wanted = a.copy()
    assert run_groups(func, [a, b]) == ()
    assert a.tolist() == [2 * wanted[0], 2 * wanted[1], wanted[1], wanted[0]]
    assert b[0] == a[0]


def test_a_kernel_in_a_loop_is_launched_in_every_step():
    func = verify(
        parse("""
func f(A: int32[4]):
    for k in 3:
        for b in 1 thread("blockIdx.x"):
            alloc S: int32[4] @"shared"
            for t in 4 thread("threadIdx.x"):
                S[t] = A[t] + k
                barrier
                A[t] = S[3 - t]
""")
    )
    for start in (lambda a: run_groups(func, a), lambda a: run(func, a)):
        array = np.arange(4, dtype=np.int32)
        assert not start([array])
        assert array.tolist() == [6, 5, 4, 3]


def test_kernels_hand_on_what_they_wrote():
    assert (
        findings("""
func f(A: int32[4], B: int32[4]):
    alloc M: int32[4]
    for t in 4 thread("blockIdx.x"):
        M[t] = A[t]
    for u in 4 thread("blockIdx.x"):
        B[u] = M[3 - u]
""")
        == []
    )


def test_each_group_has_buffers_of_its_own_in_any_scope():
    assert (
        findings("""
func f(A: int32[8]):
    for b in 2 thread("blockIdx.x"):
        alloc G: int32[4]
        for t in 4 thread("threadIdx.x"):
            G[t] = t
            A[b * 4 + t] = G[t]
""")
        == []
    )


def test_a_buffer_between_loops_is_shared_by_the_inner_threads():
    text = """
func f(A: int32[2, 4]):
    for y in 2 thread("threadIdx.y"):
        alloc S: int32[4] @"shared"
        for x in 4 thread("threadIdx.x"):
            S[x] = A[y, x]
            barrier
            A[y, x] = S[3 - x]
"""
    func = verify(parse(text))
    (a,) = drawn(func)
    wanted = a[:, ::-1].copy()
    assert run_groups(func, [a]) == ()
    np.testing.assert_array_equal(a, wanted)
    assert findings(text.replace("            barrier\n", "")) == [
        race("S[3]", "thread (0, 3) writes", "S[x] = A[y, x]", "thread (0, 0) reads",
             "A[y, x] = S[3 - x]")
    ]  # fmt: skip


def test_loops_of_one_tag_inside_one_another_run_step_by_step():
    func = parse("""
func f(A: int32[12], B: int32[3, 12]):
    for b in 1 thread("blockIdx.x"):
        for t in 3 thread("threadIdx.x"):
            alloc S: int32[12] @"shared"
            for i in 12 thread("threadIdx.x"):
                S[i] = A[i] * t
            for j in 12:
                B[t, j] = S[11 - j]
""")
    a, b = drawn(func)
    wanted = a[::-1] * np.arange(3, dtype=np.int32)[:, None]
    for start in (lambda x: run_groups(func, x), lambda x: run(func, x)):
        b[:] = 0
        assert not start([a, b])
        np.testing.assert_array_equal(b, wanted)


def test_blocks_run_with_those_threads_for_which_their_predicates_hold():
    func = verify(
        parse("""
func f(A: int32[7, 5], out: int32[7]):
    for b in 2 thread("blockIdx.x"):
        for t in 4 thread("threadIdx.x"):
            for k in 5:
                block total(v: s7 = b * 4 + t, r: r5 = k):
                    where b * 4 + t < 7
                    reads A[v, r]
                    writes out[v]
                    init:
                        out[v] = 0
                    out[v] = out[v] + A[v, r]
""")
    )
    a, out = drawn(func)
    assert run_groups(func, [a, out]) == ()
    np.testing.assert_array_equal(out, a.sum(axis=1))
