"""Spaces that are listed: what neighbours and children are."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.search.table import Table


@dataclass(frozen=True)
class Point:
    """A made-up tile: b is half of a, so it is no choice."""

    a: int
    b: int
    c: str


def test_a_knob_that_follows_from_others_is_not_turned():
    made = Table.of([Point(a, a // 2, c) for a in (2, 4, 8) for c in "xy"])
    names = list(made.knobs)
    assert len(made.free) == 2
    assert {names[column] for column in made.free} == {"a", "c"}
    start = made.point(Point(2, 1, "x"))
    around = {made.candidates[i] for i in made.neighbours(start)}
    assert around == {Point(4, 2, "x"), Point(8, 4, "x"), Point(2, 1, "y")}


def test_a_lone_point_jumps():
    made = Table.of([Point(0, 0, "x"), Point(0, 0, "y"), Point(1, 0, "x"), Point(2, 0, "z")])
    lone = made.point(Point(2, 0, "z"))
    assert made.neighbours(lone) == []
    reached = made.step(np.full(50, lone), np.random.default_rng(0))
    assert set(reached.tolist()) == {0, 1, 2, 3}


@settings(max_examples=50)
@given(st.integers(0, 2**31), st.data())
def test_a_child_takes_its_knobs_from_its_parents_where_that_is_legal(seed, data):
    made = Table.of([Point(a, b, c) for a in range(4) for b in range(4) for c in "xyz"])
    a, b = (data.draw(st.integers(0, len(made) - 1)) for _ in range(2))
    child = made.candidates[made.cross(a, b, np.random.default_rng(seed))]
    for field in fields(child):
        parents = {getattr(made.candidates[p], field.name) for p in (a, b)}
        assert getattr(child, field.name) in parents


def test_no_candidate_is_an_error():
    with pytest.raises(ValueError, match="expected at least one candidate, found none"):
        Table.of([])
