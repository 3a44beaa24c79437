"""The analytic model of the machine: engines wait for what they need."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from vdla.compiler.targets.accelerator.lower import lower_schedule
from vdla.compiler.targets.accelerator.operators import cost as cost_model
from vdla.compiler.targets.accelerator.operators.add import Add
from vdla.compiler.targets.accelerator.operators.batch_norm import BatchNorm
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d, ConvTile, Residual
from vdla.compiler.targets.accelerator.operators.cost import (
    STARTUP,
    TileCost,
    estimate,
    pace,
    timing,
)
from vdla.compiler.targets.accelerator.operators.minimum import Minimum
from vdla.compiler.targets.accelerator.operators.pool import Pool2d
from vdla.compiler.targets.accelerator.operators.recurrence import COLUMNS, Room, follow, in_groups
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, AluOp, Gemm
from vdla.isa.operations import X
from vdla.isa.options.lanes import alu_groups

PAPER = load_config("paper")


@pytest.mark.parametrize("groups", [4, 5, 6, 40])
@pytest.mark.parametrize("alu", [0, 300])
@pytest.mark.parametrize("threads", [1, 2])
def test_long_runs_are_extrapolated_from_their_period(groups, alu, threads):
    """Here every group takes as long as the one before it, so nothing is lost."""
    work = TileCost(
        pairs=groups, singles=0, threads=threads, steps=2, parts=2,
        inp=30, wgt=20, gemm=500, side=0, alu=alu, store=90,
    )  # fmt: skip
    row, machine = np.array([getattr(work, name) for name in COLUMNS], float), timing(PAPER)
    room = Room.of(row[None])
    follow(row, threads, groups, machine, room)
    last = room.marks[groups - 1]
    assert in_groups(row, threads, groups, machine, room) == last
    assert in_groups(row, threads, 0, machine, room) == 0


@pytest.mark.parametrize("side", [0, 30, 400])
@pytest.mark.parametrize("gemm", [50, 700])
def test_a_tile_alone(side, gemm):
    """The bus loads one thing after the other; GEMM, then ALU, then STORE wait for theirs."""
    work = TileCost(
        pairs=0, singles=1, threads=1, steps=1, parts=1,
        inp=300, wgt=200, gemm=gemm, side=side, alu=70, store=90,
    )  # fmt: skip
    least = 300 + 200 + max(gemm, side) + 70 + 90 + 2 * PAPER.memory.latency
    assert least <= estimate(work, PAPER) <= least + 4 * STARTUP


@pytest.mark.parametrize(("inp_every", "wgt_every"), [(1, 1000), (1000, 1)])
def test_a_place_is_free_a_hand_over_after_its_last_use(inp_every, wgt_every, monkeypatch):
    """With one copy of what streams by, every tile waits for the place that the last one read."""
    work = TileCost(
        pairs=0, singles=20, threads=1, steps=1, parts=1, inp=300, wgt=300, gemm=500, side=0,
        alu=0, store=10, shared=False, stages=1, inp_every=inp_every, wgt_every=wgt_every,
    )  # fmt: skip
    short = estimate(work, PAPER)
    monkeypatch.setattr(cost_model, "STARTUP", STARTUP + 100)
    assert estimate(work, PAPER) >= short + 19 * 100


@pytest.mark.parametrize("residual", [None, Residual(1, 1, 0, 0, -128, 127)])
def test_a_convolutions_work_is_what_its_stream_does(residual):
    """In one tile of 2 blocks of channels by 6 rows by 5 columns."""
    window = (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)
    shape = Conv2d(1, 1, 2, 2, 6, 5, *window, 0, 0, -128, 127, residual)
    tile = ConvTile(outputs=2, rows=6, cols=5, inputs=2, weights=2)
    cost = shape.cost(tile, PAPER)
    stream = [op.instruction for op in lower_schedule(shape.schedule(tile, PAPER), PAPER).ops]
    assert cost.gemm == sum(i.steps() for i in stream if isinstance(i, Gemm))
    assert cost.alu == (alu_cycles(stream, PAPER) + STARTUP if residual else 0)


def alu_cycles(stream, config):
    """Cycles of a stream's ALU operations: multiplications take the lanes in groups."""
    groups = {op: alu_groups(config) if op.x is X.EARLY else 1 for op in AluOp}
    return sum(i.steps() * groups[AluOp(i.alu_op)] for i in stream if isinstance(i, Alu))


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize(
    "shape",
    [
        Add(60, 1, 1, 0, 0, 0, -128, 127),
        Minimum(60, False, 0, 0, 0, -128, 127),
        Minimum(60, True, 0, 0, 0, -128, 127),
        BatchNorm(1, 4, 15, 1, 0, 0, -128, 127),
        Pool2d("max", 1, 4, 9, 12, (3, 3), (3, 3), (0, 0, 0, 0), (1, 1), 0, 0, -128, 127),
    ],
)
def test_multiplications_take_their_lanes_in_groups(shape, groups):
    """Of templates without a GEMM: where it reduces, the ALU has the place of one."""
    config = load_config("paper", [f"alu_groups={groups}"])
    tile = shape.best(config, 1)
    cost = shape.cost(tile, config)
    stream = [op.instruction for op in lower_schedule(shape.schedule(tile, config), config).ops]
    assert cost.tiles * (cost.steps * cost.gemm + cost.alu) == alu_cycles(stream, config)


@pytest.mark.parametrize(
    ("settings", "cycles"),
    [
        ([], 2),
        (["store_groups=1"], 1),
        (["store_groups=4"], 4),
        (["store_groups=4", "memory.bytes_per_cycle=4"], 2),
        (["store_groups=1", "memory.bytes_per_cycle=4"], 1),
    ],
)
def test_a_store_takes_its_own_cycles_or_the_buss(settings, cycles):
    assert pace(load_config("paper", settings)) == cycles


def test_a_small_tile_hides_less_of_a_store():
    """Of 3, 3 and 1 rows a GEMM waits longer for its place in ACC than of three times the mean."""
    even = TileCost(
        pairs=0, singles=30, threads=2, inp=50, gemm=210, store=60, shared=False, stages=8
    )
    uneven = replace(even, down=3, tall=9 / 7)
    assert even.traffic == uneven.traffic
    alike, mixed = float(estimate(even, PAPER)[0]), float(estimate(uneven, PAPER)[0])
    assert alike == pytest.approx(30 * 210, rel=0.1)
    assert mixed > alike + 10 * 50


@pytest.mark.parametrize("vthreads", [1, 2])
def test_candidates_are_the_tiles_in_columns(vthreads):
    """Each tile stands once among the candidates, at its place."""
    shape = Conv2d(1, 1, 4, 2, 6, 5, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 0, 0, -128, 127)
    tiles = list(shape.tiles(PAPER, vthreads))
    rows = {}
    for places, tile in shape.candidates(PAPER, vthreads):
        for number, place in enumerate(places.tolist()):
            values = {f.name: getattr(tile, f.name) for f in fields(tile)}
            rows[place] = ConvTile(**{
                n: v[number].item() if isinstance(v, np.ndarray) else v for n, v in values.items()
            })  # fmt: skip
    assert [rows[place] for place in range(len(tiles))] == tiles
