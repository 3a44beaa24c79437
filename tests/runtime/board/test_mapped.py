"""Registers and memory that are mapped: Linux's UIO as files."""

import numpy as np
import pytest

from vdla.isa.registers import IDENTITY, VERSION, register
from vdla.runtime.board.mapped import open_uio
from vdla.runtime.board.transport import LinkError
from vdla.runtime.errors import DeviceError

SIZE = 1 << 16
ID, BASE = register("ID").offset, register("PROGRAM_BASE").offset


@pytest.fixture
def linux(tmp_path):
    """The files that Linux shows for a core and a u-dma-buf."""

    def put(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    put("sys/class/uio/uio0/name", "other\n")
    put("sys/class/uio/uio1/name", "vdla@43c00000\n")
    for name, value in (("size", SIZE), ("phys_addr", "0x1e000000")):
        put(f"sys/class/u-dma-buf/udmabuf0/{name}", f"{value}\n")
    (tmp_path / "dev").mkdir()
    words = np.zeros(1024, np.uint32)
    words[[ID // 4, ID // 4 + 1]] = IDENTITY, VERSION
    (tmp_path / "dev/uio1").write_bytes(words.tobytes())
    (tmp_path / "dev/udmabuf0").write_bytes(bytes(SIZE))
    return tmp_path


def test_uio(linux):
    transport = open_uio(linux)
    assert transport.name == "board at uio1"
    assert transport.read(ID, 2) == [IDENTITY, VERSION]
    transport.write(BASE, 0xFFFF_FFF0)
    assert transport.read(BASE) == [0xFFFF_FFF0]
    words = np.frombuffer((linux / "dev/uio1").read_bytes(), np.uint32)
    assert words[BASE // 4] == 0xFFFF_FFF0
    image, address = transport.allocate(5000)
    assert (image.size, address) == (8192, 0x1E00_0000)
    image[7] = 9
    assert (linux / "dev/udmabuf0").read_bytes()[7] == 9


@pytest.mark.parametrize(("call", "direction", "what"), [
    ("upload", "1", "sync_for_device"), ("download", "2", "sync_for_cpu"),
    ("release", "0", "sync_for_device"),
])  # fmt: skip
def test_caches_are_synchronized(linux, call, direction, what):
    transport = open_uio(linux)
    image, _ = transport.allocate(4096)
    getattr(transport, call)(image, 64, 192)
    settings = linux / "sys/class/u-dma-buf/udmabuf0"
    found = {name: (settings / name).read_text() for name in (
        "sync_offset", "sync_size", "sync_direction", what)}  # fmt: skip
    assert found == {
        "sync_offset": "64", "sync_size": "128", "sync_direction": direction, what: "1"
    }  # fmt: skip


def test_a_buffer_that_is_too_small(linux):
    with pytest.raises(DeviceError) as caught:
        open_uio(linux).allocate(SIZE + 1)
    assert str(caught.value) == (
        "board at uio1: expected a module of at most 65,536 bytes of DRAM, found one of 69,632"
    )


@pytest.mark.parametrize(("lost", "message"), [
    ("sys/class/uio/uio1/name",
     "uio: expected a device called vdla, found other; is the device-tree overlay loaded?"),
    ("dev/uio1", "dev/uio1: expected to open it, found No such file or directory"),
    ("dev/udmabuf0", "dev/udmabuf0: expected to open it, found No such file or directory"),
])  # fmt: skip
def test_what_linux_does_not_show(linux, lost, message):
    (linux / lost).unlink()
    with pytest.raises(LinkError) as caught:
        open_uio(linux)
    assert str(caught.value).removeprefix(f"{linux}/") == message


def test_no_udmabuf(linux):
    (linux / "sys/class/u-dma-buf/udmabuf0").rename(linux / "elsewhere")
    with pytest.raises(LinkError, match=r"^udmabuf0: expected a u-dma-buf, found none; load its"):
        open_uio(linux)
