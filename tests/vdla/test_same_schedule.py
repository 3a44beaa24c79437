"""One schedule with its means of hiding latency apart."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx
import pytest
from qdq import QdqModel

from vdla import api
from vdla.analysis.comparison import find_workload
from vdla.analysis.same_schedule import VARIANTS, variants
from vdla.compiler import models
from vdla.compiler.graph.window import Window
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.isa.config import load_config
from vdla.isa.ring import Engine, engines, ring_of
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


FOUR = load_config("tiny", ["vector_engine=1"])


@pytest.fixture(scope="module")
def addition(tmp_path_factory):
    """A convolution whose result is added to its data: an operator for four engines."""
    m = QdqModel(seed=8)
    x = m.input("x", (1, 8, 8, 8))
    m.output(m.add(m.conv(x, 8, Window.square(3)), x))
    path = tmp_path_factory.mktemp("addition") / "addition.onnx"
    onnx.save(m.model(), path)
    ((_, op),) = find_workload({"addition": path}, FOUR).operators
    return op


@pytest.mark.parametrize("engine", [e for e in engines(FOUR) if e != Engine.COMPUTE])
def test_an_engine_alone_never_works_beside_another(addition, engine):
    tile = default_tile(addition.template, FOUR, 2)
    both, alone = (layer_program(addition, tile, FOUR, alone=a) for a in ((), (engine,)))
    assert check(FOUR, alone.program.instructions, alone.dram, alone.program.base) == []
    runs = [simulate(FOUR, p.program.instructions, p.dram, p.program.base) for p in (both, alone)]
    beside = [_beside(run, engine) for run in runs]
    assert beside[0] > beside[1] == 0
    assert runs[1].cycles > runs[0].cycles


def _beside(run, engine):
    """How many pairs of instructions, one of them the engine's and the other another's, overlap."""
    ring, spans = ring_of(run.config), list(zip(run.start, run.finish, strict=True))[:-1]
    runs_on = [ring.engine_of(each) for each in run.instructions[:-1]]
    return sum(
        a[0] <= b[1] and b[0] <= a[1]
        for a, mine in zip(spans, runs_on, strict=True)
        for b, other in zip(spans, runs_on, strict=True)
        if mine == engine != other
    )


def test_both_is_what_compare_measures(found):
    hidden = api.compare("digits", "tiny", (2,))
    cycles = {layer.name: layer.measured[2].cycles for layer in hidden.layers}
    assert {layer.name: layer.cycles["both"] for layer in found.layers} == cycles
    assert found.cycles("both") == hidden.cycles(2)


def test_every_means_helps_or_does_nothing(found):
    assert found.cycles("both") <= found.cycles("copies") <= found.cycles("neither")
    assert found.cycles("threads") <= found.cycles("neither")
    assert found.cycles("neither") < found.cycles("serialized")


def test_the_command_prints_it(vdla, found, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(api, "same_schedule", lambda *what: asked.append(what) or found)
    arguments = ["compare", "digits", "-c", "tiny", "--same-schedule", "--json"]
    page = tmp_path / "page.html"
    result = vdla(*arguments, "--out", tmp_path, "--report", page)
    assert result.code == 0
    ((model, options),) = asked
    assert (model, options.config.name) == ("digits", "tiny")
    same = result.json["same_schedule"]
    assert list(same["total"]["cycles"]) == list(variants(options.config))
    assert set(variants(options.config)) - set(VARIANTS) == {"LOAD alone", "STORE alone"}
    assert same["vthreads"] == 2
    assert (tmp_path / "digits-tiny-same-schedule.png").stat().st_size > 10_000
    assert '"same":{"vthreads":2' in page.read_text()
