"""Random kernels: their threads compute what they do in order, and races are where they meet."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.kernel_texts import drawn
from vdla.compiler.tir import PrimFunc, expand_intrinsics
from vdla.compiler.tir.group import run_groups
from vdla.compiler.tir.interp import Interpreter
from vdla.compiler.tir.parser import parse


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
