"""Trees of tiles: against a hand-computed example, and one tile at a time."""

from __future__ import annotations

from dataclasses import replace
from math import log2

import numpy as np
import pytest

from vdla.compiler.search.forest import depths
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d, ConvTile
from vdla.compiler.targets.accelerator.operators.pool import Pool2d
from vdla.compiler.targets.accelerator.search.tile_features import features
from vdla.compiler.targets.accelerator.search.tile_space import tile_space
from vdla.compiler.targets.accelerator.search.tile_trees import ROLES, forest
from vdla.compiler.targets.accelerator.search.tile_view import TileView
from vdla.isa.config import load_config

PAPER = load_config("paper")
# 64 to 128 channels in blocks of 16, 1×1, on 8×8 pixels: everything divides.
SHAPE = Conv2d(1, 1, 4, 8, 8, 8, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 0, 0, -128, 127)
TILE = ConvTile(outputs=4, rows=4, cols=8, inputs=2, weights=2, vthreads=2)
POOL = Pool2d("max", 1, 4, 12, 12, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 0, 0, -128, 127)


def nodes(tree, number=0):
    """Each node's features that aren't 0, by name, with its depth."""
    parents = tree.structures[tree.which[number]]
    rows = tree.rows[number, : len(parents)]
    found = [
        {name: float(value) for name, value in zip(tree.names, row, strict=True) if value}
        for row in rows
    ]
    return list(zip(depths(parents), found, strict=True))


def test_an_example_by_hand():
    (_, root), *rest = nodes(forest(SHAPE, [TILE], PAPER))
    assert root["root"] == 1
    assert root["knob.rows"] == pytest.approx(log2(1 + 4))
    assert root["knob.vthreads"] == pytest.approx(log2(1 + 2))
    loops = [(depth, node) for depth, node in rest if "extent" in node]
    assert [depth for depth, _ in loops] == [1, 2, 3, 4, 5, 6, 7]
    assert [node["extent"] for _, node in loops] == pytest.approx(
        [log2(1 + n) for n in (1, 1, 2, 2, 1, 2, 2)]  # halves of channels, of the image, of both
    )
    assert loops[-1][1]["turns"] == pytest.approx(log2(1 + 16))
    assert [("reduced" in node, "step" in node) for _, node in loops[-2:]] == [
        (True, True), (False, False),
    ]  # fmt: skip
    assert loops[-2][1]["inp.touched"] == pytest.approx(log2(1 + 2 * 4 * 8 * 16))
    by_role = {role: (depth, node) for depth, node in rest for role in ROLES if role in node}
    assert by_role["gemm"][0] == by_role["wgt"][0] == 8
    assert by_role["out"][0] == 6
    assert by_role["inp"][1]["bytes"] == pytest.approx(log2(1 + 2 * 4 * 8 * 16))
    assert by_role["inp"][1]["commands"] == pytest.approx(log2(1 + 8 * 2))
    assert by_role["wgt"][1]["bytes"] == pytest.approx(log2(1 + 2 * 2 * 16 * 16))
    cycles = 64 * 128 * 64 / PAPER.macs_per_cycle
    assert by_role["gemm"][1]["cycles"] == pytest.approx(log2(1 + cycles))


def test_what_stays_on_chip_is_loaded_further_out():
    tiles = [TILE, replace(TILE, stationary="wgt"), replace(TILE, resident=False)]
    trees = forest(SHAPE, tiles, PAPER)
    depth = [{role: d for d, node in nodes(trees, n) for role in ROLES if role in node}
             for n in range(3)]  # fmt: skip
    assert depth[1]["wgt"] < depth[0]["wgt"]
    assert (depth[0]["bias"], depth[2]["bias"]) == (1, 6)


@pytest.mark.parametrize("template", [SHAPE, POOL])
def test_trees_of_a_whole_space_are_those_of_its_tiles(template):
    space = tile_space(template, PAPER, 2)
    trees = forest(template, space.candidates, PAPER)
    assert trees.legal.all()
    assert np.isfinite(trees.rows).all()
    for point in np.random.default_rng(0).choice(len(space), 12, replace=False):
        alone = forest(template, [space.candidate(int(point))], PAPER)
        assert nodes(alone) == nodes(trees, int(point))


def test_tiles_with_other_features_have_other_trees():
    space = tile_space(SHAPE, PAPER, 2)
    trees = forest(SHAPE, space.candidates, PAPER)
    keys = {(w, rows.tobytes()) for w, rows in zip(trees.which.tolist(), trees.rows, strict=True)}
    rows = {row.tobytes() for row in features(SHAPE, space, PAPER).values}
    assert len(keys) == len(rows) == len(space)


def test_a_view_has_the_trees_of_points():
    space = tile_space(SHAPE, PAPER, 2)
    view, trees = TileView(SHAPE, space, PAPER), forest(SHAPE, space.candidates, PAPER)
    picked = view.trees([5, 3])
    assert [nodes(picked, n) for n in range(2)] == [nodes(trees, 5), nodes(trees, 3)]
    assert (len(view.trees([])), view.trees([]).names) == (0, trees.names)
