"""Loop features: against a hand-computed example, and against the lowered streams."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler import models
from vdla.compiler.build import accelerator_layers
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.search.table import Table
from vdla.compiler.targets.accelerator.lower import lower_schedule
from vdla.compiler.targets.accelerator.operators.add import Add
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d, ConvTile, Residual
from vdla.compiler.targets.accelerator.operators.minimum import Minimum
from vdla.compiler.targets.accelerator.operators.pairwise import VectorTile
from vdla.compiler.targets.accelerator.operators.pool import Pool2d, PoolTile
from vdla.compiler.targets.accelerator.search.tile_features import features
from vdla.compiler.targets.accelerator.search.tile_space import tile_space
from vdla.compiler.targets.accelerator.search.tile_task import tile_tasks
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, Gemm, Load, Mem, Store
from vdla.isa.options.weights4 import WGT4

PAPER, TINY = load_config("paper"), load_config("tiny")
# 64 to 128 channels in blocks of 16, 1×1, on 8×8 pixels: everything divides.
SHAPE = Conv2d(1, 1, 4, 8, 8, 8, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 0, 0, -128, 127)
TILE = ConvTile(outputs=4, rows=4, cols=8, inputs=2, weights=2, vthreads=2)
POOL = Pool2d("max", 1, 4, 12, 12, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 0, 0, -128, 127)


def test_an_example_by_hand():
    rows = features(SHAPE, Table.of([TILE, replace(TILE, stationary="wgt")]), PAPER)
    row = rows.row(0)
    tiles = 2 * 2  # halves of the channels, halves of the image
    assert row["trips.tile"] == tiles
    assert row["trips.step"] == tiles * 2
    assert row["trips.part"] == tiles * 2 * 2
    assert row["inp@step"] == 2 * 4 * 8 * 16
    assert row["inp@tile"] == 4 * 4 * 8 * 16
    assert row["inp@layer"] == 4 * 8 * 8 * 16
    assert row["inp.moved"] == tiles * 4 * 4 * 8 * 16
    assert row["inp.again"] == 2  # once per half of the output channels
    assert row["wgt@part"] == 2 * 2 * 16 * 16
    assert row["wgt.moved"] == tiles * 4 * 4 * 16 * 16
    assert row["wgt.again"] == 2  # once per half of the image
    assert row["out.moved"] == row["out@layer"] == 8 * 8 * 8 * 16
    assert row["bias.moved"] == 2 * 4 * 128  # resident: once
    macs = 64 * 128 * 64
    assert row["wgt.reuse"] == macs / row["wgt.moved"]
    moved = sum(row[f"{b}.moved"] for b in ("inp", "wgt", "out", "bias"))
    assert row["ops.per.byte"] == macs / moved
    assert row["tokens"] == 2 * 16 + 2 * 4
    assert (row["stationary="], row["stationary=wgt"]) == (1, 0)
    assert rows.row(1)["wgt.again"] == 1
    assert (row["rows"], row["resident"], row["vthreads"]) == (4, 1, 2)
    # One step's image and a part's weights go before the first product, a part's outputs after it.
    assert row["ends"] == row["inp@step"] + row["wgt@part"] + row["out@part"]
    assert row["floor"] == max(moved / 8, macs / 256 + row["ends"] / 8)


def test_no_tile_is_faster_than_its_floor(tiny):
    (path,) = models.model_paths("digits").values()
    tried = 0
    operators, _ = accelerator_layers(import_onnx(path), tiny)
    for task in tile_tasks([(op.node.name, op) for op in operators], tiny, (1, 2)):
        floor = task.features.floor
        for point in [int(floor.argmin()), *np.random.default_rng(0).integers(len(floor), size=1)]:
            found = task.meter.measure(task.space.candidates[point])
            assert found.cycles is None or found.cycles >= floor[point], task.space.candidates[
                point
            ]
            tried += found.cycles is not None
        assert floor.min() >= task.bound - 1e-6
    assert tried > 10


def moved(shape, tile, config):
    """Bytes that the lowered stream moves, by memory, and its GEMM instructions."""
    bytes_ = dict.fromkeys(("inp", "wgt", "out", "residual"), 0)
    gemms = 0
    for op in lower_schedule(shape.schedule(tile, config), config).ops:
        each = op.instruction
        if isinstance(each, Load | Store):
            entries = each.x_size * each.y_size * each.z_size
            if isinstance(each, Store):
                bytes_["out"] += entries * config.out_entry
            elif each.memory == Mem.INP:
                bytes_["inp"] += entries * config.inp_entry
            elif each.memory == Mem.WGT:
                bytes_["wgt"] += entries * config.wgt_entry
            elif each.memory == WGT4:
                bytes_["wgt"] += entries * config.wgt_entry // 2
            elif each.memory == Mem.ACC8:
                bytes_["residual"] += entries * config.out_entry
        gemms += isinstance(each, Gemm)
    return bytes_, gemms


@pytest.mark.parametrize(
    ("vthreads", "residual"),
    [
        (2, None),
        (2, Residual(1, 1, 0, 0, -128, 127)),
        pytest.param(1, None, marks=pytest.mark.long),
        pytest.param(1, Residual(1, 1, 0, 0, -128, 127), marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(
    "window",
    [
        {},
        {"kernel": (3, 3), "pads": (1, 1, 1, 1), "height": 9},
        {"strides": (2, 2), "height": 11},
        {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "height": 13},
    ],
)
def test_traffic_is_what_the_stream_moves(vthreads, residual, window):
    shape = replace(SHAPE, inputs=2, outputs=2, residual=residual, **window)
    found = tile_space(shape, PAPER, vthreads)
    picked = [found.candidates[i] for i in np.random.default_rng(0).integers(len(found), size=6)]
    rows = features(shape, Table.of(picked), PAPER)
    for i, tile in enumerate(picked):
        row, (stream, gemms) = rows.row(i), moved(shape, tile, PAPER)
        for buffer in ("inp", "wgt", "out", *(["residual"] if residual else [])):
            assert row[f"{buffer}.moved"] == stream[buffer], (buffer, tile)
        assert gemms >= row["trips.part"]


@pytest.mark.parametrize("vthreads", [1, 2])
def test_nibbles_are_half_the_traffic(vthreads):
    """Of the weights, in the model and in the stream; tiles may be others, their sizes are not."""
    config = load_config("paper", ["weights4=1"])
    shape = replace(SHAPE, inputs=2, outputs=2, kernel=(3, 3), pads=(1, 1, 1, 1))
    small = replace(shape, weights4=True)
    candidates = tile_space(shape, PAPER, vthreads).candidates
    assert tile_space(small, config, vthreads).candidates == candidates
    picked = [candidates[i] for i in np.random.default_rng(0).integers(len(candidates), size=6)]
    plain = features(shape, Table.of(picked), PAPER)
    rows = features(small, Table.of(picked), config)
    for i, tile in enumerate(picked):
        stream, _ = moved(small, tile, config)
        assert rows.row(i)["wgt.moved"] == stream["wgt"] == plain.row(i)["wgt.moved"] / 2
        assert rows.row(i)["inp.moved"] == plain.row(i)["inp.moved"]
        works = shape.cost(tile, PAPER), small.cost(tile, config)
        assert works[1].traffic < works[0].traffic
        assert works[1].compute(config) == works[0].compute(PAPER)


@settings(max_examples=40)
@given(st.data())
def test_invariants(data):
    size, kernel = data.draw(st.integers(4, 14)), data.draw(st.sampled_from([1, 3]))
    blocks = st.sampled_from([1, 2, 4, 6])
    pads = (kernel // 2,) * 4
    shape = Conv2d(
        1, 1, data.draw(blocks), data.draw(blocks), size, size, (kernel, kernel), (1, 1), pads,
        (1, 1), 0, 0, -128, 127,
    )  # fmt: skip
    found = tile_space(shape, PAPER, 1)
    rows = features(shape, found, PAPER)
    column = {name: rows.values[:, i] for i, name in enumerate(rows.names)}
    assert np.isfinite(rows.values).all()
    assert (rows.values >= 0).all()
    for buffer in ("inp", "wgt", "out", "bias"):
        assert (column[f"{buffer}.again"] >= 1 - 1e-9).all(), buffer
        assert (column[f"{buffer}@tile"] <= column[f"{buffer}@layer"] + 1e-9).all(), buffer
    for outer, inner in (("tile", "step"), ("step", "part")):
        assert (column[f"trips.{outer}"] <= column[f"trips.{inner}"]).all()
    assert (column["wgt@part"] <= column["wgt@step"]).all()
    assert (rows.floor * 8 >= column["moved"] - 1e-6).all()
    assert (column["floor.again"] >= 1 - 1e-9).all()
    assert (column["tokens"] <= 2 * column["commands"]).all()


def test_a_pool_by_hand():
    """64 channels in blocks of 16; 4 × 6 pixels of 6 × 6 under windows of 3 × 3, every second."""
    row = features(POOL, Table.of([PoolTile(2, 4, 6, 2)]), PAPER).row(0)
    assert (row["trips.tile"], row["trips.step"], row["trips.part"]) == (4, 4, 4)  # 2 × 2
    assert row["inp@layer"] == 64 * 12 * 12
    assert row["inp@tile"] == 32 * 8 * 12  # with what the windows share, without the padding
    assert (
        row["inp.moved"] == 64 * (8 + 5) * 12
    )  # 12 rows: 8 and 5 of them; the padding is nobody's
    assert row["out@layer"] == row["out.moved"] == 64 * 36
    assert row["out@tile"] == 32 * 24
    assert row["commands"] == 4 * (1 + 1 + 1)
    assert row["ops.per.byte"] == 64 * 36 * 9 / (row["inp.moved"] + row["out.moved"])
    assert row["ends"] == 32 * (8 * 12 + 2 * 6)  # the first tile's window, the last one's outputs


def int8_traffic(template, tile, config):
    """Bytes that the lowered stream loads and stores as int8, and how many instructions do it."""
    loaded, stored, commands = 0, 0, {"inp": 0, "alu": 0, "out": 0}
    for op in lower_schedule(template.schedule(tile, config), config).ops:
        each = op.instruction
        if isinstance(each, Load) and each.memory == Mem.ACC8:
            loaded += each.x_size * each.y_size * each.z_size * config.out_entry
            commands["inp"] += 1
        elif isinstance(each, Store):
            stored += each.x_size * each.y_size * each.z_size * config.out_entry
            commands["out"] += 1
        commands["alu"] += isinstance(each, Alu)
    return loaded, stored, commands


def divides(template, tile):
    """Whether the tiles of a pool are all of one size, and as many for each thread."""
    if not isinstance(tile, PoolTile):
        return True
    whole = {"y": template.out_height / tile.rows, "x": template.out_width / tile.cols}
    counts = {**whole, "c": template.blocks / tile.blocks}
    return all(n == int(n) for n in whole.values()) and counts[tile.axis] % tile.vthreads == 0


@pytest.mark.parametrize("template", [
    POOL, replace(POOL, kernel=(2, 3), strides=(2, 1), pads=(0, 1, 0, 1), height=13),
    replace(POOL, kind="sum", kernel=(3, 3), strides=(1, 1), pads=(0, 0, 0, 0)),
    Add(640, 1, 1, 0, 0, 0, -128, 127),
    Minimum(77, False, 0, 0, 0, -128, 127), Minimum(77, True, 0, 0, 0, -128, 127),
], ids=lambda t: t.NAME)  # fmt: skip
@pytest.mark.parametrize("vthreads", [1, 2])
def test_what_a_tile_without_a_reduction_moves(template, vthreads):
    found = [t for t in tile_space(template, TINY, vthreads).candidates if divides(template, t)]
    picked = [found[i] for i in np.random.default_rng(0).integers(len(found), size=6)]
    rows = features(template, Table.of(picked), TINY)
    for i, tile in enumerate(picked):
        row, (loaded, stored, commands) = rows.row(i), int8_traffic(template, tile, TINY)
        assert row["inp.moved"] == loaded, tile
        assert row["out.moved"] == stored == row["out@layer"], tile
        assert {name: row[f"commands.{name}"] for name in commands} == commands, tile


def test_pools_and_additions_have_features():
    pool = features(POOL, tile_space(POOL, TINY, 2), TINY)
    assert (pool.values[:, pool.names.index("inp.again")] >= 1).all()
    add = features(Add(64, 1, 1, 0, 0, 0, -128, 127), Table.of([VectorTile(16, 2)]), TINY)
    row = add.row(0)
    assert (row["trips.tile"], row["inp.moved"], row["out.moved"]) == (4, 2 * 64 * 4, 64 * 4)
