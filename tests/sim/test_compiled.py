"""The simulator on real streams: compiled layers, every shortcut against the stepped machine."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from vdla.analysis.comparison import compare_models
from vdla.api import compile
from vdla.api.modules import random_inputs
from vdla.compiler.models import model_paths
from vdla.isa.config import load_config
from vdla.isa.instructions import Finish, Gemm, Load, Mem
from vdla.isa.program import Program
from vdla.isa.ring import engines, ring_of
from vdla.runtime.devices.named import module_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor
from vdla.sim.machine import FaultError, SimulationError, simulate
from vdla.sim.stream import Stream
from vdla.sim.timing import CAUSES, Clock
from vdla.sim.trace import tokens, write_trace


def layers(config, vthreads=(1, 2)):
    """The programs of the digits network's layers, and a large layer of ResNet-18."""
    paths = model_paths("digits") | {"C8": model_paths("resnet18-convs")["C8"]}
    for path in paths.values():
        for layer in compare_models({path.stem: path}, config, vthreads).layers:
            yield from (m.program for m in layer.measured.values())


@pytest.mark.parametrize("name", ["tiny", "narrow", "paper"])
def test_shortcuts_change_nothing(name):
    """Passing over idle cycles and long GEMMs gives the stepped machine's every cycle."""
    for layer in layers(load_config(name)):
        program = layer.program
        stream = Stream.of(program.config, program.instructions, program.base)
        quick, stepped = (Clock(stream, layer.dram, stepped=s) for s in (False, True))
        assert quick.cycles == stepped.cycles
        np.testing.assert_array_equal(quick.start, stepped.start)
        np.testing.assert_array_equal(quick.finish, stepped.finish)
        np.testing.assert_array_equal(quick.causes, stepped.causes)


@pytest.mark.parametrize("name", ["tiny", "paper"])
def test_causes_add_up_to_every_cycle(name):
    for layer in layers(load_config(name)):
        program = layer.program
        run = simulate(
            program.config, program.instructions, layer.dram, program.base, numerics=False
        )
        for engine in engines(program.config):
            causes = run.causes[engine.name]
            assert tuple(causes) == CAUSES
            assert sum(causes.values()) == run.cycles


def test_instructions_start_and_finish_in_order():
    for layer in layers(load_config("paper")):
        program = layer.program
        run = simulate(
            program.config, program.instructions, layer.dram, program.base, numerics=False
        )
        assert (run.start >= 0).all()
        assert (run.start <= run.finish).all()
        for engine in engines(program.config):
            mine = Stream.of(program.config, program.instructions).engine(engine)
            assert (np.diff(run.start[mine]) > 0).all()
            assert (np.diff(run.finish[mine]) > 0).all()
        for token in tokens(ring_of(program.config), program.instructions):
            assert run.finish[token.giver] < run.start[token.taker]


def test_a_slower_memory_is_never_faster_and_changes_no_number():
    module = compile("digits", "tiny")
    config, inputs = module_config(module), random_inputs(module)
    results = []
    for latency, rate in ((0, 4), (16, 4), (64, 4), (256, 4), (256, 2), (256, 1)):
        memory = replace(config.memory, latency=latency, bytes_per_cycle=rate)
        device = SimDevice(replace(config, memory=memory))
        results.append(Executor(module, device).run(inputs))
    cycles = [r.cycles for r in results]
    assert cycles == sorted(cycles)
    assert len(set(cycles)) == len(cycles)
    for result in results:
        for name, array in result.outputs.items():
            np.testing.assert_array_equal(array, results[0].outputs[name])


def test_a_deadlock_names_the_instruction_and_the_token():
    config = load_config("tiny")
    program = [
        Load(memory=Mem.INP, x_size=1, y_size=1, z_size=1, pop_prev=1),
        Gemm(pop_prev=1, uop_count=1),
        Finish(),
    ]
    with pytest.raises(SimulationError) as caught:
        simulate(config, program, np.zeros(4096, np.uint8), 1024)
    assert str(caught.value) == (
        "deadlock: LOAD waits for a token from STORE at 0: "
        "LOAD pop_prev x_size=1 y_size=1 z_size=1; "
        "COMPUTE waits for a token from LOAD at 1: GEMM pop_prev uop_count=1"
    )


def test_a_stream_ends_with_its_only_finish():
    config = load_config("tiny")
    with pytest.raises(FaultError, match=r"^fault ILLEGAL in cycle 74 at 0: GEMM$"):
        simulate(config, [Gemm()], np.zeros(64, np.uint8))


def test_the_timeline(tmp_path):
    layer = next(layers(load_config("tiny"), (2,)))
    program = layer.program
    run = simulate(program.config, program.instructions, layer.dram, program.base, numerics=False)
    write_trace(run, tmp_path / "t.json", layers=layer.linked.layers, stages=layer.linked.stages)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    timed = [e["ts"] for e in events if e["ph"] != "M"]
    assert timed == sorted(timed)
    arrows = len(tokens(ring_of(program.config), program.instructions))
    assert arrows > 4
    for phase in "sf":
        found = [e for e in events if e["ph"] == phase]
        assert len({e["id"] for e in found}) == len(found) == arrows
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]


def test_programs_are_for_one_config():
    tiny = load_config("tiny")
    raw = Program(tiny, [Finish()]).to_bytes()
    with pytest.raises(ValueError, match=r"^program: expected a program for config paper"):
        SimDevice(load_config("paper")).load(raw, np.zeros(4096, np.uint8))
