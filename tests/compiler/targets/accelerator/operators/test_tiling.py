"""Default tiles: one per accelerator layer of the bundled networks, legal on every config."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from random import Random

import pytest

from vdla.compiler.build import accelerator_layers
from vdla.compiler.frontend import import_onnx
from vdla.compiler.models import model_path
from vdla.compiler.targets.accelerator.operators.add import Add
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d, ConvTile, Residual
from vdla.compiler.targets.accelerator.operators.conv2d.sizes import kept_copies
from vdla.compiler.targets.accelerator.operators.minimum import Minimum
from vdla.compiler.targets.accelerator.operators.pool import Pool2d
from vdla.compiler.targets.accelerator.operators.template import Template
from vdla.compiler.targets.accelerator.search import choose
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.isa.config import config_names, load_config

NETWORKS = ("resnet18", "mobilenet")
QUICK = [("resnet18", "paper"), ("mobilenet", "paper")]
CONV = Conv2d(1, 1, 2, 4, 9, 12, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 0, 0, -128, 127)
SHAPES = (
    CONV,
    replace(CONV, kernel=(1, 1), strides=(2, 1), residual=Residual(1, 1, 0, 0, 0, 0)),
    Pool2d("max", 1, 4, 9, 12, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 0, 0, -128, 127),
    Add(60, 1, 1, 0, 0, 0, -128, 127),
    Minimum(60, False, 0, 0, 0, -128, 127),
)


@cache
def imported(network):
    return import_onnx(model_path(network))


def footprint(shape, tile, config):
    """Entries of INP, WGT and ACC that a tile keeps alive, counted from the arithmetic alone."""
    block = config.channel_block
    ins, outs = block // config.block_in, block // config.block_out
    if not isinstance(shape, Conv2d | Pool2d):
        return 0, 0, 2 * tile.vectors * tile.vthreads + 1
    strides = shape.steps if isinstance(shape, Conv2d) else shape.strides
    window = 1
    for n, k, s, d in zip(
        (tile.rows, tile.cols), shape.kernel, strides, shape.dilations, strict=True
    ):
        window *= (n - 1) * s + (k - 1) * d + 1
    pixels = tile.rows * tile.cols
    if isinstance(shape, Pool2d):
        return 0, 0, tile.blocks * outs * (window + pixels) * tile.vthreads + 1
    taps = shape.kernel[0] * shape.kernel[1]
    copies = 2 if shape.residual else 1
    blocks = shape.groups * shape.outputs if tile.resident else tile.outputs * tile.vthreads
    vectors = 2 * blocks * outs + (copies - 1)
    kept = kept_copies(shape, tile)
    inputs, inp = (shape.inputs, kept) if tile.stationary == "inp" else (tile.inputs, tile.stages)
    weights = tile.weights * tile.inputs * tile.stages
    if tile.stationary == "wgt":
        weights = tile.outputs * shape.inputs * kept
    return (
        inputs * ins * window * inp,
        weights * outs * ins * taps,
        tile.outputs * outs * pixels * copies * tile.vthreads + vectors,
    )


@pytest.mark.parametrize(
    ("network", "config_name"),
    [
        pytest.param(network, name, marks=() if (network, name) in QUICK else pytest.mark.long)
        for network in NETWORKS
        for name in config_names()
    ],
)
def test_default_tiles_are_legal(network, config_name):
    config = load_config(config_name)
    layers, _ = accelerator_layers(imported(network), config)
    depths = [config.depth(buffer) for buffer in ("inp", "wgt", "acc")]
    for shape in {layer.template for layer in layers}:
        tile = default_tile(shape, config, 2)
        assert tile in shape.tiles(config, tile.vthreads)
        used = footprint(shape, tile, config)
        assert all(n <= depth for n, depth in zip(used, depths, strict=True)), (shape, tile)


@pytest.mark.parametrize(
    ("changes", "copies"),
    [
        ({}, {"inp": 1, "wgt": 1}),
        ({"rows": 4}, {"inp": 2, "wgt": 1}),
        ({"cols": 7}, {"inp": 2, "wgt": 1}),
        ({"outputs": 2, "weights": 1}, {"inp": 1, "wgt": 2}),
        ({"batch": 2}, {"inp": 2, "wgt": 2}),
        ({"groups": 2}, {"inp": 2, "wgt": 2}),
    ],
)
def test_what_changes_is_kept_once_per_thread(changes, copies):
    """Images while tiles of outputs go by, weights while windows do."""
    knobs = {"outputs": 4, "rows": 8, "cols": 8, "inputs": 1, "weights": 2}
    sizes = {name: value for name, value in changes.items() if name not in knobs}
    plain = Conv2d(1, 1, 2, 4, 8, 8, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 0, 0, 0, 0)
    shape = replace(plain, **sizes)
    knobs |= {name: value for name, value in changes.items() if name in knobs}
    for stationary, expected in copies.items():
        tile = ConvTile(**knobs, vthreads=2, stationary=stationary)
        assert kept_copies(shape, tile) == expected, stationary


@pytest.mark.parametrize("vthreads", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_tile_is_judged_as_all_of_them_are(shape, vthreads):
    """Of legal tiles, and of tiles that take one knob from another or beyond them."""
    config = load_config("tiny")
    legal = set(shape.tiles(config, vthreads))
    assert legal
    knobs = {f.name: {getattr(tile, f.name) for tile in legal} for f in fields(next(iter(legal)))}
    rng, order = Random(3), sorted(legal, key=str)
    for name, values in knobs.items():
        strange = ["?"] if name in ("stationary", "axis") else [0, 5, 999, None]
        for _ in range(25):
            value = rng.choice([*strange, *sorted(values)])
            tile = replace(rng.choice(order), **{name: value})
            assert shape.is_legal(tile, config, vthreads) == (tile in legal), tile
    for tile in rng.choices(order, k=25):
        assert shape.is_legal(tile, config, vthreads)
        assert not shape.is_legal(tile, config, vthreads + 1)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_one_search_for_layers_of_one_geometry(shape, monkeypatch):
    """Zero points, bounds and factors, other in every layer, don't start a search anew."""
    config = load_config("tiny")
    searched, best = [], Template.best
    monkeypatch.setattr(Template, "best", lambda s, c, v: searched.append(s) or best(s, c, v))
    choose._default_tile.cache_clear()
    tiles = set()
    for value in (1, 2, 3):
        numbers = {f.name: value for f in fields(shape) if shape.NUMBERS.get(f.name) == 0}
        other = replace(shape, **numbers)
        if getattr(shape, "residual", None):
            other = replace(other, residual=Residual(*[value] * 6))
        tiles.add(default_tile(other, config, 2, None))
        assert best(other, config, 2) in tiles
    assert len(tiles) == len(searched) == 1
