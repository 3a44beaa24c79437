"""PYNQ as a pretended package; tests/boards/test_virtual_pynq.py has a core's RTL behind it."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from vdla.isa.registers import IDENTITY, register
from vdla.runtime.board.overlay import open_pynq
from vdla.runtime.board.transport import LinkError

SIZE = 1 << 16
BASE = register("PROGRAM_BASE").offset
ID, ISA, CONFIG = (register(name).offset for name in ("ID", "ISA_HASH", "CONFIG_HASH"))


class Array(np.ndarray):
    """A PYNQ buffer: counts what is asked of it."""

    device_address = 0x1680_0000

    def flush(self):
        self.calls.append("flush")

    def invalidate(self):
        self.calls.append("invalidate")

    def freebuffer(self):
        self.calls.append("free")


@pytest.fixture
def pynq(monkeypatch, tmp_path):
    calls, words = [], {ID: IDENTITY, 4: 0, ISA: 0x11, CONFIG: 0x22}

    def allocate(shape, dtype):
        array = np.zeros(shape, dtype).view(Array)
        array.calls = calls
        return array

    def mmio(base, length):
        assert (base, length) == (0x43C0_0000, 4096)
        return SimpleNamespace(read=words.get, write=words.__setitem__)

    parts = {"vdla_0": {"phys_addr": 0x43C0_0000, "parameters": {}}}

    def overlay(path):
        return SimpleNamespace(ip_dict=parts, bitfile_name=path)

    fake = SimpleNamespace(allocate=allocate, MMIO=mmio, Overlay=overlay)
    monkeypatch.setitem(sys.modules, "pynq", fake)
    for name in ("vdla.bit", "vdla.hwh"):
        (tmp_path / name).write_text("")
    bit = str(tmp_path / "vdla.bit")
    return SimpleNamespace(fake=fake, bit=bit, calls=calls, words=words, parts=parts)


def test_pynq(pynq):
    transport = open_pynq(pynq.bit, SIZE)
    assert transport.read(ID) == [IDENTITY]
    transport.write(BASE, 64)
    assert pynq.words[BASE] == 64
    assert transport.read(BASE) == [64]
    image, address = transport.allocate(100)
    assert (image.size, address) == (4096, Array.device_address)
    transport.upload(image, 0, 10)
    transport.release(image, 0, 10)
    transport.download(image, 0, 10)
    transport.allocate(100)
    assert pynq.calls == ["flush", "flush", "invalidate", "free"]


def message(bit):
    with pytest.raises(LinkError) as caught:
        open_pynq(bit, SIZE)
    return str(caught.value)


def test_the_package_is_missing(pynq, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynq", None)
    assert message(pynq.bit) == (
        "pynq: expected the package, found none; on a board with PYNQ's image use its python"
    )


def test_a_file_is_missing(pynq, tmp_path):
    assert message("nowhere") == "nowhere: expected a bitstream, found no file"
    (tmp_path / "vdla.hwh").unlink()
    assert message(pynq.bit) == (
        f"{tmp_path}/vdla.hwh: expected the hand-off file beside the bitstream, found no file; "
        "copy it from the folder that vdla synth wrote"
    )


@pytest.mark.parametrize(("error", "what"), [
    (RuntimeError("No Devices Found"), "No Devices Found"),  # as PYNQ 4.0 says it
    (OSError("Root permissions\nrequired."), "Root permissions required."),
    (RuntimeError(), "RuntimeError"),
])  # fmt: skip
def test_pynq_finds_no_board(pynq, error, what):
    def overlay(path):
        raise error

    pynq.fake.Overlay = overlay
    assert message(pynq.bit) == (
        f"{pynq.bit}: expected a board on which PYNQ loads it, found {what}; "
        "run on the board itself, as root"
    )


@pytest.mark.parametrize(("error", "end"), [
    (RuntimeError("Failed to allocate Memory!"), "Failed to allocate Memory!; free other buffers"),
    (MemoryError(), "MemoryError; free other buffers"),
    (AttributeError("'device' is not writable"),
     f"'device' is not writable; use a NumPy below 2, not {np.__version__}"),
])  # fmt: skip
def test_pynq_gives_no_memory(pynq, error, end):
    def allocate(shape, dtype):
        raise error

    transport = open_pynq(pynq.bit, SIZE)
    transport.allocate(100)
    pynq.fake.allocate = allocate
    for _ in range(2):  # the buffer before is given back once
        with pytest.raises(LinkError) as caught:
            transport.allocate(100)
        assert str(caught.value) == f"pynq.allocate: expected 4,096 bytes, found {end}"
    assert pynq.calls == ["free"]


@pytest.mark.parametrize(("others", "known"), [((), "nothing"), (("dma", "gpio"), "dma, gpio")])
def test_an_overlay_without_the_core(pynq, others, known):
    pynq.parts.clear()
    pynq.parts.update((name, {}) for name in others)
    assert message(pynq.bit) == (
        f"{pynq.bit}: expected a part called vdla, found {known}; "
        "load a bitstream and its .hwh that vdla synth wrote"
    )


@pytest.mark.parametrize(("name", "what", "value"), [
    ("ISA_HASH", "instruction set", 0x11), ("CONFIG_HASH", "config", 0x22),
])  # fmt: skip
def test_a_core_that_is_not_the_hand_off_files(pynq, name, what, value):
    pynq.parts["vdla_0"]["parameters"] |= {"ISA_HASH": "0x11", "CONFIG_HASH": "0x22"}
    open_pynq(pynq.bit, SIZE)
    pynq.parts["vdla_0"]["parameters"][name] = "0x00ab12cd"
    assert message(pynq.bit) == (
        f"{pynq.bit}: expected a core of {what} 00ab12cd, as its .hwh says, found {value:08x}; "
        "copy both files of one folder that vdla synth wrote"
    )
    pynq.words[ID] = 0  # the driver's to refuse
    open_pynq(pynq.bit, SIZE)
