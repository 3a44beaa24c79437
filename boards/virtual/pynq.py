"""PYNQ without the board: what vdla and its notebook call of the package ``pynq``, on a core's RTL.

    pynq = VirtualPynq(find_board("pynq-z2"), config)      as ``import pynq``
    overlay = pynq.Overlay("vdla.bit")
    overlay.vdla.register_map.CONFIG_HASH

The bitstream need not be there: its core is the RTL of the config. The hand-off file beside it must
be, and is read with ``pynqmetadata``, as PYNQ 4.0 reads it. Host and core see different copies of a
buffer until it is flushed or invalidated, as behind a cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from vdla.boards.board import Board, BoardError
from vdla.boards.virtual.axi import VirtualAxiBoard
from vdla.isa.config import Config
from vdla.runtime.dram import Dram

Entries = Mapping[str, Any]  # of a dictionary as PYNQ has them, by name


class VirtualPynq:
    """A board with a config's core, as the package ``pynq`` shows it."""

    def __init__(self, board: Board, config: Config) -> None:
        self.core = VirtualAxiBoard(f"virtual board {board.name}", config, board.memory_bytes)
        self._parts: list[Entries] = []  # of the overlay, those that have addresses

    def Overlay(self, bitfile_name: str) -> VirtualOverlay:
        """An overlay that is loaded.

        Raises:
            OSError: there is no hand-off file.
            BoardError: the package that reads it is missing.
        """
        overlay = VirtualOverlay(self, bitfile_name)
        self._parts = [part for part in overlay.ip_dict.values() if "phys_addr" in part]
        return overlay

    def MMIO(self, base_addr: int, length: int = 4) -> VirtualMmio:
        """Registers from an address on.

        Raises:
            OSError: the overlay has none there.
        """
        for part in self._parts:
            start = base_addr - part["phys_addr"]
            if 0 <= start <= part["addr_range"] - length:
                return VirtualMmio(self.core, start)
        raise OSError(
            f"expected an address of the overlay, with {length} bytes behind it, "
            f"found {base_addr:#x}"
        )

    def allocate(self, shape: tuple[int, ...], dtype: DTypeLike = "u4") -> VirtualBuffer:
        """Memory that host and core share. The core has one such buffer: the newest."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        image, address = self.core.allocate(size)
        buffer = image[:size].view(dtype).reshape(shape).view(VirtualBuffer)
        buffer.core, buffer.image, buffer.device_address = self.core, image, address
        return buffer


class VirtualBuffer(np.ndarray[Any, Any]):
    """A ``pynq.buffer.PynqBuffer``: ``device_address`` is where the core has it."""

    core: VirtualAxiBoard
    image: Dram
    device_address: int

    def flush(self) -> None:
        """Writes the host's cache back."""
        self.core.upload(self.image, 0, self.image.size)

    def invalidate(self) -> None:
        """Forgets what the host's cache holds."""
        self.core.download(self.image, 0, self.image.size)

    def freebuffer(self) -> None:
        """Does nothing: Python frees it."""


class VirtualMmio:
    """A ``pynq.MMIO``; offsets are in bytes."""

    def __init__(self, core: VirtualAxiBoard, start: int) -> None:
        self._core, self._start = core, start

    def read(self, offset: int = 0) -> int:
        """A register's value."""
        return self._core.read(self._start + offset)[0]

    def write(self, offset: int, value: int) -> None:
        """Writes a register."""
        self._core.write(self._start + offset, value)


class VirtualOverlay:
    """A ``pynq.Overlay``: its dictionaries, and each part by its name."""

    def __init__(self, pynq: VirtualPynq, bitfile_name: str) -> None:
        path = Path(bitfile_name).absolute()
        parser = _parsed(path.with_suffix(".hwh"))
        self.bitfile_name, self._pynq = str(path), pynq
        self.ip_dict: dict[str, Any] = parser.ip_dict
        self.clock_dict: dict[int, Any] = parser.clock_dict
        self.interrupt_pins: dict[str, Any] = parser.interrupt_pins

    def __getattr__(self, name: str) -> VirtualIp:
        if name.startswith("_") or "phys_addr" not in self.ip_dict.get(name, {}):
            raise AttributeError(
                f"overlay: expected one of {', '.join(self.ip_dict)}, found {name}"
            )
        return VirtualIp(self._pynq, self.ip_dict[name])


class VirtualIp:
    """A ``pynq.DefaultIP``."""

    def __init__(self, pynq: VirtualPynq, part: Entries) -> None:
        self.mmio = pynq.MMIO(part["phys_addr"], part["addr_range"])
        self.register_map = VirtualRegisterMap(self.mmio, part["registers"])


class VirtualRegisterMap:
    """A ``pynq.registers.RegisterMap``, to be read: each register by its name."""

    def __init__(self, mmio: VirtualMmio, registers: Entries) -> None:
        self._mmio, self._registers = mmio, registers

    def __getattr__(self, name: str) -> VirtualRegister:
        if name.startswith("_") or name not in self._registers:
            raise AttributeError(f"register map: expected a register's name, found {name}")
        entry = self._registers[name]
        return VirtualRegister(self._mmio.read(entry["address_offset"]), entry["fields"])

    def __repr__(self) -> str:
        readable = {
            name: getattr(self, name)
            for name, entry in self._registers.items()
            if entry["access"] != "write-only"
        }
        lines = (f"  {name} = {value!r}" for name, value in readable.items())
        return "RegisterMap {\n" + ",\n".join(lines) + "\n}"


class VirtualRegister:
    """Value of a ``pynq.registers.Register``: as an integer, and its fields by their names."""

    def __init__(self, value: int, fields: Entries) -> None:
        self._value, self._fields = value, fields

    def __index__(self) -> int:
        return self._value

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or name not in self._fields:
            raise AttributeError(f"register: expected one of {list(self._fields)}, found {name}")
        field = self._fields[name]
        return self._value >> int(field["bit_offset"]) & (1 << int(field["bit_width"])) - 1

    def __repr__(self) -> str:
        return f"Register({', '.join(f'{name}={getattr(self, name)}' for name in self._fields)})"


def _parsed(handoff: Path) -> Any:
    """A hand-off file as PYNQ reads it.

    Raises:
        OSError: there is none.
        BoardError: the package is missing.
    """
    try:
        from pynqmetadata.frontends import Metadata
        from pynqmetadata.views.runtime import RuntimeMetadataParser
    except ModuleNotFoundError as error:
        raise BoardError(
            f"virtual pynq: expected the package {error.name}, found none; "
            "install with: pip install pynqmetadata"
        ) from None
    if not handoff.exists():
        raise FileNotFoundError(f"{handoff}: expected a hand-off file, found no file")
    return RuntimeMetadataParser(Metadata(str(handoff)))
