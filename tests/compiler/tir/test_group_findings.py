"""What is wrong with kernels is told by name: races, divergent barriers, uninitialized reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.kernel_texts import AHEAD, MATMUL, TREE, drawn, findings, race
from vdla.compiler.tir import Barrier, For, If, PrimFunc, Seq, Var
from vdla.compiler.tir.group import run_groups
from vdla.compiler.tir.interp import InterpError, run
from vdla.compiler.tir.parser import parse
from vdla.compiler.tir.trail import Finding
from vdla.compiler.tir.visitor import rewrite, walk

LOADING, SUMMING = "S[ty, tx] = A[by * 4 + ty, k * 4 + tx]", "sum[0] = sum[0] + S[ty, i] * T[i, tx]"
STORING = "S[1, t // 2] = t"
LOADING_T = "T[ty, tx] = B[k * 4 + ty, bx * 4 + tx]"


def unset(place, who, text) -> str:
    """The line for an uninitialized read."""
    reason = "with nothing written to it before"
    return f'uninitialized read: {place}: {who} reads it in "{text}", {reason}'


def without(func: PrimFunc, number: int) -> PrimFunc:
    """A function less one of its barriers."""
    gone = [s for s in walk(func.body) if isinstance(s, Barrier)][number]
    return replace(func, body=rewrite(func.body, lambda s: Seq(()) if s is gone else s))


def test_the_barrier_before_the_tiles_are_filled_again():
    found = [str(f) for f in run_groups(without(parse(MATMUL), 0), drawn(parse(MATMUL)))]
    assert found == [
        race("S[0, 0]", "thread (0, 3) reads", SUMMING, "thread (0, 0) writes", LOADING),
        race("T[0, 0]", "thread (3, 0) reads", SUMMING, "thread (0, 0) writes", LOADING_T),
    ]


def test_the_barrier_before_the_tiles_are_read():
    found = [str(f) for f in run_groups(without(parse(MATMUL), 1), drawn(parse(MATMUL)))]
    assert found == [
        race("S[0, 0]", "thread (0, 0) writes", LOADING, "thread (0, 1) reads", SUMMING),
        race("T[0, 0]", "thread (0, 0) writes", LOADING_T, "thread (1, 0) reads", SUMMING),
    ]


@pytest.mark.parametrize("number", range(3))
def test_no_barrier_of_a_tree_can_be_left_out(number):
    found = run_groups(without(parse(TREE), number), drawn(parse(TREE)))
    assert {(f.kind, f.buffer) for f in found} == {("race", "S")}


def test_the_one_barrier_of_a_double_buffer():
    found = run_groups(without(parse(AHEAD), 0), drawn(parse(AHEAD)))
    assert {(f.kind, f.buffer) for f in found} == {("race", "S")}


def test_a_reader_that_writes_what_others_read_in_the_same_statement():
    assert findings("""
func f(B: float32[4]):
    for b in 1 thread("blockIdx.x"):
        alloc S: float32[4] @"shared"
        for t in 4 thread("threadIdx.x"):
            S[t] = 1.0
            barrier
            B[t] = S[3]
            if t == 3:
                S[3] = 5.0
""") == [race("S[3]", "thread (2) reads", "B[t] = S[3]", "thread (3) writes", "S[3] = 5.0")]


def test_a_reader_that_writes_what_another_read_in_an_earlier_statement():
    assert findings("""
func f(B: float32[4]):
    for b in 1 thread("blockIdx.x"):
        alloc S: float32[4] @"shared"
        for t in 2 thread("threadIdx.x"):
            S[t] = 1.0
            barrier
            if t == 0:
                B[0] = S[0]
            if t == 1:
                B[1] = S[0]
                S[0] = 2.0
""") == [race("S[0]", "thread (0) reads", "B[0] = S[0]", "thread (1) writes", "S[0] = 2.0")]


def test_every_earlier_statement_is_told():
    assert findings("""
func f(B: float32[4]):
    for b in 1 thread("blockIdx.x"):
        alloc S: float32[8] @"shared"
        for t in 4 thread("threadIdx.x"):
            S[t] = 1.0
            S[t + 4] = 2.0
            B[t] = S[t + 3]
""") == [
        race("S[3]", "thread (3) writes", "S[t] = 1.0", "thread (0) reads", "B[t] = S[t + 3]"),
        race("S[4]", "thread (0) writes", "S[t + 4] = 2.0", "thread (1) reads", "B[t] = S[t + 3]"),
    ]


def test_what_lies_before_a_barrier_is_no_race():
    assert (
        findings("""
func f(B: float32[4]):
    for b in 1 thread("blockIdx.x"):
        alloc S: float32[4] @"shared"
        for t in 4 thread("threadIdx.x"):
            S[t] = 1.0
            barrier
            B[t] = S[3]
            barrier
            S[t] = 2.0
""")
        == []
    )


def test_groups_race_for_what_one_of_them_reads():
    found = findings("""
func f(A: float32[8]):
    for b in 4 thread("blockIdx.x"):
        for t in 2 thread("threadIdx.x"):
            if b == 3:
                A[t] = 1.0
            else:
                A[(b * 2 + 2 + t) % 8] = A[t]
""")
    write, copy = "A[t] = 1.0", "A[(b * 2 + 2 + t) % 8] = A[t]"
    assert (
        race("A[0]", "group (2) reads", copy, "group (3) writes", write, "in one kernel") in found
    )


@pytest.mark.parametrize("scope", ["shared", "local"])
def test_an_element_of_a_buffer_that_nothing_was_written_to(scope):
    size, place = (4, "t") if scope == "shared" else (1, "0")
    alloc = f'alloc S: int32[{size}] @"{scope}"'
    outer, inner = (alloc, "") if scope == "shared" else ("", alloc)
    lines = f"""
func f(B: int32[4]):
    for b in 1 thread("blockIdx.x"):
        {outer}
        for t in 4 thread("threadIdx.x"):
            {inner}
            if t < 2:
                S[{place}] = 1
            B[t] = S[{place}]
"""
    element = 2 if scope == "shared" else 0
    assert findings("\n".join(line for line in lines.splitlines() if line.strip())) == [
        unset(f"S[{element}]", "thread (2)", f"B[t] = S[{place}]")
    ]


def test_a_buffer_is_new_in_every_step():
    assert findings("""
func f(B: int32[4]):
    for t in 4 thread("threadIdx.x"):
        for k in 2:
            alloc own: int32[2] @"local"
            if k == 0:
                own[1] = 1
            B[t] = own[1]
""") == [unset("own[1]", "thread (0)", "B[t] = own[1]")]


def test_sums_read_what_they_add_to():
    assert findings("""
func f(B: int32[4]):
    for t in 4 thread("threadIdx.x"):
        alloc own: int32[1] @"local"
        own[0] = own[0] + B[t]
""") == [unset("own[0]", "thread (0)", "own[0] = own[0] + B[t]")]


def test_a_condition_reads_too():
    assert findings("""
func f(B: int32[4]):
    alloc M: int32[1]
    if M[0] > 0:
        B[0] = 1
""") == [unset("M[0]", "thread (0)", "if M[0] > 0:")]


def test_a_barrier_that_some_threads_reach():
    func = parse("""
func f(A: int32[6]):
    for y in 2 thread("threadIdx.y"):
        for x in 3 thread("threadIdx.x"):
            if y == 0:
                A[x] = 1
            A[y * 3 + x] = x
""")
    body = rewrite(func.body, lambda s: replace(s, then=Barrier()) if isinstance(s, If) else s)
    func = replace(func, body=body)  # which verify refuses
    found = Finding("divergent barrier", "", (), ("if y == 0:",), ((0, 0), (1, 0)))
    assert run_groups(func, drawn(func)) == (found,)
    assert str(found) == (
        "divergent barrier: thread (0, 0) reaches it and thread (1, 0) doesn't, "
        'parted by "if y == 0:"'
    )


def test_a_divergent_barrier_tells_the_condition_that_parts_the_threads():
    t, b = Var("t"), Var("b")
    inner = If(b < 2, If(t < 3, If(t < 6, Barrier())))
    nest = For(b, 2, "thread", For(t, 4, "thread", inner, "threadIdx.x"), "blockIdx.x")
    (found,) = run_groups(PrimFunc("f", (), nest), [])
    assert str(found) == (
        'divergent barrier: thread (0) reaches it and thread (3) doesn\'t, parted by "if t < 3:"'
    )


def test_each_pair_of_statements_is_told_once():
    text = """
func f(A: int32[8], B: int32[8]):
    for b in 1 thread("blockIdx.x"):
        alloc S: int32[8] @"shared"
        for t in 4 thread("threadIdx.x"):
            for k in 2:
                S[t] = A[t]
                B[t] = S[3 - t]
"""
    copy, use = "S[t] = A[t]", "B[t] = S[3 - t]"
    assert findings(text) == [
        race("S[3]", "thread (3) writes", copy, "thread (0) reads", use),
        race("S[0]", "thread (3) reads", use, "thread (0) writes", copy),
    ]


def test_elements_between_padded_rows_have_their_indices():
    assert findings("""
func f(B: int32[4]):
    for b in 1 thread("blockIdx.x"):
        alloc S: int32[2, 3] @"shared" align(0, 8, 1)
        for t in 4 thread("threadIdx.x"):
            S[1, t // 2] = t
""") == [race("S[1, 0]", "thread (0) writes", STORING, "thread (1) writes", STORING)]


def test_a_barrier_under_a_condition_of_all_threads():
    assert (
        findings("""
func f(A: int32[4]):
    for b in 2 thread("blockIdx.x"):
        for t in 2 thread("threadIdx.x"):
            if b == 0:
                barrier
            A[b * 2 + t] = t
""")
        == []
    )


@pytest.mark.parametrize("start", [run, run_groups])
def test_barriers_where_threads_do_not_run_side_by_side(start):
    inner = For(Var("u"), 2, "thread", Barrier(), "threadIdx.y")
    apart = For(Var("t"), 4, "thread", For(Var("k"), 2, "serial", inner), "threadIdx.x")
    for body, text in (
        (
            apart,
            "for u: a barrier inside loops over threads that aren't directly inside one another",
        ),
        (Barrier(), "a barrier outside of threads that run side by side"),
    ):
        with pytest.raises(InterpError) as error:
            start(PrimFunc("f", (), body), [])
        assert str(error.value) == text


def test_buffers_are_gone_after_their_alloc():
    func = parse("""
func f(A: int32[4]):
    for t in 4 thread("threadIdx.x"):
        for k in 2:
            alloc own: int32[1] @"local"
            own[0] = k
        A[t] = t
""")
    own = next(s.buffer for s in walk(func.body) if getattr(s, "buffer", None) is not None)
    body = rewrite(
        func.body, lambda s: replace(s, buffer=own, indices=(s.indices[0] * 0,))
        if getattr(s, "buffer", None) is func.params[0] else s,
    )  # fmt: skip
    with pytest.raises(InterpError, match=r"^own: used outside its Alloc$"):
        run_groups(replace(func, body=body), drawn(func))
