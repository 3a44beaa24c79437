"""Rows of steps, and the ends of compiled code that they have."""

from __future__ import annotations

import pytest

from vdla.runtime.plan import Call, Clear, Copy, Gpu, Host, Jump, Next, Return
from vdla.runtime.pool import numbers
from vdla.runtime.rows import Exits, Place, control_of, split


def host(name="f"):
    return Host(name, name, ("x", "y"))


def rows(*plan, apart=()):
    return [list(row) for row in split(plan, apart)]


def test_host_steps_and_what_is_between_them_are_a_row():
    copy = Copy("c", ("x", "y"))
    assert rows(host(), copy, Clear("z", ("y",)), host()) == [[0, 1, 2, 3]]


def test_kernels_are_a_row_of_their_own():
    kernel = Gpu("g", "g", ("x", "y"))
    assert rows(host(), kernel, kernel, host()) == [[0], [1, 2], [3]]


def test_steps_that_something_is_done_before_begin_rows():
    assert rows(host(), host(), host(), apart={2}) == [[0, 1], [2]]


def test_a_loop_within_a_row_is_compiled_code():
    assert rows(host(), host(), Next("loop", 1, "turn", 3), host()) == [[0, 1, 2, 3]]


def test_a_jump_from_another_row_begins_one():
    """The loop's body has a kernel, so that its end is in another row than its beginning."""
    plan = (host(), host(), Gpu("g", "g", ("x", "y")), host(), Next("loop", 1, "turn", 3))
    assert rows(*plan) == [[0], [1], [2], [3, 4]]


def test_rows_that_are_split_split_others():
    """Step 2 begins a row, since 6 jumps there; so 3's jump to 1 leaves its row."""
    plan = (
        host(),
        host(),
        host(),
        Jump("back", 1, "go"),
        Gpu("g", "g", ("x", "y")),
        host(),
        Jump("far", 2, "go"),
    )
    assert rows(*plan) == [[0], [1], [2, 3], [4], [5, 6]]


def test_what_is_called_begins_a_row():
    plan = (host(), Call("call", 3), Return("end"), host(), Return("f.end"))
    assert rows(*plan) == [[0], [1], [2], [3], [4]]


def test_a_jump_to_the_end():
    assert rows(host(), Jump("if", 3, "go"), host()) == [[0, 1, 2]]


def test_exits_have_numbers_behind_the_row():
    exits = Exits([4, 5, 6])
    endless = Next("loop", 5, "turn", 3, strict=True)
    assert [exits.number(step) for step in (4, 6, 9, endless, 9, 7)] == [0, 2, 4, 5, 4, 6]
    assert [exits.target(end) for end in (3, 4, 5, 6)] == [None, 9, endless, 7]


PLACES = {"x": Place(1000, 48, 12), "y": Place(2000, 12, 12), "t": Place(3000, 8, 8)}


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        (
            Copy("c", ("x", "y")),
            {"kind": numbers.COPY, "size": 48, "source": 1000, "into": 2000},
        ),
        (
            Copy("c", ("x", "y"), "t", "take"),
            {"kind": numbers.TAKE, "size": 12, "turn": 3000, "source": 1000, "into": 2000},
        ),
        (
            Copy("c", ("y", "x"), "t", "put"),
            {"kind": numbers.PUT, "size": 12, "turn": 3000, "source": 2000, "into": 1000},
        ),
        (Clear("c", ("x",)), {"kind": numbers.CLEAR, "size": 48, "into": 1000}),
        (Jump("j", 4), {"kind": numbers.JUMP, "to": 0}),
        (Jump("j", 6, "y"), {"kind": numbers.WHEN, "to": 2, "source": 2000}),
        (Jump("j", 9, "y", when=False), {"kind": numbers.UNLESS, "to": 4, "source": 2000}),
        (
            Next("n", 4, "t", 3),
            {"kind": numbers.NEXT, "to": 0, "end": 2, "size": 3, "turn": 3000},
        ),
        (
            Next("n", 4, "t", 3, strict=True),
            {"kind": numbers.NEXT, "to": 0, "end": 4, "size": 3, "turn": 3000},
        ),
    ],
    ids=lambda value: value.KIND if hasattr(value, "KIND") else "",
)
def test_controls(step, wanted):
    """Of step 5, in a row of 4, 5 and 6."""
    control = control_of(5, step, PLACES, Exits([4, 5, 6]))
    values = {name: getattr(control, name) or 0 for name, _ in control._fields_}
    nothing = dict.fromkeys(("kind", "to", "end", "size", "turn", "source", "into"), 0)
    assert values == {**nothing, **wanted}
