"""Threads of a kernel: what they deal out among themselves, and what they can't."""

from __future__ import annotations

import pytest

from tests.support.kernels import bound, tiled
from vdla import te
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.gpu.description import ANY, Gpu
from vdla.compiler.targets.gpu.lower import kernels_of, lower_function
from vdla.compiler.targets.gpu.passes import to_kernels
from vdla.compiler.targets.gpu.passes.barriers import insert_barriers
from vdla.compiler.targets.gpu.passes.threads import deal_threads
from vdla.compiler.tir import show
from vdla.compiler.tir.parser import parse


def test_a_group_deals_out_what_it_loads():
    func = parse("""
func f(A: float32[32], C: float32[64]):
    for b in 4 thread("blockIdx.x"):
        for t in 16 thread("threadIdx.x"):
            alloc S: float32[8] @"shared"
            for i in 8 thread("threadIdx.x"):
                S[i] = A[b * 8 + i]
            C[b * 16 + t] = S[t // 2]
""")
    assert (
        show(deal_threads(func))
        == """\
func f(A: float32[32], C: float32[64]):
    for bx in 4 thread("blockIdx.x"):
        alloc S: float32[8] @"shared"
        for tx in 16 thread("threadIdx.x"):
            if tx < 8:
                S[tx] = A[bx * 8 + tx]
            C[bx * 16 + tx] = S[tx // 2]"""
    )


def test_scopes_are_inferred_and_what_all_would_do_is_done_once():
    func = parse("""
func f(A: float32[4, 8], C: float32[4, 8]):
    for b in 4 thread("blockIdx.x"):
        alloc total: float32[1]
        total[0] = A[b, 0]
        for t in 8 thread("threadIdx.x"):
            alloc own: float32[1]
            own[0] = A[b, t]
            C[b, t] = own[0] * total[0]
""")
    assert (
        show(deal_threads(func))
        == """\
func f(A: float32[4, 8], C: float32[4, 8]):
    for bx in 4 thread("blockIdx.x"):
        alloc total: float32[1] @"shared"
        for tx in 8 thread("threadIdx.x"):
            if tx == 0:
                total[0] = A[bx, 0]
            alloc own: float32[1] @"local"
            own[0] = A[bx, tx]
            C[bx, tx] = own[0] * total[0]"""
    )


def test_nests_side_by_side_are_kernels():
    x = te.placeholder((10,), "float32", "X")
    y = te.compute((10,), lambda i: x[i] + 1.0, "Y")
    z = te.compute((10,), lambda i: y[i] * 2.0, "Z")
    s = te.create_schedule(z)
    for stage in (s[y], s[z]):
        bound(stage, threadIdx_x=stage.axis[0])
    assert (
        show(to_kernels(s.mod))
        == """\
func main(X: float32[10], Z: float32[10]):
    alloc Y: float32[10]
    for tx in 10 thread("threadIdx.x"):
        Y[tx] = X[tx] + 1.0
    for tx_1 in 10 thread("threadIdx.x"):
        Z[tx_1] = Y[tx_1] * 2.0"""
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            """
func f(A: float32[8], C: float32[8]):
    alloc S: float32[8] @"shared"
    for t in 8 thread("threadIdx.x"):
        S[t] = A[t]
        C[t] = S[t]
""",
            "f: expected S in scope shared to be made inside a loop bound to blockIdx or "
            "threadIdx, found it outside; compute_at puts it there",
        ),
        (
            """
func f(A: float32[8], C: float32[8]):
    for b in 2 thread("blockIdx.x"):
        alloc S: float32[4] @"local"
        for t in 4 thread("threadIdx.x"):
            S[t] = A[b * 4 + t]
            C[b * 4 + t] = S[t]
""",
            "f: expected S in scope local to be made inside the loops over the threads that use "
            "it, found a loop bound to threadIdx.x inside",
        ),
        (
            """
func f(A: float32[8], C: float32[8]):
    for t in 8 thread("threadIdx.x"):
        alloc S: float32[1] @"shared"
        S[0] = A[t]
        C[t] = S[0]
""",
            "f: expected S in shared memory to hold the same for all threads of a group, found "
            "that it depends on t (threadIdx.x); bind its readers' loops before compute_at",
        ),
    ],
)
def test_buffers_that_threads_cannot_have(text, message):
    with pytest.raises(NoCodeError) as error:
        deal_threads(parse(text))
    assert str(error.value) == message


def test_what_a_single_group_shares_is_no_scratch_memory():
    func = lower_function(tiled(8, 8, 2, 4).mod, ANY)
    (function,) = kernels_of([func], ANY).functions.values()
    assert function.scratch == ()
    assert [launch.shared for launch in function.launches] == [2 * 8 * 4 * 4]


@pytest.mark.parametrize(
    ("tag", "extent", "message"),
    [
        ("threadIdx.x", 300, "main: expected at most 256 threads of a group, found 300"),
        ("threadIdx.z", 100, "main: expected at most 64 threads of a group along z, found 100"),
        ("blockIdx.y", 70000, "main: expected at most 65535 groups along y, found 70000"),
    ],
)
def test_limits_of_a_gpu(tag, extent, message):
    x = te.placeholder((extent,), "float32", "X")
    y = te.compute((extent,), lambda i: x[i] + 1.0, "Y")
    s = te.create_schedule(y)
    s[y].bind(s[y].axis[0], te.thread_axis(tag))
    with pytest.raises(NoCodeError) as error:
        Gpu().check(to_kernels(s.mod))
    assert str(error.value) == message


def test_threads_that_write_one_element_are_no_kernel():
    func = parse("""
func f(A: float32[8], C: float32[4]):
    for t in 8 thread("threadIdx.x"):
        C[t // 2] = A[t]
        C[t // 2] = C[t // 2] + 1.0
""")
    with pytest.raises(NoCodeError) as error:
        to_kernels(func)
    assert str(error.value) == (
        "f: expected each element of C to be written by one thread, found that several write one "
        "by C[tx // 2] = A[tx]"
    )


def test_a_barrier_that_some_threads_would_not_reach():
    func = parse("""
func f(A: float32[8], C: float32[8]):
    for b in 2 thread("blockIdx.x"):
        alloc S: float32[8] @"shared"
        for t in 8 thread("threadIdx.x"):
            if t < 4:
                for k in 2:
                    S[t] = A[t + k]
                    C[t] = S[3 - t]
""")
    with pytest.raises(NoCodeError, match="need no barrier under a condition of their own"):
        to_kernels(func)


def test_parts_of_one_result_that_lie_apart_need_no_barrier():
    func = parse("""
func f(A: float32[60], C: float32[6, 10]):
    for b in 4 thread("blockIdx.x"):
        for t in 8 thread("threadIdx.x"):
            if b * 16 + t < 52:
                C[(b * 16 + t) // 10, (b * 16 + t) % 10] = A[b * 16 + t]
                C[(b * 16 + t + 8) // 10, (b * 16 + t + 8) % 10] = A[b * 16 + t + 8]
""")
    assert "barrier" not in show(insert_barriers(func))
    with pytest.raises(NoCodeError, match="share C"):
        insert_barriers(parse(show(func).replace("+ t + 8", "+ t + 7")))
