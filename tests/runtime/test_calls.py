"""Moves, jumps and calls as compiled code and the executor do them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from control_texts import CHOICE, FACTORIAL, SUMS, compiled, counted, given, graph_of, run

from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.targets.processor.part import native_code
from vdla.runtime.calls import Calls, Control
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.errors import InputError
from vdla.runtime.executor import MOST_CALLS, Executor
from vdla.runtime.native import NativeLibrary
from vdla.runtime.pool import numbers

A = [1.0, 2.0, 3.0]
DOUBLE = counted(["a"], ["d"], ["two: d = Add(a, a) : float32[3]"])


@pytest.fixture(scope="module")
def library():
    return NativeLibrary(native_code([], NATIVE, empty=True))


def end_of(library, *controls):
    """Where a run of the controls alone leaves them."""
    calls = Calls(library, controls, None)
    assert calls.run()() == []
    return calls.end


def address(array):
    return array.ctypes.data


# Compiled code -----------------------------------------------------------------------------------


def test_moves(library):
    rows, row = np.arange(12, dtype=np.float32).reshape(4, 3), np.zeros(3, np.float32)
    other, turn = np.ones_like(rows), np.array(2)
    end = end_of(
        library,
        Control(numbers.TAKE, size=12, turn=address(turn), source=address(rows), into=address(row)),
        Control(numbers.CLEAR, size=48, into=address(other)),
        Control(numbers.PUT, size=12, turn=address(turn), source=address(row), into=address(other)),
        Control(numbers.COPY, size=24, source=address(other[2:]), into=address(rows)),
    )
    assert end == 4
    assert row.tolist() == [6, 7, 8]
    assert other.tolist() == [[0] * 3, [0] * 3, [6, 7, 8], [0] * 3]
    assert rows.tolist() == [[6, 7, 8], [0] * 3, [6, 7, 8], [9, 10, 11]]


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize(("kind", "when"), [(numbers.WHEN, True), (numbers.UNLESS, False)])
def test_conditional_jumps(library, kind, when, value):
    flag = np.array(value)
    assert end_of(library, Control(kind, to=7, source=address(flag))) == (7 if value == when else 1)


def test_a_jump_that_leaves_the_row(library):
    """The third control is never reached."""
    never = Control(numbers.JUMP, to=9)
    assert end_of(library, Control(numbers.JUMP, to=1), Control(numbers.JUMP, to=5), never) == 5


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_turns_are_counted(library, turns):
    """The turn goes into an element each time; behind the last one the loop's end comes next."""
    turn, seen = np.array(0), np.full(6, -1)
    end = end_of(
        library,
        Control(numbers.PUT, size=8, turn=address(turn), source=address(turn), into=address(seen)),
        Control(numbers.NEXT, to=0, end=3, size=turns, turn=address(turn)),
    )
    assert end == 3
    assert turn == turns
    assert seen.tolist() == [*range(turns), *[-1] * (6 - turns)]


# Loops and calls ---------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("turns", [0, 1, 9, 10])
def test_turns_of_a_while(turns, threads):
    """None, and as many as there may be at most, too."""
    executor = Executor(compiled(DOUBLE), CpuDevice(), threads=threads)
    for _ in range(2):
        found = executor.run(given({"n": turns, "a0": A})).outputs["a1"]
        assert found.tolist() == [2**turns * each for each in A]


def test_a_loop_that_goes_on_is_stopped():
    executor = Executor(compiled(DOUBLE), CpuDevice(), threads=1)
    message = (
        "loop loop: expected an end after at most 10 turns, found none; compile with more, "
        "--turns, if it is to go on"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        executor.run(given({"n": 11, "a0": A}))
    assert executor.run(given({"n": 2, "a0": A})).outputs["a1"].tolist() == [4.0, 8.0, 12.0]


def test_zero_turns_leave_stacked_results_zeros():
    graph = counted(["a"], ["d"], ["two: d = Add(a, a) : float32[3]"], turns=4, stacked=["a"])
    executor = Executor(compiled(graph), CpuDevice(), threads=1)
    for turns in (4, 0, 2):  # what one run stacks is not there in the next one
        rows = executor.run(given({"n": turns, "a0": A})).outputs["a.all"]
        wanted = [[2**turn * each for each in A] if turn < turns else [0] * 3 for turn in range(4)]
        assert rows.tolist() == wanted


def test_one_of_two_ways():
    executor = Executor(compiled(graph_of(CHOICE)), CpuDevice(), threads=1)
    for go in (True, False, True):
        found = executor.run(given({"go": go, "x": A})).outputs["r"].tolist()
        assert found == (A if go else [-each for each in A])


def test_a_scan():
    x = np.arange(12.0).reshape(4, 3)
    assert run(graph_of(SUMS), x=x, y=A)["all"].tolist() == (np.cumsum(x, 0) + A).tolist()


@pytest.mark.parametrize("n", [0, 1, 10, 20])
def test_recursion(n):
    """20! is the largest that an int64 holds."""
    assert run(graph_of(FACTORIAL), n=n)["y"] == np.prod(np.arange(1, n + 1))


def test_recursion_is_refused_beyond_its_bound():
    """The call of the main graph is the first one; the executor can run again."""
    executor = Executor(compiled(graph_of(FACTORIAL)), CpuDevice(), threads=1)
    executor.run(given({"n": MOST_CALLS - 1}))
    message = "call again: expected at most 1,000 calls inside one another, found more"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        executor.run(given({"n": MOST_CALLS}))
    assert executor.run(given({"n": 5})).outputs["y"] == 120


def test_rows_that_run_again_for_their_time():
    """What a row changes is put back before it is run again."""
    executor = Executor(compiled(DOUBLE), CpuDevice(), threads=1)
    executor.repeats.left = 0.05
    assert executor.run(given({"n": 3, "a0": A})).outputs["a1"].tolist() == [8.0, 16.0, 24.0]
