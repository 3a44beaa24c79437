"""The records that ship: of bundled configs, legal today, and true while they are fresh."""

from __future__ import annotations

import pytest

from vdla.compiler import models
from vdla.compiler.build import accelerator_layers
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.search.records import best, load
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.simulation import Simulation
from vdla.compiler.targets.accelerator.search.tile_records import (
    BUNDLED,
    BUNDLED_PATH,
    TileRecord,
    make_tile,
)
from vdla.compiler.targets.accelerator.search.workload import Workload
from vdla.isa.config import config_names, load_config

PAPER = load_config("paper")


def layers(model):
    return accelerator_layers(import_onnx(models.model_path(model)), PAPER)[0]


def test_one_record_per_workload_of_a_bundled_config():
    hashes = {load_config(name).hash for name in config_names()}
    bundled = load(BUNDLED_PATH, TileRecord)
    assert {r.workload.config.hash for r in bundled} <= hashes
    assert len(best(bundled)) == len(bundled)
    assert all(r.status == "ok" for r in bundled)


@pytest.mark.parametrize("vthreads", [1, 2])
def test_the_baseline_is_tuned_as_well_as_the_hidden_schedule(vthreads):
    for op in layers("resnet18"):
        threads = default_tile(op.template, PAPER, vthreads).vthreads
        assert Workload.of(op.template, PAPER, threads) in BUNDLED.best, op.node.name


@pytest.mark.parametrize("vthreads", [1, 2])
def test_recorded_cycles_are_measured_cycles(vthreads):
    for op in layers("digits"):
        tile = default_tile(op.template, PAPER, vthreads)
        record = BUNDLED.best[Workload.of(op.template, PAPER, tile.vthreads)]
        assert tile == make_tile(record)
        found = Simulation(op, PAPER).measure(tile)
        assert found.status == "ok"
        if record.fresh:  # else: `make records` brings them up to date
            assert found.cycles == record.cycles
