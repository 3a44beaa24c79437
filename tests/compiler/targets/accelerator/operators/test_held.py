"""Which tiles the buffers hold is asked of the loops, of few of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler.targets.accelerator.kernels import kernel_of
from vdla.compiler.targets.accelerator.operators import loops
from vdla.compiler.targets.accelerator.operators.concat import Concat
from vdla.compiler.targets.accelerator.operators.cost import TilingError, cheapest
from vdla.compiler.targets.accelerator.operators.held import first_held
from vdla.compiler.targets.accelerator.operators.softmax import Softmax
from vdla.compiler.targets.accelerator.operators.template import Tile, alike
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.isa.config import load_config

CONFIG = load_config("paper", ["table_bytes=2048", "reciprocal_units=1"])
SOFTMAX = Softmax(12, 40, 1, 3, 5, 1, -128, 127)


@dataclass(frozen=True)
class Box(Tile):
    """A tile of two numbers and a choice."""

    rows: int
    cols: int
    resident: bool
    vthreads: int = 1


@given(st.permutations([Box(*each) for each in product((1, 2, 3, 5), (1, 4, 6), (True, False))]),
       st.integers(0, 40), st.integers(0, 20))  # fmt: skip
def test_the_first_that_is_held_is_found(tiles, room, extra):
    asked = []

    def held(tile: Box) -> bool:
        asked.append(tile)
        return tile.rows * tile.cols + extra * tile.resident <= room

    wanted = next((tile for tile in tiles if held(tile)), None)
    asked.clear()
    assert first_held(tiles, held) == wanted
    assert len(asked) == len(set(asked)) < len(tiles)


def test_a_tile_that_is_held_is_the_only_one_that_is_asked():
    asked = []
    assert first_held([Box(2, 3, True), Box(1, 1, True)], lambda tile: not asked.append(tile))
    assert asked == [Box(2, 3, True)]


def test_kernels_are_made_of_the_loops_that_said_it_is_held():
    tile = default_tile(SOFTMAX, CONFIG, 2)
    before = loops._loops.cache_info().misses
    kernel_of(SOFTMAX, tile, CONFIG)
    assert loops._loops.cache_info().misses == before


def test_layers_of_one_geometry_ask_once():
    default_tile(SOFTMAX, CONFIG, 2)
    before = loops._loops.cache_info().misses
    default_tile(replace(SOFTMAX, zero=7, factor=9), CONFIG, 1)
    default_tile(SOFTMAX, CONFIG, 1)
    default_tile(replace(SOFTMAX, zero=7, factor=9), CONFIG, 2)
    asked = loops._loops.cache_info().misses - before
    default_tile(replace(SOFTMAX, zero=8), CONFIG, 1)
    assert loops._loops.cache_info().misses - before == asked


@pytest.mark.parametrize("vthreads", [1, 2])
def test_tiles_are_those_whose_kernels_can_be_made(vthreads):
    """ACC of 64 entries holds some rows' pixels and what is made of them, and no more rows."""
    config = replace(CONFIG, acc_bytes=64 * CONFIG.acc_entry)
    template = Softmax(9, 11, 1, 3, 5, 0, -128, 127)
    held = list(template.tiles(config, vthreads))
    assert 0 < len(held) < len(list(template.sizes(config, vthreads)))
    for tile in template.sizes(config, vthreads):
        assert loops.is_held(template, tile, config) == (tile in held)
    assert template.best(config, vthreads) in held
    assert template.is_legal(held[0], config, vthreads)


def test_the_best_of_many_is_the_best_of_those_that_are_held():
    """A row of 5,000 pixels has 140 tiles; the model ranks 64 of those that ACC holds."""
    config = replace(CONFIG, acc_bytes=64 * CONFIG.acc_entry)
    template = Concat(1, (5000, 100), 1, (3, 4), 5, -100, 100)
    tiles = list(template.tiles(config, 2))
    assert len(tiles) < len(list(template.sizes(config, 2)))
    groups = [(template.cost(tile, config), places) for places, tile in alike(tiles)]
    assert template.best(config, 2) == tiles[cheapest(groups, config)]


def test_no_tile():
    config = replace(CONFIG, acc_bytes=8 * CONFIG.acc_entry)
    with pytest.raises(TilingError, match="expected buffers that hold one tile of softmax, found"):
        SOFTMAX.best(config, 1)
    assert not SOFTMAX.has_room(config)


def test_a_geometry_has_loops_of_its_own():
    """Concatenations of one geometry have as many parts, whose zero points it leaves out."""
    one = Concat(2, (30, 60), 1, (3, 4), 5, -100, 100)
    assert loops.is_held(one.geometry, one.best(CONFIG, 2), CONFIG)
