"""The driver and the device on a board in Python that computes as the simulator does."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from fake_board import TINY, FakeLine, Trouble

from vdla import api
from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.registers import Cause, Fault, register, registers
from vdla.isa.ring import engines
from vdla.runtime.board import serial
from vdla.runtime.board.driver import BUSY, FIRST_POLL, LONGEST_POLL, BoardFault, Driver
from vdla.runtime.board.serial import SerialTransport
from vdla.runtime.board.transport import LinkError
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.errors import DeviceError
from vdla.runtime.executor import Executor

RESET = register("CONTROL").field("RESET").mask
SIZE = 1 << 20


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(serial.time, "sleep", lambda seconds: None)


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self):
        self.now, self.sleeps = 0.0, []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.sleeps.append(seconds)


def device(line, config=TINY, **options):
    transport = SerialTransport(line, "board fake", SIZE)
    return BoardDevice(config, transport, Driver(transport, **options))


def load(board, text):
    raw = replace(assemble(text, TINY), base=0x800).to_bytes()
    return board.load(raw, board.allocate(4096, b""))


@pytest.mark.parametrize("share", [0, 0.0001])
def test_digits_as_on_the_simulator(share):
    module = api.compile("digits", TINY)
    inputs = api.random_inputs(module)
    line = FakeLine(spoil=Trouble(share, 1))
    ready = Executor(module, device(line))
    expected = api.run(module, inputs, "sim")
    for _ in range(2):
        found = ready.run(inputs)
        assert found.cycles == expected.cycles
        for name in module.outputs:
            assert np.array_equal(found.outputs[name], expected.outputs[name])


@pytest.mark.parametrize(("text", "fault", "message"), [
    ("LOAD x_size=1 y_size=1 z_size=1 dram_base=0x40000\\nFINISH", Fault.ADDRESS,
     "board fake: fault ADDRESS at the instruction at byte 0x800 of DRAM"),
    ("LOAD x_size=0\\nALU uop_count=1 dst_base=127 extent_0=2 dst_0=3\\nFINISH", Fault.ADDRESS,
     "board fake: fault ADDRESS at the instruction at byte 0x820 of DRAM"),
])  # fmt: skip
def test_a_fault_is_named_and_the_next_program_runs(text, fault, message):
    board = device(FakeLine())
    with pytest.raises(BoardFault) as caught:
        load(board, text.replace("\\n", "\n"))()
    assert caught.value.fault == fault
    assert str(caught.value) == message
    assert load(board, "FINISH")().cycles > 0


def test_counters_are_those_of_their_registers():
    """A run of more than 2**32 cycles too."""
    line = FakeLine()
    driver = Driver(SerialTransport(line, "board fake", SIZE))
    for number, each in enumerate(registers(TINY)):
        line.registers[each.offset] = 1000 + number
    line.set("CYCLES_LOW", 0x8000_0005)
    line.set("CYCLES_HIGH", 0x8000_0003)
    found = driver.counters(engines(TINY))
    assert found.cycles == 0x8000_0003_8000_0005
    for engine in engines(TINY):
        for cause in Cause:
            at = register(f"{engine.name}_{cause.name}").offset
            assert found.causes[engine.name][cause.name.lower()] == line.registers[at]


def test_a_program_that_never_ends_is_reset():
    clock, line = Clock(), FakeLine()
    board = device(line, clock=clock, sleep=clock.sleep, limit=5)
    with pytest.raises(DeviceError) as caught:
        load(board, "GEMM pop_prev uop_count=1\nFINISH")()
    assert str(caught.value) == (
        "board fake: expected a program that ends within 5 s, found it still running; "
        "the core was reset"
    )
    assert line.done[-1] == (register("CONTROL").offset, RESET)
    assert 5 < clock.now <= 5 + LONGEST_POLL
    assert clock.sleeps[0] == FIRST_POLL
    assert all(b == min(2 * a, LONGEST_POLL) for a, b in pairwise(clock.sleeps))
    assert load(board, "FINISH")().cycles > 0


def test_a_program_may_take_as_long_as_its_limit():
    clock = Clock()
    driver = device(FakeLine(), clock=clock, sleep=clock.sleep).driver
    states = iter([BUSY, BUSY, 0])
    driver.read = lambda name: next(states)
    assert driver._rests(FIRST_POLL)
    assert clock.sleeps == [FIRST_POLL, 2 * FIRST_POLL]


def test_a_core_that_does_not_stop():
    clock, line = Clock(), FakeLine()
    board = device(line, clock=clock, sleep=clock.sleep)
    line._write = lambda offset, value: None
    line.set("STATUS", register("STATUS").field("STOPPING").mask)
    with pytest.raises(DeviceError, match="found a transfer that doesn't end; reload the bitst"):
        board.driver.stop()


def test_a_core_that_somebody_else_resets():
    line = FakeLine()
    board = device(line)
    line._run = lambda: line.set("STATUS", 0)
    with pytest.raises(LinkError, match="found neither DONE nor FAULT: the core was reset meanwh"):
        load(board, "FINISH")()


def test_a_bitstream_for_another_config():
    paper = load_config("paper")
    with pytest.raises(DeviceError) as caught:
        device(FakeLine(), paper)
    assert str(caught.value) == (
        f"board fake: expected a bitstream for config {paper.hash} (paper), "
        f"found one for {TINY.hash}; name the board's config, or load a bitstream of this one"
    )


def test_a_bitstream_of_another_instruction_set():
    line, own = FakeLine(), Identity.of(TINY)
    line.set("ISA_HASH", 0xC0FFEE)
    with pytest.raises(DeviceError) as caught:
        device(line)
    assert str(caught.value) == (
        f"board fake: built for another instruction set: expected ISA {own.isa}, found 00c0ffee; "
        "load a bitstream of this release"
    )


@pytest.mark.parametrize(("changed", "what"), [("isa", "instruction set"), ("config", "config")])
def test_the_core_is_told_what_the_program_is_for(changed, what):
    """Not what the core itself is: else it would run anything."""
    line, own = FakeLine(), Identity.of(TINY)
    board = device(line)
    load(board, "FINISH")()
    registers = ("PROGRAM_ISA", "PROGRAM_CONFIG")
    assert tuple(map(line.get, registers)) == own.words
    foreign = replace(own, **{changed: "12345678"})
    with pytest.raises(BoardFault) as caught:
        board.driver.run(0, 8192, 0x800, 1, foreign)
    assert tuple(map(line.get, registers)) == foreign.words
    assert str(caught.value) == (
        f"board fake: fault PROGRAM_{changed.upper()} before the first instruction: "
        f"the program is for another {what}"
    )


@pytest.mark.parametrize(("name", "value", "message"), [
    ("ID", 0x12345678,
     "board fake: expected a VDLA core, ID 0x56444c41, found 0x12345678; "
     "load a bitstream that vdla synth wrote"),
    ("VERSION", 9 << 16,
     "board fake: expected register map 2, found 9; load a bitstream of this release"),
])  # fmt: skip
def test_another_core(name, value, message):
    line = FakeLine()
    line.set(name, value)
    with pytest.raises(LinkError) as caught:
        device(line)
    assert str(caught.value) == message


def test_constants_and_the_program_go_to_the_board_to_the_byte(monkeypatch):
    """A range too long would put what the host holds over what the core has written."""
    board, moved = device(FakeLine()), []
    monkeypatch.setattr(board.transport, "upload", lambda _, *bounds: moved.append(bounds))
    monkeypatch.setattr(board.transport, "download", lambda _, *bounds: moved.append(bounds))
    dram = board.allocate(4096, bytes(range(100)))
    assert moved == [(0, 100)]
    assert dram[:101].tolist() == [*range(100), 0]
    program = replace(assemble("GEMM\nFINISH", TINY), base=0x800)
    run = board.load(program.to_bytes(), dram, [(128, 132), (192, 193)], [(256, 300)])
    assert moved[1:] == [(0x800, 0x840)]
    counters = SimpleNamespace(cycles=9, causes={})
    monkeypatch.setattr(board.driver, "run", lambda *told: moved.append(told))
    monkeypatch.setattr(board.driver, "counters", lambda engines: counters)
    assert run().cycles == 9
    own = Identity.of(TINY)
    assert moved[2:] == [(128, 132), (192, 193), (0, 4096, 0x800, 2, own), (256, 300)]


def test_only_what_is_needed_moves():
    """Constants and the program once; then inputs there and outputs back."""
    module = api.compile("digits", TINY)
    line = FakeLine()
    ready = Executor(module, device(line))
    moved = []
    line.spoil = lambda data: moved.append(len(data)) or data
    ready.run(api.random_inputs(module))
    assert sum(moved) < len(module.constants) / 2
