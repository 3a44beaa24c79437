"""One schedule with its means of hiding latency apart."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from vdla import api
from vdla.analysis.comparison import find_workload
from vdla.analysis.same_schedule import VARIANTS
from vdla.cli import app
from vdla.compiler import models
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.isa.config import load_config
from vdla.isa.ring import engines, ring_of
from vdla.sim.checker import check
from vdla.sim.machine import simulate


@pytest.fixture(scope="module")
def found(once):
    return once("digits-same-schedule", lambda: api.same_schedule("digits", "tiny"))


def programs():
    """A layer of digits as it is, and serialized."""
    config = load_config("tiny")
    _, op = find_workload(models.model_paths("digits"), config).operators[0]
    tile = default_tile(op.template, config, 2)
    return config, [layer_program(op, tile, config, alone=a) for a in ((), engines(config))]


def test_serialized_engines_never_overlap():
    config, (hidden, serial) = programs()
    program = serial.program
    assert check(config, program.instructions, serial.dram, program.base) == []
    run = simulate(config, program.instructions, serial.dram, program.base)
    runs_on = map(ring_of(run.config).engine_of, run.instructions)
    spans = sorted(zip(run.start, run.finish, runs_on, strict=True))
    for (_, finish, engine), (start, _, other) in pairwise(spans):
        assert start > finish or engine == other
    assert run.cycles > simulate(config, hidden.program.instructions, hidden.dram.copy(),
                                 hidden.program.base).cycles  # fmt: skip


def test_only_the_tokens_differ_and_the_numbers_do_not():
    config, built = programs()
    flags = {"pop_prev": 0, "pop_next": 0, "push_prev": 0, "push_next": 0}
    bare = [[str(i.replace(**flags)) for i in p.program.instructions] for p in built]
    assert bare[0] == bare[1]
    images = []
    for each in built:
        dram, image = each.dram.copy(), next(iter(each.addresses.values()))
        dram[image : image + 64] = np.random.default_rng(0).integers(0, 255, 64)
        simulate(config, each.program.instructions, dram, each.program.base)
        images.append(dram[: each.program.base])
    np.testing.assert_array_equal(*images)


def test_both_is_what_compare_measures(found):
    hidden = api.compare("digits", "tiny", (2,))
    cycles = {layer.name: layer.measured[2].cycles for layer in hidden.layers}
    assert {layer.name: layer.cycles["both"] for layer in found.layers} == cycles
    assert found.cycles("both") == hidden.cycles(2)


def test_every_means_helps_or_does_nothing(found):
    assert found.cycles("both") <= found.cycles("copies") <= found.cycles("neither")
    assert found.cycles("threads") <= found.cycles("neither")
    assert found.cycles("neither") < found.cycles("serialized")


def test_the_command_prints_it(found, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(api, "same_schedule", lambda *what: asked.append(what) or found)
    arguments = ["compare", "digits", "-c", "tiny", "--same-schedule", "--json"]
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path), "--report", str(page)])
    assert result.exit_code == 0
    ((model, options),) = asked
    assert (model, options.config.name) == ("digits", "tiny")
    same = json.loads(result.stdout)["same_schedule"]
    assert list(same["total"]["cycles"]) == list(VARIANTS)
    assert same["vthreads"] == 2
    assert (tmp_path / "digits-tiny-same-schedule.png").stat().st_size > 10_000
    assert '"same":{"vthreads":2' in page.read_text()
