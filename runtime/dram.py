"""The DRAM image that host and accelerator share, as the host holds it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.program import Program
from vdla.runtime.errors import DeviceError
from vdla.support.numbers import ceil_div

Dram = NDArray[np.uint8]
Ranges = Sequence[tuple[int, int]]  # of bytes: from, to
ALIGN = 64


def whole_pages(size: int) -> int:
    """``size`` bytes, rounded up to pages: what DRAM_SIZE can say."""
    return ceil_div(size, PAGE_BYTES) * PAGE_BYTES


def aligned_bytes(size: int, align: int = ALIGN) -> Dram:
    """``size`` zero bytes from an address that is a multiple of ``align``."""
    raw = np.zeros(size + align, np.uint8)
    start = -raw.ctypes.data % align
    return raw[start : start + size]


def host_image(size: int, constants: bytes) -> Dram:
    """Image of memory, as by :meth:`Device.allocate`, where the device works in the host's own
    memory.
    """
    dram = aligned_bytes(size)
    dram[: len(constants)] = np.frombuffer(constants, np.uint8)
    return dram


def place(device: str, program: bytes, config: Config, dram: Dram) -> Program:
    """Decodes a program and copies its stream to where it belongs in DRAM.

    Raises:
        ProgramError: not a program for this config.
        DeviceError: it doesn't fit.
    """
    loaded = Program.from_bytes(program, config)
    code = np.frombuffer(loaded.stream(), np.uint8)
    end = loaded.base + code.size
    if end > dram.size:
        raise DeviceError(
            f"device {device}: expected a program that ends by byte {dram.size} of DRAM, "
            f"found one that ends at {end}"
        )
    dram[loaded.base : end] = code
    return loaded
