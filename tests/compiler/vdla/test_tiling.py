"""Default tiles: one per accelerator layer of the bundled networks, legal on every config."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import pytest

from vdla.compiler.build import accelerator_layers
from vdla.compiler.frontend import import_onnx
from vdla.compiler.models import model_path
from vdla.compiler.topi.vdla import operators
from vdla.compiler.topi.vdla.conv2d import ConvShape, Residual, kept_copies
from vdla.compiler.topi.vdla.elementwise import AddShape
from vdla.compiler.topi.vdla.operators import default_tile
from vdla.compiler.topi.vdla.pool import PoolShape
from vdla.compiler.topi.vdla.tiling import NUMBERS, best, is_legal, legal_tiles
from vdla.isa.config import config_names, load_config

NETWORKS = ("resnet18", "mobilenet")
CONV = ConvShape(1, 1, 2, 4, 9, 12, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 0, 0, -128, 127)
SHAPES = (
    CONV,
    replace(CONV, kernel=(1, 1), strides=(2, 1), residual=Residual(1, 1, 0, 0, 0, 0)),
    PoolShape("max", 1, 4, 9, 12, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 0, 0, -128, 127),
    AddShape(60, 1, 1, 0, 0, 0, -128, 127),
)


@cache
def imported(network):
    return import_onnx(model_path(network))


def footprint(shape, tile, config):
    """Entries of INP, WGT and ACC that a tile keeps alive, counted from the arithmetic alone."""
    block = config.channel_block
    ins, outs = block // config.block_in, block // config.block_out
    if not isinstance(shape, ConvShape | PoolShape):
        return 0, 0, 2 * tile.vectors * tile.vthreads + 1
    strides = shape.steps if isinstance(shape, ConvShape) else shape.strides
    window = 1
    for n, k, s, d in zip(
        (tile.rows, tile.cols), shape.kernel, strides, shape.dilations, strict=True
    ):
        window *= (n - 1) * s + (k - 1) * d + 1
    pixels = tile.rows * tile.cols
    if isinstance(shape, PoolShape):
        return 0, 0, tile.blocks * outs * (window + pixels) * tile.vthreads + 1
    taps = shape.kernel[0] * shape.kernel[1]
    copies = 2 if shape.residual else 1
    blocks = shape.groups * shape.outputs if tile.resident else tile.outputs * tile.vthreads
    vectors = 2 * blocks * outs + (copies - 1)
    kept = kept_copies(shape, tile)
    inputs, inp = (shape.inputs, kept) if tile.keep == "inp" else (tile.inputs, tile.stages)
    weights = tile.weights * tile.inputs * tile.stages
    if tile.keep == "wgt":
        weights = tile.outputs * shape.inputs * kept
    return (
        inputs * ins * window * inp,
        weights * outs * ins * taps,
        tile.outputs * outs * pixels * copies * tile.vthreads + vectors,
    )


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("config_name", config_names())
def test_default_tiles_are_legal(network, config_name):
    config = load_config(config_name)
    layers, _ = accelerator_layers(imported(network), config)
    depths = [config.depth(buffer) for buffer in ("inp", "wgt", "acc")]
    for shape in {layer.shape for layer in layers}:
        tile = default_tile(shape, config, 2)
        assert tile in legal_tiles(shape, config, tile.vthreads)
        used = footprint(shape, tile, config)
        assert all(n <= depth for n, depth in zip(used, depths, strict=True)), (shape, tile)


@pytest.mark.parametrize("vthreads", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_tile_is_judged_as_all_of_them_are(shape, vthreads):
    """Of every legal tile, and of every tile that takes one knob from another or beyond them."""
    config = load_config("tiny")
    legal = set(legal_tiles(shape, config, vthreads))
    assert legal
    knobs = {f.name: {getattr(tile, f.name) for tile in legal} for f in fields(next(iter(legal)))}
    for name, values in knobs.items():
        strange = {0, 5, 999, None, *values} if name not in ("keep", "axis") else {"?", *values}
        for tile in {replace(tile, **{name: value}) for tile in legal for value in strange}:
            assert is_legal(tile, shape, config, vthreads) == (tile in legal), tile
    assert not any(is_legal(tile, shape, config, vthreads + 1) for tile in legal)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_one_search_for_layers_of_one_geometry(shape, monkeypatch):
    """Zero points, bounds and factors, other in every layer, don't start a search anew."""
    config = load_config("tiny")
    searched = []
    monkeypatch.setattr(operators, "best", lambda s, c, v: searched.append(s) or best(s, c, v))
    operators._default_tile.cache_clear()
    tiles = set()
    for value in (1, 2, 3):
        numbers = {f.name: value for f in fields(shape) if f.name in NUMBERS}
        other = replace(shape, **numbers)
        if getattr(shape, "residual", None):
            other = replace(other, residual=Residual(*[value] * 6))
        tiles.add(default_tile(other, config, 2, None))
        assert best(other, config, 2) in tiles
    assert len(tiles) == len(searched) == 1
