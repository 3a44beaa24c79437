"""The driver, unmodified, on the RTL of a whole ULX3S: serial line, SDRAM model and all."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from vdla import api
from vdla.boards import find_board
from vdla.boards.board import BoardError
from vdla.boards.connect import PATIENT, connect
from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.registers import Fault, register
from vdla.names.configs import resolve_on
from vdla.runtime.board.driver import BoardFault, Driver
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.errors import DeviceError
from vdla.runtime.executor import Executor

TINY = load_config("tiny")
BOARD = find_board("ulx3s")
START = register("CONTROL").field("START").mask


@pytest.fixture(scope="module")
def transport():
    found = connect(BOARD, TINY, virtual=True)
    yield found
    assert found.owner.close() is None  # it still ran: no rule of the SDRAM was broken


@pytest.fixture
def device(transport):
    transport.sent_again = 0
    transport.answer = PATIENT
    return BoardDevice(TINY, transport, Driver(transport, limit=PATIENT))


@pytest.fixture(scope="module")
def digits():
    module = api.compile("digits", TINY)
    inputs = api.random_inputs(module)
    return module, inputs, api.run(module, inputs, "sim").outputs


def load(device, text):
    program = replace(assemble(text, TINY), base=0x800)
    return device.load(program.to_bytes(), device.allocate(8192, b""))


def same(found, expected):
    return all(np.array_equal(found[name], expected[name]) for name in expected)


@pytest.mark.long
def test_digits_as_on_the_simulator(device, digits):
    module, inputs, expected = digits
    ready = Executor(module, device)
    for _ in range(2):
        found = ready.run(inputs)
        assert same(found.outputs, expected)
        assert found.cycles > 0
    assert device.transport.sent_again == 0


@pytest.mark.long
def test_digits_with_the_sdram_at_twice_the_clock(digits):
    """The serial line's bits are clocks of the core, which has one for two of the SDRAM's."""
    _, inputs, expected = digits
    config = resolve_on("ulx3s", "tiny", ["clock_mhz=66", "memory.banks.clock_ratio=2"])
    found = connect(BOARD, config, virtual=True)
    device = BoardDevice(config, found, Driver(found, limit=PATIENT))
    ready = Executor(api.compile("digits", config), device)
    assert same(ready.run(inputs).outputs, expected)
    assert found.sent_again == 0
    assert found.owner.close() is None


class Unreliable:
    """A line on which some bytes are lost or damaged, both ways."""

    def __init__(self, line, share, seed):
        self.line, self.share, self.random = line, share, Random(seed)

    def __getattr__(self, name):
        return getattr(self.line, name)

    def __setattr__(self, name, value):
        if name == "timeout":
            self.line.timeout = value
        else:
            super().__setattr__(name, value)

    def _with_mistake(self, data):
        out = bytearray()
        for byte in data:
            trouble = self.random.random()
            if trouble > self.share:
                out.append(byte)
            elif trouble > self.share / 2:
                out.append(byte ^ 1 << self.random.randrange(8))
        return bytes(out)

    def write(self, data):
        return self.line.write(self._with_mistake(data))

    def read(self, size):
        return self._with_mistake(self.line.read(size))


@pytest.mark.long
def test_lost_and_damaged_bytes_cost_time_and_nothing_else(device, digits, monkeypatch):
    module, inputs, expected = digits
    transport = device.transport
    monkeypatch.setattr(transport, "line", Unreliable(transport.line, 0.0002, 1))
    transport.answer = 5  # a virtual board takes a second for what a real one does in a millisecond
    ready = Executor(module, device)
    assert same(ready.run(inputs).outputs, expected)
    assert transport.sent_again > 0


@pytest.mark.long
@pytest.mark.parametrize(("text", "fault"), [
    ("LOAD x_size=1 y_size=1 z_size=1 dram_base=0x40000\nFINISH", Fault.ADDRESS),
    ("LOAD x_size=0\nFINISH\nLOAD x_size=0\nFINISH", Fault.ILLEGAL),
])  # fmt: skip
def test_a_fault_is_named_and_the_next_program_runs(device, digits, text, fault):
    with pytest.raises(BoardFault) as caught:
        load(device, text)()
    assert caught.value.fault == fault
    module, inputs, expected = digits
    assert same(Executor(module, device).run(inputs).outputs, expected)


@pytest.mark.long
def test_a_bus_error(device):
    """Memory that isn't there: reads and writes end in an error, and in the right fault."""
    beyond = BOARD.memory_bytes - 4096
    for text in (
        "LOAD x_size=1 y_size=1 z_size=1 dram_base=0x1800\nFINISH",
        "STORE memory=ACC8 x_size=1 y_size=1 z_size=1 dram_base=0x1800\nFINISH",
    ):
        program = replace(assemble(text, TINY), base=0x800)
        raw = np.frombuffer(program.stream(), np.uint8)
        image = np.zeros(8192, np.uint8)
        image[0x800 : 0x800 + raw.size] = raw
        start = beyond + 0x800
        for at in range(0, raw.size, 64):
            chunk = image[0x800 + at : 0x800 + at + 64].tobytes()
            device.transport._ask(3, start + at, len(chunk) // 4, chunk)
        with pytest.raises(BoardFault) as caught:
            device.driver.run(beyond, 8192, 0x800, len(program.instructions), Identity.of(TINY))
        assert caught.value.fault == Fault.BUS


@pytest.mark.long
def test_a_program_that_hangs_is_reset_and_the_next_one_runs(device):
    run = load(device, "GEMM pop_prev uop_count=1\nFINISH")
    device.driver.limit = 0.5
    with pytest.raises(DeviceError, match="found it still running; the core was reset"):
        run()
    device.driver.limit = PATIENT
    assert load(device, "FINISH")().cycles > 0


@pytest.mark.long
def test_a_reset_in_mid_run(device, digits):
    module, inputs, expected = digits
    ready = Executor(module, device)
    ready.run(inputs)
    device.driver.write("CONTROL", START)  # again, and away with it before it ends
    device.driver.stop()
    assert device.driver.read("STATUS") == 0
    assert same(ready.run(inputs).outputs, expected)


@pytest.mark.long
def test_a_module_for_another_config(transport):
    wide = load_config("ulx3s")
    with pytest.raises(DeviceError) as caught:
        BoardDevice(wide, transport)
    assert str(caught.value) == (
        f"virtual board ulx3s: expected a bitstream for config {wide.hash} (ulx3s), "
        f"found one for {TINY.hash}; name the board's config, or load a bitstream of this one"
    )


def test_what_cannot_be_reached(monkeypatch):
    with pytest.raises(BoardError, match="--virtual: expected no port, found --port /dev/tty0"):
        connect(BOARD, TINY, port="/dev/tty0", virtual=True)
    monkeypatch.setattr("vdla.boards.connect.ports", lambda: {"/dev/ttyS0": "a modem"})
    with pytest.raises(BoardError) as caught:
        connect(BOARD, TINY)
    assert str(caught.value) == (
        "board ulx3s: expected --port, or a port of that name, found /dev/ttyS0 (a modem)"
    )
