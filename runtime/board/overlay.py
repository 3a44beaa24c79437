"""A board by PYNQ's package: its class Overlay loads the bitstream and knows the core's addresses
from ``vdla.hwh``, ``pynq.MMIO`` reaches registers, ``pynq.allocate`` gets memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vdla.isa.registers import IDENTITY, SPACE_BYTES, register
from vdla.runtime.board.mapped import MappedTransport
from vdla.runtime.board.transport import LinkError
from vdla.runtime.dram import Dram

CORE = "vdla"  # in the names of an overlay's parts
PARAMETERS = {"ISA_HASH": "instruction set", "CONFIG_HASH": "config"}  # as registers, in order


class PynqBuffer:
    """One ``pynq.allocate``, as large as the module that comes first."""

    def __init__(self, pynq: Any, size: int) -> None:
        self.pynq, self.size = pynq, size
        self.array: Any = None

    def take(self, size: int) -> tuple[Dram, int]:
        """A new buffer; the one before is given back.

        Raises:
            LinkError: there is no such memory, or PYNQ is too old for this NumPy.
        """
        if self.array is not None:
            self.array.freebuffer()
            self.array = None
        try:
            self.array = self.pynq.allocate(shape=(size,), dtype=np.uint8)
        except (AttributeError, MemoryError, OSError, RuntimeError) as error:
            old = isinstance(error, AttributeError)  # of PYNQ 4.0's buffers with NumPy 2
            advice = f"use a NumPy below 2, not {np.__version__}" if old else "free other buffers"
            raise LinkError(
                f"pynq.allocate: expected {size:,} bytes, found {_line(error)}; {advice}"
            ) from None
        return np.asarray(self.array), int(self.array.device_address)

    def flush(self, start: int, stop: int) -> None:
        """PYNQ's own; whole, since its slices don't all know how."""
        self.array.flush()

    def release(self, start: int, stop: int) -> None:
        """PYNQ's flush, which writes back what is dirty."""
        self.array.flush()

    def invalidate(self, start: int, stop: int) -> None:
        """PYNQ's own."""
        self.array.invalidate()


class _PynqWords:
    """``pynq.MMIO``, which counts in bytes."""

    def __init__(self, mmio: Any) -> None:
        self.mmio = mmio

    def __getitem__(self, index: int) -> int:
        return int(self.mmio.read(4 * index))

    def __setitem__(self, index: int, value: int) -> None:
        self.mmio.write(4 * index, value)


def open_pynq(bitstream: str, memory_bytes: int) -> MappedTransport:
    """Loads a bitstream with PYNQ and finds the core in it.

    Raises:
        LinkError: the package is missing, a file is, PYNQ finds no board or can't load the
            bitstream, or ``open_overlay`` finds no core of the hand-off file's.
    """
    try:
        import pynq
    except ImportError:
        raise LinkError(
            "pynq: expected the package, found none; on a board with PYNQ's image use its python"
        ) from None
    if not Path(bitstream).exists():
        raise LinkError(f"{bitstream}: expected a bitstream, found no file")
    handoff = Path(bitstream).with_suffix(".hwh")
    if not handoff.exists():
        raise LinkError(
            f"{handoff}: expected the hand-off file beside the bitstream, found no file; "
            "copy it from the folder that vdla synth wrote"
        )
    try:
        overlay = pynq.Overlay(bitstream)
    except (RuntimeError, OSError) as error:
        raise LinkError(
            f"{bitstream}: expected a board on which PYNQ loads it, found {_line(error)}; "
            "run on the board itself, as root"
        ) from None
    return open_overlay(overlay, memory_bytes, pynq)


def open_overlay(overlay: Any, memory_bytes: int, package: Any) -> MappedTransport:
    """The core of an overlay that is loaded.

    Args:
        overlay: a ``pynq.Overlay``.
        memory_bytes: most bytes of memory that a module may take.
        package: ``pynq``, or what stands in for it: ``MMIO`` and ``allocate`` are called.

    Raises:
        LinkError: the overlay has no part called vdla, or what the core reads isn't what its
            hand-off file says.
    """
    bitstream = str(overlay.bitfile_name)
    cores = [part for name, part in overlay.ip_dict.items() if CORE in name]
    if not cores:
        known = ", ".join(overlay.ip_dict) or "nothing"
        raise LinkError(
            f"{bitstream}: expected a part called {CORE}, found {known}; "
            "load a bitstream and its .hwh that vdla synth wrote"
        )
    registers = _PynqWords(package.MMIO(cores[0]["phys_addr"], SPACE_BYTES))
    name = f"board with {bitstream}"
    transport = MappedTransport(name, registers, PynqBuffer(package, memory_bytes))
    _check(transport, bitstream, cores[0].get("parameters", {}))
    return transport


def _check(transport: MappedTransport, bitstream: str, parameters: Mapping[str, str]) -> None:
    """Compares the core with the hand-off file; one that vdla didn't write has no such parameters.

    The driver refuses what is no core at all.
    """
    ours, _, *actual = transport.read(register("ID").offset, 4)
    if ours != IDENTITY:
        return
    for (name, what), value in zip(PARAMETERS.items(), actual, strict=True):
        expected = int(parameters.get(name, str(value)), 0)
        if value != expected:
            raise LinkError(
                f"{bitstream}: expected a core of {what} {expected:08x}, as its .hwh says, "
                f"found {value:08x}; copy both files of one folder that vdla synth wrote"
            )


def _line(error: Exception) -> str:
    """An error in one line."""
    return " ".join(str(error).split()) or type(error).__name__
