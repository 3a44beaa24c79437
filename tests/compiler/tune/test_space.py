"""The declared space: every move stays inside it, and it is connected."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.targets.accelerator.operators.cost import TilingError
from vdla.compiler.targets.accelerator.operators.pool import Pool2d
from vdla.compiler.tune.space import Space, space

POOL = Pool2d("max", 1, 4, 12, 12, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 0, 0, -128, 127)


@dataclass(frozen=True)
class Point:
    """A made-up tile: b is half of a, so it is no choice."""

    a: int
    b: int
    c: str


def test_a_space_is_the_legal_tiles(layer, tiny):
    for shape in (layer.template, POOL):
        found = space(shape, tiny, 2)
        assert list(found.tiles) == list(shape.tiles(tiny, 2))
        for i in (0, len(found) // 2, len(found) - 1):
            for column, (name, values) in enumerate(found.knobs.items()):
                assert getattr(found.tiles[i], name) == values[found.codes[i, column]]


def test_a_knob_that_follows_from_others_is_not_turned():
    made = Space.of([Point(a, a // 2, c) for a in (2, 4, 8) for c in "xy"])
    names = list(made.knobs)
    assert len(made.free) == 2
    assert {names[column] for column in made.free} == {"a", "c"}
    start = made.index[Point(2, 1, "x")]
    around = {made.tiles[i] for i in made.neighbours(start)}
    assert around == {Point(4, 2, "x"), Point(8, 4, "x"), Point(2, 1, "y")}


@pytest.mark.parametrize("vthreads", [1, 2])
def test_steps_reach_every_neighbour_and_nothing_else(layer, tiny, vthreads):
    found = space(layer.template, tiny, vthreads)
    rng = np.random.default_rng(0)
    names = [f.name for f in fields(found.tiles[0])]
    for point in rng.integers(len(found), size=5).tolist():
        around = found.neighbours(point)
        for each in around:
            differing = [c for c in found.free if found.codes[each, c] != found.codes[point, c]]
            assert len(differing) == 1, [names[c] for c in differing]
        reached = set(found.step(np.full(60 * len(around), point), rng).tolist())
        assert reached == set(around)


def test_walks_reach_the_whole_space(layer, tiny):
    found = space(layer.template, tiny, 2)
    seen, edge = {0}, [0]
    while edge:
        edge = [n for p in edge for n in found.neighbours(p) if n not in seen]
        seen.update(edge)
    assert len(seen) == len(found)


def test_a_lone_point_jumps():
    made = Space.of([Point(0, 0, "x"), Point(0, 0, "y"), Point(1, 0, "x"), Point(2, 0, "z")])
    lone = made.index[Point(2, 0, "z")]
    assert made.neighbours(lone) == []
    reached = made.step(np.full(50, lone), np.random.default_rng(0))
    assert set(reached.tolist()) == {0, 1, 2, 3}


@settings(max_examples=50)
@given(st.integers(0, 2**31), st.data())
def test_a_child_takes_its_knobs_from_its_parents_where_that_is_legal(seed, data):
    made = Space.of([Point(a, b, c) for a in range(4) for b in range(4) for c in "xyz"])
    a, b = (data.draw(st.integers(0, len(made) - 1)) for _ in range(2))
    child = made.tiles[made.cross(a, b, np.random.default_rng(seed))]
    for field in fields(child):
        parents = {getattr(made.tiles[p], field.name) for p in (a, b)}
        assert getattr(child, field.name) in parents


def test_children_are_legal(layer, tiny):
    found, rng = space(layer.template, tiny, 2), np.random.default_rng(0)
    pairs = rng.integers(len(found), size=(20, 2))
    assert all(0 <= found.cross(int(a), int(b), rng) < len(found) for a, b in pairs)
    assert found.cross(7, 7, rng) == 7


def test_no_tile_is_an_error(tiny):
    single = Pool2d("max", 1, 1, 1, 1, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 0, 0, -128, 127)
    with pytest.raises(TilingError, match="expected a tile for 2 threads, found none"):
        space(single, tiny, 2)
    with pytest.raises(ValueError, match="expected at least one tile"):
        Space.of([])
