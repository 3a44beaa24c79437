"""The analytic model of the machine: engines wait for what they need."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from vdla.compiler.targets.accelerator.lower import lower_schedule
from vdla.compiler.targets.accelerator.operators import cost as cost_model
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d, ConvTile, Residual
from vdla.compiler.targets.accelerator.operators.cost import (
    STARTUP,
    TileCost,
    estimate,
    timing,
)
from vdla.compiler.targets.accelerator.operators.recurrence import COLUMNS, Room, follow, in_groups
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, Gemm

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
    steps = {kind: sum(i.steps() for i in stream if isinstance(i, kind)) for kind in (Alu, Gemm)}
    assert cost.gemm == steps[Gemm]
    assert cost.alu == (steps[Alu] + STARTUP if residual else 0)


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
