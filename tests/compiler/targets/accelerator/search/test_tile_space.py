"""The declared space of an operator: every move stays inside it, and it is connected."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from vdla.compiler.targets.accelerator.operators.cost import TilingError
from vdla.compiler.targets.accelerator.operators.pool import Pool2d
from vdla.compiler.targets.accelerator.search.tile_space import tile_space

POOL = Pool2d("max", 1, 4, 12, 12, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 0, 0, -128, 127)


def test_a_space_is_the_legal_tiles(layer, tiny):
    for shape in (layer.template, POOL):
        found = tile_space(shape, tiny, 2)
        assert list(found.candidates) == list(shape.tiles(tiny, 2))
        for i in (0, len(found) // 2, len(found) - 1):
            for column, (name, values) in enumerate(found.knobs.items()):
                assert getattr(found.candidates[i], name) == values[found.codes[i, column]]


@pytest.mark.parametrize("vthreads", [1, 2])
def test_steps_reach_every_neighbour_and_nothing_else(layer, tiny, vthreads):
    found = tile_space(layer.template, tiny, vthreads)
    rng = np.random.default_rng(0)
    names = [f.name for f in fields(found.candidates[0])]
    for point in rng.integers(len(found), size=5).tolist():
        around = found.neighbours(point)
        for each in around:
            differing = [c for c in found.free if found.codes[each, c] != found.codes[point, c]]
            assert len(differing) == 1, [names[c] for c in differing]
        reached = set(found.step(np.full(60 * len(around), point), rng).tolist())
        assert reached == set(around)


def test_walks_reach_the_whole_space(layer, tiny):
    found = tile_space(layer.template, tiny, 2)
    seen, edge = {0}, [0]
    while edge:
        edge = [n for p in edge for n in found.neighbours(p) if n not in seen]
        seen.update(edge)
    assert len(seen) == len(found)


def test_children_are_legal(layer, tiny):
    found, rng = tile_space(layer.template, tiny, 2), np.random.default_rng(0)
    pairs = rng.integers(len(found), size=(20, 2))
    assert all(0 <= found.cross(int(a), int(b), rng) < len(found) for a, b in pairs)
    assert found.cross(7, 7, rng) == 7


def test_no_tile_is_an_error(tiny):
    single = Pool2d("max", 1, 1, 1, 1, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 0, 0, -128, 127)
    with pytest.raises(TilingError, match="expected a tile for 2 threads, found none"):
        tile_space(single, tiny, 2)
