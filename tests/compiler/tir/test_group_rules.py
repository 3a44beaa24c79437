"""The rules by which threads run side by side, each by a small kernel as text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.tir import Barrier, For, If, PrimFunc, Seq, Var, expand_intrinsics, verify
from vdla.compiler.tir.group import run_groups
from vdla.compiler.tir.interp import InterpError, Interpreter, run
from vdla.compiler.tir.parser import parse
from vdla.compiler.tir.trail import Finding
from vdla.compiler.tir.visitor import rewrite, walk

RNG = np.random.default_rng(41)

MATMUL = """
func matmul(A: float32[16, 16], B: float32[16, 16], C: float32[16, 16]):
    for by in 4 thread("blockIdx.y"):
        for bx in 4 thread("blockIdx.x"):
            alloc S: float32[4, 4] @"shared"
            alloc T: float32[4, 4] @"shared"
            for ty in 4 thread("threadIdx.y"):
                for tx in 4 thread("threadIdx.x"):
                    alloc sum: float32[1] @"local"
                    sum[0] = 0.0
                    for k in 4:
                        barrier
                        S[ty, tx] = A[by * 4 + ty, k * 4 + tx]
                        T[ty, tx] = B[k * 4 + ty, bx * 4 + tx]
                        barrier
                        for i in 4:
                            sum[0] = sum[0] + S[ty, i] * T[i, tx]
                    C[by * 4 + ty, bx * 4 + tx] = sum[0]
"""
AHEAD = """
func copy(A: int32[6, 8], B: int32[6, 8]):
    for b in 1 thread("blockIdx.x"):
        alloc S: int32[2, 8] @"shared"
        for t in 8 thread("threadIdx.x"):
            S[0, t] = A[0, t]
            for k in 6:
                barrier
                if k < 5:
                    S[(k + 1) % 2, t] = A[k + 1, t]
                B[k, t] = S[k % 2, 7 - t]
"""
TREE = """
func tree(A: int32[8], B: int32[1]):
    for b in 1 thread("blockIdx.x"):
        alloc S: int32[8] @"shared"
        for t in 8 thread("threadIdx.x"):
            S[t] = A[t]
            barrier
            if t < 4:
                S[t] = S[t] + S[t + 4]
            barrier
            if t < 2:
                S[t] = S[t] + S[t + 2]
            barrier
            if t == 0:
                B[0] = S[0] + S[1]
"""
LOADING, SUMMING = "S[ty, tx] = A[by * 4 + ty, k * 4 + tx]", "sum[0] = sum[0] + S[ty, i] * T[i, tx]"
STORING = "S[1, t // 2] = t"
LOADING_T = "T[ty, tx] = B[k * 4 + ty, bx * 4 + tx]"


def drawn(func: PrimFunc):
    return [RNG.integers(-99, 99, p.shape).astype(p.dtype) for p in func.params]


def findings(text: str) -> list[str]:
    func = parse(text)
    return [str(found) for found in run_groups(func, drawn(func))]


def race(place, first, text, second, other, reason="with no barrier between") -> str:
    """The line for a race; both sides say who does what."""
    return f'race: {place}: {first} it in "{text}" and {second} it in "{other}", {reason}'


def unset(place, who, text) -> str:
    """The line for an uninitialized read."""
    reason = "with nothing written to it before"
    return f'uninitialized read: {place}: {who} reads it in "{text}", {reason}'


def without(func: PrimFunc, number: int) -> PrimFunc:
    """A function less one of its barriers."""
    gone = [s for s in walk(func.body) if isinstance(s, Barrier)][number]
    return replace(func, body=rewrite(func.body, lambda s: Seq(()) if s is gone else s))


# What is right ------------------------------------------------------------------------------------


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


# What is wrong ------------------------------------------------------------------------------------


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


# --- random kernels -------------------------------------------------------------------------------


def in_order(func: PrimFunc, arrays) -> None:
    """Runs a function step by step, its threads one after the other."""
    machine = Interpreter()
    machine.memory.update(zip(func.params, arrays, strict=True))
    machine.run(expand_intrinsics(func.body), {}, None)


@st.composite
def elementwise(draw):
    """A kernel whose threads each have elements of their own, with guards and loops at random."""
    groups, threads, steps = (draw(st.integers(1, 4)) for _ in range(3))
    size = draw(st.integers(1, groups * threads * steps))
    place = f"(b * {threads} + t) * {steps} + k"
    turned = draw(st.sampled_from([place, f"{size - 1} - ({place})"]))
    value = draw(st.sampled_from([
        "A[@] + 1", "select(A[@] > 0, A[@], 0 - A[@])", "own[0] * A[@]", "B[#] + own[0]",
        "select(t > 0, A[@] // t, k)",
    ]))  # fmt: skip
    kind = draw(st.sampled_from(["", " unrolled", " vectorized"]))
    return parse(f"""
func f(A: int32[{size}], B: int32[{size}]):
    for b in {groups} thread("blockIdx.x"):
        for t in {threads} thread("threadIdx.x"):
            alloc own: int32[1] @"local"
            own[0] = t * 3 - b
            for k in {steps}{kind}:
                if {place} < {size}:
                    B[{place}] = {value.replace("@", turned).replace("#", place)}
                else:
                    own[0] = own[0] + k
""")


@settings(max_examples=60, deadline=None)
@given(elementwise())
def test_threads_side_by_side_compute_what_they_do_in_order(func):
    arrays = drawn(func)
    wanted = [a.copy() for a in arrays]
    in_order(func, wanted)
    assert run_groups(func, arrays) == ()
    for found, want in zip(arrays, wanted, strict=True):
        np.testing.assert_array_equal(found, want)


THREADS, SIZE = 4, 5


@st.composite
def accesses(draw):
    """What threads do with one buffer, in order: None for a barrier, else whether they write, the
    place of each thread's element, and the threads that do it."""
    lines = []
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.integers(0, 3)) == 0:
            lines.append(None)
            continue
        factor, offset = draw(st.integers(0, 2)), draw(st.integers(0, SIZE - 1))
        low = draw(st.integers(0, THREADS - 1))
        lines.append((draw(st.booleans()), factor, offset, (low, draw(st.integers(low, THREADS)))))
    return lines


def kernel_of(lines, tag: str) -> PrimFunc:
    """A kernel that does that with S; its steps are threads, or groups, for which nothing is a
    barrier."""
    own = "    " * 4
    body = []
    for n, line in enumerate(lines):
        if line is None:
            body.append(f"{own}barrier" if tag == "threadIdx.x" else f"{own}pass")
            continue
        wrote, factor, offset, (low, high) = line
        place = f"S[(t * {factor} + {offset}) % {SIZE}]"
        does = f"{place} = {n}" if wrote else f"B[{n}, t] = {place}"
        body += [f"{own}if {low} <= t and t < {high}:", f"{own}    {does}"]
    text = f"""
func f(S: int32[{SIZE}], B: int32[{len(lines)}, {THREADS}]):
    for t in {THREADS} thread("{tag}"):
        for k in 1:
            for j in 1:
""" + "\n".join(body)  # fmt: skip
    return parse(text)


def meetings(lines, barriers: bool) -> set[int]:
    """The elements that two threads touch, one of them to write, with no barrier in between."""
    found, touched = set(), []
    for line in lines:
        if line is None:
            touched = [] if barriers else touched
            continue
        wrote, factor, offset, (low, high) = line
        for t in range(low, high):
            place = (t * factor + offset) % SIZE
            if any(p == place and u != t and (w or wrote) for p, u, w in touched):
                found.add(place)
            touched.append((place, t, wrote))
    return found


@settings(max_examples=150, deadline=None)
@given(accesses(), st.sampled_from(["threadIdx.x", "blockIdx.x"]))
def test_races_are_found_where_threads_meet_and_only_there(lines, tag):
    func = kernel_of(lines, tag)
    found = {f.element[0] for f in run_groups(func, drawn(func))}
    wanted = meetings(lines, tag == "threadIdx.x")
    assert found <= wanted
    assert bool(found) == bool(wanted)
