"""A board whose processor runs this program: registers are mapped, memory is shared with the core.

Two ways to get both: Linux's UIO with u-dma-buf, which need no package, or PYNQ's (``overlay.py``),
which loads the bitstream too. Caches are flushed before the core reads, and invalidated before the
host does.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vdla.isa.registers import SPACE_BYTES
from vdla.runtime.board.transport import LinkError, image_bytes
from vdla.runtime.dram import Dram

UIO_NAME = "vdla"  # of the device-tree node
BOTH_WAYS, TO_DEVICE, FROM_DEVICE = range(3)  # u-dma-buf's sync_direction


class Buffer(Protocol):
    """Memory that host and core share, contiguous for the core."""

    @property
    def size(self) -> int:
        """Bytes of the buffer."""
        ...

    def take(self, size: int) -> tuple[Dram, int]:
        """The first bytes of it, and where the core has them."""
        ...

    def flush(self, start: int, stop: int) -> None:
        """Writes the host's cache back."""
        ...

    def release(self, start: int, stop: int) -> None:
        """Writes the host's cache back, so that it won't write over what the core writes."""
        ...

    def invalidate(self, start: int, stop: int) -> None:
        """Forgets what the host's cache holds."""
        ...


class Words(Protocol):
    """Registers, by word."""

    def __getitem__(self, index: int) -> Any: ...
    def __setitem__(self, index: int, value: int) -> None: ...


class MappedTransport:
    """Registers as an array of words, and a shared buffer."""

    def __init__(self, name: str, registers: Words, buffer: Buffer) -> None:
        self.name, self.registers, self.buffer = name, registers, buffer

    def read(self, offset: int, count: int = 1) -> list[int]:
        """Registers one behind the other."""
        first = offset // 4
        return [int(self.registers[first + i]) for i in range(count)]

    def write(self, offset: int, value: int) -> None:
        """Writes a register."""
        self.registers[offset // 4] = value

    def allocate(self, size: int) -> tuple[Dram, int]:
        """An image in the shared buffer."""
        return self.buffer.take(image_bytes(self.name, size, self.buffer.size))

    def upload(self, image: Dram, start: int, stop: int) -> None:
        """Writes the host's cache back."""
        self.buffer.flush(start, stop)

    def release(self, image: Dram, start: int, stop: int) -> None:
        """Writes the host's cache back, before the core writes."""
        self.buffer.release(start, stop)

    def download(self, image: Dram, start: int, stop: int) -> None:
        """Forgets what the host's cache holds."""
        self.buffer.invalidate(start, stop)

    def close(self) -> None:
        """Does nothing: several processes may map registers and buffer."""


# Linux: UIO and u-dma-buf ------------------------------------------------------------------------


class UdmaBuffer:
    """``/dev/udmabuf0``, cached, synchronized through sysfs (github.com/ikwzm/udmabuf)."""

    def __init__(self, device: Path, settings: Path) -> None:
        self.settings = settings
        self.size = int(self._read("size"), 0)
        self.address = int(self._read("phys_addr"), 0)
        with open(device, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), self.size)
        self._bytes: NDArray[np.uint8] = np.frombuffer(self._map, np.uint8)

    def take(self, size: int) -> tuple[Dram, int]:
        """The buffer's first bytes."""
        return self._bytes[:size], self.address

    def flush(self, start: int, stop: int) -> None:
        """Gives the bytes to the core."""
        self._sync(start, stop, TO_DEVICE, "sync_for_device")

    def release(self, start: int, stop: int) -> None:
        """Gives the bytes to the core, which may write them, too."""
        self._sync(start, stop, BOTH_WAYS, "sync_for_device")

    def invalidate(self, start: int, stop: int) -> None:
        """Takes the bytes back from the core."""
        self._sync(start, stop, FROM_DEVICE, "sync_for_cpu")

    def _sync(self, start: int, stop: int, direction: int, what: str) -> None:
        values = {"sync_offset": start, "sync_size": stop - start, "sync_direction": direction}
        for name, value in {**values, what: 1}.items():
            (self.settings / name).write_text(str(value))

    def _read(self, name: str) -> str:
        return (self.settings / name).read_text().strip()


def open_uio(root: Path = Path("/")) -> MappedTransport:
    """The core as device tree and kernel show it: UIO for registers, u-dma-buf for memory.

    Raises:
        LinkError: there is no UIO device called vdla, or no u-dma-buf, or no right to open them.
    """
    names = {
        path.parent.name: path.read_text().strip()
        for path in sorted((root / "sys/class/uio").glob("uio*/name"))
    }
    result = [device for device, name in names.items() if name.split("@")[0] == UIO_NAME]
    if not result:
        known = ", ".join(names.values()) or "no UIO device"
        raise LinkError(
            f"uio: expected a device called {UIO_NAME}, found {known}; "
            "is the device-tree overlay loaded?"
        )
    settings = root / "sys/class/u-dma-buf/udmabuf0"
    if not settings.is_dir():
        raise LinkError("udmabuf0: expected a u-dma-buf, found none; load its module with a size")
    try:
        with open(root / "dev" / result[0], "r+b") as file:
            registers = mmap.mmap(file.fileno(), SPACE_BYTES)
        buffer = UdmaBuffer(root / "dev/udmabuf0", settings)
    except OSError as error:
        raise LinkError(f"{error.filename}: expected to open it, found {error.strerror}") from None
    return MappedTransport(f"board at {result[0]}", np.frombuffer(registers, np.uint32), buffer)
