"""A network through PYNQ's classes: an overlay whose core is RTL, its registers, its memory."""

import sys

import numpy as np
import pytest
from pynqmetadata.frontends import Metadata
from pynqmetadata.views.runtime import RuntimeMetadataParser

from vdla import api
from vdla.boards import find_board
from vdla.boards.board import BoardError
from vdla.boards.connect import connect
from vdla.boards.flows.hwh import HWH, handoff
from vdla.boards.virtual import VirtualPynq
from vdla.boards.virtual.axi import VirtualAxiBoard
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.registers import IDENTITY, SPACE_BYTES, VERSION, register
from vdla.runtime.board.overlay import open_overlay
from vdla.runtime.board.transport import LinkError
from vdla.runtime.devices.board import BoardDevice, OtherBitstreamError
from vdla.runtime.errors import DeviceError
from vdla.runtime.executor import Executor

TINY = load_config("tiny")
BOARD = find_board("pynq-z2")
BITS = HWH.replace(".hwh", ".bit")


@pytest.fixture
def folder(tmp_path):
    """A board's folder with both files; the virtual one doesn't read the bitstream."""
    (tmp_path / HWH).write_text(handoff(BOARD, TINY))
    (tmp_path / BITS).write_bytes(b"")
    return tmp_path


@pytest.fixture
def pynq(monkeypatch):
    """The package on the virtual board."""
    result = VirtualPynq(BOARD, TINY)
    monkeypatch.setitem(sys.modules, "pynq", result)
    yield result
    result.core.close()


def test_digits_by_an_overlay(folder, pynq):
    module = api.compile("digits", TINY)
    inputs = api.random_inputs(module)
    expected = api.run(module, inputs, "sim")
    ready = Executor(module, BoardDevice(TINY, connect(BOARD, TINY, port=str(folder / BITS))))
    for _ in range(2):
        result = ready.run(inputs)
        assert result.cycles == expected.cycles
        assert np.array_equal(result.outputs["logits"], expected.outputs["logits"])
    registers = pynq.Overlay(str(folder / BITS)).vdla.register_map
    assert int(registers.CYCLES_LOW) == expected.cycles
    assert (registers.STATUS.DONE, registers.STATUS.FAULT) == (1, 0)


@pytest.mark.parametrize("call", ["flush", "invalidate"])
def test_a_buffer_that_is_not_kept_in_step_shows(folder, pynq, call, monkeypatch):
    module = api.compile("digits", TINY)
    inputs = api.random_inputs(module)
    overlay = pynq.Overlay(str(folder / BITS))
    transport = open_overlay(overlay, BOARD.memory_bytes, pynq)
    ready = Executor(module, BoardDevice(TINY, transport))
    monkeypatch.setattr(transport.buffer.array, call, lambda: None)
    expected = api.run(module, inputs, "sim").outputs["logits"]
    assert not np.array_equal(ready.run(inputs).outputs["logits"], expected)


def test_the_register_map_reads_the_core(folder, pynq):
    overlay = pynq.Overlay(str(folder / BITS))
    registers = overlay.vdla.register_map
    isa, own = Identity.of(TINY).words
    names = ("ID", "VERSION", "ISA_HASH", "CONFIG_HASH")
    values = [int(getattr(registers, name)) for name in names]
    assert values == [IDENTITY, VERSION, isa, own]
    overlay.vdla.mmio.write(register("PROGRAM_LENGTH").offset, 5)
    assert registers.PROGRAM_LENGTH.COUNT == 5
    shown = repr(registers)
    assert f"  ID = Register(VALUE={IDENTITY}),\n" in shown
    assert "  STATUS = Register(RUNNING=0, DONE=0, FAULT=0, STOPPING=0),\n" in shown
    assert "CONTROL" not in shown


def test_its_dictionaries_are_pynqs(folder, pynq):
    overlay = pynq.Overlay(str(folder / BITS))
    theirs = RuntimeMetadataParser(Metadata(str(folder / HWH)))
    assert overlay.ip_dict == theirs.ip_dict
    assert overlay.clock_dict[0]["frequency"] == 100.0
    assert overlay.bitfile_name == str(folder / BITS)


def test_what_an_overlay_does_not_have(folder, pynq, monkeypatch):
    overlay = pynq.Overlay(str(folder / BITS))
    with pytest.raises(AttributeError, match=r"expected one of vdla, processing_.*, found dma$"):
        overlay.dma.read(0)
    with pytest.raises(AttributeError, match=r"expected a register.s name, found NONE$"):
        _ = overlay.vdla.register_map.NONE
    with pytest.raises(AttributeError, match=r"expected one of \['RUNNING', .*, found IDLE$"):
        _ = overlay.vdla.register_map.STATUS.IDLE
    low = overlay.ip_dict["vdla"]["phys_addr"]
    for address in (low - 4, low + SPACE_BYTES):
        with pytest.raises(OSError, match=f"4 bytes behind it, found {address:#x}$"):
            pynq.MMIO(address, 4)
    monkeypatch.setitem(sys.modules, "pynqmetadata.frontends", None)
    with pytest.raises(BoardError) as caught:
        pynq.Overlay(str(folder / BITS))
    assert str(caught.value) == (
        "virtual pynq: expected the package pynqmetadata.frontends, found none; "
        "install with: pip install pynqmetadata"
    )


def test_the_hand_off_file_of_another_config(folder, pynq):
    other = load_config("tiny", ["acc_bytes=4096"])
    (folder / HWH).write_text(handoff(BOARD, other))
    with pytest.raises(LinkError) as caught:
        connect(BOARD, TINY, port=str(folder / BITS))
    assert str(caught.value) == (
        f"{folder / BITS}: expected a core of config {other.hash}, as its .hwh says, "
        f"found {TINY.hash}; copy both files of one folder that vdla synth wrote"
    )


def test_a_module_for_another_config(folder, pynq):
    other = load_config("tiny", ["acc_bytes=4096"])
    with pytest.raises(OtherBitstreamError) as caught:
        BoardDevice(other, connect(BOARD, other, port=str(folder / BITS)))
    assert str(caught.value) == (
        f"board with {folder / BITS}: expected a bitstream for config {other.hash} (tiny), found "
        f"one for {TINY.hash}; name the board's config, or load a bitstream of this one"
    )


def test_another_core_behind_the_addresses(folder, pynq, monkeypatch):
    monkeypatch.setattr(VirtualAxiBoard, "read", lambda self, offset, count=1: [0] * count)
    with pytest.raises(LinkError) as caught:
        BoardDevice(TINY, connect(BOARD, TINY, port=str(folder / BITS)))
    assert str(caught.value) == (
        f"board with {folder / BITS}: expected a VDLA core, ID 0x56444c41, found 0x0; "
        "load a bitstream that vdla synth wrote"
    )


def test_a_module_that_is_too_large(folder, pynq):
    transport = open_overlay(pynq.Overlay(str(folder / BITS)), 1 << 16, pynq)
    with pytest.raises(DeviceError, match="expected a module of at most 65,536 bytes of DRAM"):
        transport.allocate((1 << 16) + 1)


@pytest.mark.parametrize(("package", "end"), [
    (None, "pynq: expected the package, found none; on a board with PYNQ's image use its python"),
    ("no board", "expected a board on which PYNQ loads it, found No Devices Found; "
     "run on the board itself, as root"),
    ("other", "as its .hwh says, found {own}; copy both files of one folder that vdla synth wrote"),
])  # fmt: skip
def test_a_command_ends_in_one_line(vdla, folder, pynq, monkeypatch, package, end):
    def no_board(path):
        raise RuntimeError("No Devices Found")

    if package is None:
        monkeypatch.setitem(sys.modules, "pynq", None)
    elif package == "no board":
        monkeypatch.setattr(pynq, "Overlay", no_board)
    else:
        (folder / HWH).write_text(handoff(BOARD, load_config("paper")))
    port = folder / BITS
    done = vdla("run", "digits", "-c", "tiny", "--device", "board", "--board", BOARD.name,
                "--port", port)  # fmt: skip
    assert done.code == 2
    [line] = done.err.strip().splitlines()
    assert line.endswith(end.format(own=TINY.hash))
