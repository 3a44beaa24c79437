"""What the device rtl makes of how a bench stops; the bench is pretended. With a real one:
tests/runtime/test_rtl.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.registers import Cause, Fault
from vdla.isa.ring import Engine
from vdla.runtime.devices import rtl
from vdla.runtime.devices.rtl import RtlDevice
from vdla.runtime.rtl.bench import Stopped
from vdla.sim.machine import FaultError, SimulationError

TINY = load_config("tiny")
BASE = 1024
STREAM = "GEMM uop_count=1\nLOAD x_size=0\nALU pop_prev\nFINISH"  # 32 bytes each


class PretendedBench:
    """Stops as it is told to, and notes what it is asked for."""

    def __init__(self, config, library):
        self.library, self.asked, self.broken = library, [], False
        self.ends = {"cycles": 50, "overdue": False, "fault": Fault.NONE, "fault_instruction": 0}

    def clear(self):
        self.asked.append("clear")

    def open_waves(self, path):
        self.asked.append(f"open {path}")

    def close_waves(self):
        self.asked.append("close")

    def attach(self, dram):
        self.dram = dram

    def run(self, base, counts):
        self.asked.append(f"run {self.dram.size} bytes, {base}, {counts}")
        self.dram[0] += 1
        if self.broken:
            raise RuntimeError
        start = {Engine.LOAD: [3], Engine.COMPUTE: [5, 9], Engine.STORE: []}
        finish = {Engine.LOAD: [4], Engine.COMPUTE: [8, 12], Engine.STORE: []}
        if self.ends["cycles"] == -1:
            start[Engine.COMPUTE][1] = -1
        causes = {e: {c: 10 * e + c for c in Cause} for e in Engine}
        return Stopped(start=start, finish=finish, causes=causes, **self.ends)


@pytest.fixture
def make(monkeypatch):
    monkeypatch.setattr(rtl, "Bench", PretendedBench)
    monkeypatch.setattr(rtl, "build", lambda config, trace: f"library {trace=}")
    return lambda **options: RtlDevice(TINY, **options)


def load(device, size=4096):
    dram = np.zeros(size, np.uint8)
    return dram, device.load(assemble(f".base {BASE}\n{STREAM}", TINY).to_bytes(), dram)


def test_each_instruction_gets_its_cycles_and_finish_the_last(make):
    device = make()
    result = load(device)[1]()
    assert result.cycles == 50
    assert result.trace.start.tolist() == [5, 3, 9, 49]
    assert result.trace.finish.tolist() == [8, 4, 12, 49]
    assert result.trace.causes["COMPUTE"]["token"] == 11
    assert device.bench.asked == ["clear", "run 4096 bytes, 1024, [1, 2, 0]"]


def test_the_bench_has_whole_pages(make):
    device = make()
    dram, run = load(device, 1500)
    run()
    dram[0] += 5
    run()
    assert dram[0] == 7
    assert device.bench.asked[1] == "run 4096 bytes, 1024, [1, 2, 0]"


def test_waves_are_of_the_first_program(make):
    device = make(waves=Path("w.fst"))
    assert device.bench.library == "library trace=True"
    _, run = load(device)
    run()
    run()
    ran = "run 4096 bytes, 1024, [1, 2, 0]"
    assert device.bench.asked == ["clear", "open w.fst", ran, "close", "clear", ran]


def test_waves_end_when_the_bench_fails(make):
    device = make(waves=Path("w.fst"))
    device.bench.broken = True
    with pytest.raises(RuntimeError):
        load(device)[1]()
    assert device.bench.asked[-1] == "close"


def test_without_waves_the_model_is_the_fast_one(make):
    assert make().bench.library == "library trace=False"


@pytest.mark.parametrize(("index", "text"), [
    (0, "GEMM uop_count=1"), (2, "ALU pop_prev"), (3, "FINISH"), (4, "no instruction"),
])  # fmt: skip
def test_a_fault_is_at_the_instruction_of_its_address(make, index, text):
    device = make()
    device.bench.ends.update(fault=Fault.BUS, fault_instruction=BASE + 32 * index)
    with pytest.raises(FaultError) as caught:
        load(device)[1]()
    assert (caught.value.fault, caught.value.instruction) == (Fault.BUS, index)
    assert str(caught.value) == f"fault BUS in cycle 49 at {index}: {text}"


def test_a_standstill_names_what_waits(make):
    device = make()
    device.bench.ends["cycles"] = -1
    with pytest.raises(SimulationError) as caught:
        load(device)[1]()
    assert str(caught.value) == ("deadlock: COMPUTE waits for a token from LOAD at 2: ALU pop_prev")
