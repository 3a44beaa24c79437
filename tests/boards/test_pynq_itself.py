"""The package ``pynq`` itself on a core's RTL, where it is installed: its Overlay, MMIO, registers
and buffers. docs/pynq.md says how; it asks for a NumPy below 2, so no extra of vdla has it.

What belongs to a board is replaced: the device that is loaded and the processor's clock registers.
"""

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from pynqmetadata.frontends import Metadata
from pynqmetadata.views.runtime import RuntimeMetadataParser

from vdla import api
from vdla.boards import find_board
from vdla.boards.flows.hwh import HWH, handoff
from vdla.boards.parts import processor_of
from vdla.boards.virtual import VirtualAxiBoard
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.registers import IDENTITY
from vdla.runtime.board.overlay import open_pynq
from vdla.runtime.board.transport import LinkError
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.executor import Executor

pytestmark = pytest.mark.filterwarnings("ignore:No devices found")

if find_spec("pynq") is None:
    pytest.skip("the package pynq isn't installed: docs/pynq.md", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it finds no board
    import pynq
    import pynq.overlay

TINY, BOARD = load_config("tiny"), find_board("pynq-z2")
BASE = processor_of(BOARD).registers


class RtlDevice(pynq.Device):
    """A device whose fabric is a core's RTL."""

    def __init__(self):
        super().__init__("rtl")
        self.capabilities, self.arch = {"REGISTER_RW": True}, "armv7l"
        self.core = VirtualAxiBoard("rtl", TINY, BOARD.memory_bytes)

    def read_registers(self, address, length):
        return self.core.read(address - BASE)[0].to_bytes(length, "little")

    def write_registers(self, address, data):
        self.core.write(address - BASE, int.from_bytes(bytes(data), "little"))

    def get_bitfile_metadata(self, bitfile_name, partial=False):
        return RuntimeMetadataParser(Metadata(str(Path(bitfile_name).with_suffix(".hwh"))))

    def download(self, bitstream, parser=None):
        self.post_download(bitstream, parser)

    def allocate(self, shape, dtype):
        image, address = self.core.allocate(int(np.prod(shape)))
        buffer = image.view(pynq.buffer.PynqBuffer)
        buffer.device_address, buffer.device = address, self
        buffer.coherent, buffer.bo, buffer.offset, buffer.freed = False, image, 0, True
        return buffer

    def flush(self, image, offset, address, length):
        self.core.upload(image, offset, offset + length)

    def invalidate(self, image, offset, address, length):
        self.core.download(image, offset, offset + length)


class Clocks:
    """Notes what PYNQ sets."""

    def __init__(self):
        self.mhz = {}

    def set_device(self, device):
        pass

    def set_pl_clk(self, number, clk_mhz=None):
        self.mhz[number] = clk_mhz


@pytest.fixture
def bits(tmp_path):
    (tmp_path / HWH).write_text(handoff(BOARD, TINY))
    path = tmp_path / HWH.replace(".hwh", ".bit")
    path.write_bytes(b"bits")
    return str(path)


@pytest.fixture
def clocks(monkeypatch):
    device, result = RtlDevice(), Clocks()
    monkeypatch.setattr(type(pynq.Device), "active_device", device)
    monkeypatch.setattr(pynq.overlay, "Clocks", result)
    yield result
    device.core.close()


def test_digits(bits, clocks):
    module = api.compile("digits", TINY)
    inputs = api.random_inputs(module)
    expected = api.run(module, inputs, "sim")
    transport = open_pynq(bits, BOARD.memory_bytes)
    assert type(transport.buffer.pynq) is type(sys)
    result = Executor(module, BoardDevice(TINY, transport)).run(inputs)
    assert result.cycles == expected.cycles
    assert np.array_equal(result.outputs["logits"], expected.outputs["logits"])
    assert clocks.mhz == {0: 100.0, 1: None, 2: None, 3: None}


def test_its_register_map(bits, clocks):
    overlay = pynq.Overlay(bits)
    registers = overlay.vdla.register_map
    assert type(registers).__mro__[1] is pynq.registers.RegisterMap
    isa, own = Identity.of(TINY).words
    names = ("ID", "ISA_HASH", "CONFIG_HASH")
    assert [int(getattr(registers, name)) for name in names] == [IDENTITY, isa, own]
    registers.PROGRAM_LENGTH.COUNT = 5
    assert overlay.vdla.read(0x2C) == 5


def test_there_is_no_board(bits):
    with pytest.raises(LinkError, match=r"found No Devices Found; run on the board itself, as ro"):
        open_pynq(bits, BOARD.memory_bytes)


def test_the_older_parser_finds_the_interrupt(bits):
    from pynq.pl_server import hwh_parser

    parser = hwh_parser._HWHZynq(hwh_name=str(Path(bits).with_suffix(".hwh")))
    pin = {"controller": "", "index": 0, "fullpath": "vdla/irq", "raw_irq": 61}
    assert parser.interrupt_pins["vdla/irq"] == parser.ip_dict["vdla"]["interrupts"]["irq"] == pin
