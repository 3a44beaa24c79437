"""The driver on the core's RTL, behind a processing system's AXI ports and caches."""

from dataclasses import replace

import numpy as np
import pytest

from vdla import api
from vdla.boards.virtual import VirtualAxiBoard
from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.registers import Fault
from vdla.runtime.board.driver import BoardFault, Driver
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.errors import DeviceError
from vdla.runtime.executor import Executor

TINY = load_config("tiny")


def make(errors=(0, 0), **options):
    board = VirtualAxiBoard("virtual board pynq-z2", TINY, 1 << 20, errors=errors)
    return BoardDevice(TINY, board, Driver(board, **options))


@pytest.fixture(scope="module")
def digits():
    module = api.compile("digits", TINY)
    inputs = api.random_inputs(module)
    return module, inputs, api.run(module, inputs, "sim")


def test_digits_take_as_many_cycles_as_on_the_simulator(digits):
    module, inputs, expected = digits
    ready = Executor(module, make())
    for _ in range(2):
        found = ready.run(inputs)
        assert found.cycles == expected.cycles
        assert np.array_equal(found.outputs["logits"], expected.outputs["logits"])


@pytest.mark.parametrize("call", ["upload", "download"])
def test_a_cache_that_is_not_kept_in_step_shows(digits, call, monkeypatch):
    """So the test above would notice a driver that forgets to flush or to invalidate."""
    module, inputs, expected = digits
    device = make()
    ready = Executor(module, device)
    monkeypatch.setattr(device.transport, call, lambda image, start, stop: None)
    found = ready.run(inputs)
    assert not np.array_equal(found.outputs["logits"], expected.outputs["logits"])


def test_what_the_core_may_write_is_released_before_it_starts(digits, monkeypatch):
    module, inputs, _ = digits
    device, calls = make(), []
    ready, transport = Executor(module, device), device.transport
    write = transport.write
    monkeypatch.setattr(transport, "release", lambda image, *part: calls.append(part))
    monkeypatch.setattr(
        transport, "write", lambda *register: (calls.append(register), write(*register))
    )
    ready.run(inputs)
    assert calls[0] == (len(module.constants), ready.dram.size)
    assert calls.count(calls[0]) == 1


def load(device, text):
    program = replace(assemble(text, TINY), base=0x800)
    return device.load(program.to_bytes(), device.allocate(8192, b""))


@pytest.mark.parametrize("text", [
    "LOAD x_size=1 y_size=1 z_size=1 dram_base=0x1000\nFINISH",
    "STORE memory=ACC8 x_size=1 y_size=1 z_size=1 dram_base=0x1000\nFINISH",
])  # fmt: skip
def test_a_bus_error(text):
    device = make(errors=(0x1000, 0x1004))
    with pytest.raises(BoardFault) as caught:
        load(device, text)()
    assert caught.value.fault == Fault.BUS
    assert load(device, "FINISH")().cycles > 0


def test_a_program_that_hangs():
    device = make(limit=0.2)
    with pytest.raises(DeviceError, match="found it still running; the core was reset"):
        load(device, "GEMM pop_prev uop_count=1\nFINISH")()
    assert load(device, "FINISH")().cycles > 0


def test_a_module_that_is_too_large():
    device = make()
    with pytest.raises(DeviceError, match="expected a module of at most 1,048,576 bytes"):
        device.allocate((1 << 20) + 1, b"")
