"""What the bench asks of its model, which is pretended: a library of Python functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.memory import Memory
from vdla.isa.registers import BUSY, EVENTS, RESET, START, Cause, Fault, register
from vdla.isa.ring import Engine
from vdla.runtime.errors import DeviceError
from vdla.runtime.rtl import bench as bench_
from vdla.runtime.rtl.bench import CHUNK, DRAM_BASE, INTERRUPT, MORE, STUCK, Bench

TINY = load_config("tiny")
HANDLE, MEMORY = 77, 78


class Model:
    """Registers that hold what they were given, and a list of what was asked for."""

    def __init__(self):
        self.registers, self.written, self.freed, self.ran = {}, [], [], []
        self.ends = [INTERRUPT]
        self.busy = 0  # reads of STATUS until it is at rest
        self.traces = 1
        self.memories = [np.full((3, 24), 9, np.uint8) for _ in range(4)]

    def vdla_new(self):
        return HANDLE

    def vdla_free(self, handle):
        self.freed.append(handle)

    def vdla_memory(self, handle):
        return MEMORY

    def vdla_attach(self, memory, data, *rest):
        assert memory == MEMORY
        self.memory = rest

    def vdla_events(self, *events):
        pass

    def vdla_rewind(self, handle):
        self.written.append("rewind")

    def vdla_rest(self, handle, cycles):
        assert cycles == 0

    def vdla_write(self, handle, offset, value):
        self.registers[offset] = value
        self.written.append((offset, value))

    def vdla_read(self, handle, offset):
        if offset == register("STATUS").offset:
            self.busy -= 1
            return BUSY if self.busy >= 0 else 0
        return self.registers.get(offset, 0)

    def vdla_run(self, handle, cycles):
        self.ran.append(cycles)
        return self.ends.pop(0)

    def vdla_scratchpad(self, handle, index, stride, depth):
        depth._obj.value, stride._obj.value = self.memories[index].shape
        return self.memories[index].ctypes.data

    def vdla_trace(self, handle, path):
        self.path = path
        return self.traces

    # What a test asks --------------------------------------------------------------------------

    def set(self, name, value):
        self.registers[register(name).offset] = value

    def get(self, name):
        return self.registers.get(register(name).offset)


@pytest.fixture
def model(monkeypatch):
    model = Model()
    monkeypatch.setattr(bench_, "_load", lambda library, functions: model)
    return model


@pytest.fixture
def bench(model):
    bench = Bench(TINY, Path("library"))
    bench.attach(DRAM)
    return bench


DRAM = np.zeros(8192, np.uint8)


def test_a_bench_is_freed_once_closed_or_forgotten(model):
    bench = Bench(TINY, Path("library"))
    bench.close()
    bench.close()
    assert model.freed == [HANDLE]
    del bench
    assert model.freed == [HANDLE]
    Bench(TINY, Path("library"))
    assert model.freed == [HANDLE, HANDLE]


@pytest.mark.filterwarnings("error")
def test_a_library_that_is_none(tmp_path):
    with pytest.raises(OSError, match="none"):
        Bench(TINY, tmp_path / "none.so")


def test_the_core_is_told_where_the_program_lies_and_started(bench, model):
    bench.run(0x800, [2, 3, 1])
    isa, config = Identity.of(TINY).words
    values = {
        "PROGRAM_ISA": isa, "PROGRAM_CONFIG": config, "PROGRAM_BASE": 0x800, "PROGRAM_LENGTH": 7,
        "DRAM_BASE": DRAM_BASE, "DRAM_SIZE": 8192,
    }  # fmt: skip
    assert {name: model.get(name) for name in values} == values
    enabled, start = (register("INTERRUPT_ENABLE"), EVENTS), (register("CONTROL"), START)
    at = [model.written.index((r.offset, value)) for r, value in (enabled, start)]
    assert at == sorted(at)
    assert model.written[at[1] - 1] == "rewind"
    assert DRAM_BASE % 4096 == 0


def test_another_length_and_identity(bench, model):
    other = Identity("00000001", "00000002")
    bench.run(0x800, [2, 3, 1], length=40, identity=other)
    names = ("PROGRAM_LENGTH", "PROGRAM_ISA", "PROGRAM_CONFIG")
    assert [model.get(name) for name in names] == [40, 1, 2]


@pytest.mark.parametrize(("settings", "memory", "interval"), [
    ([], None, 1),
    ([], Memory(latency=7, bytes_per_cycle=1), 8),
    ([], Memory(latency=7, bytes_per_cycle=3), 3),
    (["memory.latency=9", "memory.bytes_per_cycle=2"], None, 4),
])  # fmt: skip
def test_a_beat_comes_as_often_as_the_memory_gives_it(model, settings, memory, interval):
    config = load_config("paper", settings)
    assert config.port_bytes == 8
    Bench(config, Path("library")).attach(DRAM, memory=memory)
    latency = (memory or config.memory).latency
    assert model.memory[:4] == (8192, DRAM_BASE, latency, interval)


def test_no_beat_bears_an_error_unless_told(bench, model):
    bench.attach(DRAM)
    first, last = model.memory[-2:]
    assert first >= last
    bench.attach(DRAM, errors=(16, 24))
    assert model.memory[-2:] == (16, 24)


@pytest.mark.parametrize("dram", [DRAM[:5000], np.zeros(16384, np.uint8)[::2]])
def test_dram_is_whole_pages_side_by_side(bench, dram):
    with pytest.raises(ValueError, match=f"^expected DRAM of whole pages, found {dram.size} bytes"):
        bench.attach(dram)


def test_it_runs_until_something_happens(bench, model):
    model.ends = [MORE, MORE, INTERRUPT, MORE]
    model.set("CYCLES_LOW", 0x8000_0005)
    model.set("CYCLES_HIGH", 3)
    model.set("FAULT_CAUSE", Fault.BUS)
    model.set("FAULT_INSTRUCTION", 0x840)
    model.set("STORE_DRAIN", 12)
    found = bench.run(0x800, [1, 2, 0])
    assert len(model.ran) == 3
    assert found.cycles == 0x3_8000_0005
    assert (found.fault, found.fault_instruction) == (Fault.BUS, 0x840)
    assert found.causes[Engine.STORE][Cause.DRAIN] == 12
    assert model.get("CONTROL") == START


def test_what_never_began_has_no_cycle(bench):
    found = bench.run(0x800, [1, 2, 0])
    for events in (found.start, found.finish):
        assert [events[e].tolist() for e in events] == [[-1], [-1, -1], []]


def test_a_core_that_stands_still_is_reset(bench, model):
    model.ends = [MORE, STUCK]
    model.set("CYCLES_LOW", 99)
    assert bench.run(0x800, [1, 2, 0]).cycles == -1
    assert model.get("CONTROL") == RESET


@pytest.mark.parametrize(
    ("limit", "cycles"), [(7, [7]), (CHUNK, [CHUNK]), (2 * CHUNK + 1, [CHUNK, CHUNK, 1])]
)
def test_a_core_that_does_not_end_is_stopped_at_the_limit(bench, model, limit, cycles):
    model.ends = [MORE] * 9
    found = bench.run(0x800, [1, 2, 0], limit=limit)
    assert (found.overdue, found.cycles) == (True, -1)
    assert model.ran == cycles
    assert model.get("CONTROL") == RESET


def test_a_core_that_ends_before_the_limit(bench, model):
    model.ends = [MORE, INTERRUPT]
    found = bench.run(0x800, [1, 2, 0], limit=CHUNK + 1)
    assert not found.overdue
    assert model.ran == [CHUNK, 1]


def test_it_waits_for_the_core_to_come_to_rest(bench, model):
    model.busy = 5
    bench.run(0x800, [1, 2, 0])
    assert model.busy == -1
    assert model.written[-1] == (register("INTERRUPT_STATUS").offset, EVENTS)


def test_a_core_that_does_not_come_to_rest(bench, model):
    model.busy = 10**9
    with pytest.raises(DeviceError) as caught:
        bench.run(0x800, [1, 2, 0])
    assert str(caught.value) == ("device rtl: expected the core to come to rest, found it running")


def test_scratchpads_are_cleared_as_far_as_they_reach(bench, model):
    """Of words that Verilator made wider than an entry, what is one."""
    assert bench.scratchpad("wgt").shape == (3, TINY.wgt_entry)
    bench.clear()
    for memory, name in zip(model.memories, ("inp", "wgt", "acc", "uop"), strict=True):
        assert not memory[:, : TINY.entry(name)].any()


def test_waves_that_cannot_be_written(bench, model):
    bench.open_waves(Path("there/w.fst"))
    assert model.path == b"there/w.fst"
    model.traces = 0
    with pytest.raises(DeviceError) as caught:
        bench.open_waves(Path("there/w.fst"))
    assert str(caught.value) == (
        "device rtl: expected to write waves to there/w.fst, found that it can't"
    )
