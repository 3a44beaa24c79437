"""The memories that the compiled arithmetic works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdla.isa.config import Config
from vdla.sim.stream import Bytes, Rows

Int8 = NDArray[np.int8]
Int16 = NDArray[np.int16]
Int32 = NDArray[np.int32]


class Memories(NamedTuple):
    """Memories of one accelerator and the DRAM behind it; some in two or three forms of the same
    bytes."""

    inp: Int8  # [entry, block_in]
    inp_rows: Bytes  # [entry, byte]
    inp_bytes: Int8
    wgt: Int8  # [entry, block_out, block_in]
    wgt_rows: Bytes  # [entry, byte]
    acc: Int32  # [entry, block_out]
    uop: Rows  # [micro-op] its first, dst, src, wgt
    uop_rows: Bytes  # [entry, byte]
    uop_layout: Rows
    dram: Bytes
    dram8: Int8
    dram16: Int16
    dram32: Int32
    value: Int32  # [block_out] the register of GEMM
    options: Any  # a tuple of the arrays that options add, by their names


ADDED: dict[str, Callable[[Config], NDArray[Any]]] = {}  # makers of the options' arrays


def adds_memory(
    name: str,
) -> Callable[[Callable[[Config], NDArray[Any]]], Callable[[Config], NDArray[Any]]]:
    """Has a memory, or registers, of an option made by a function; ``of.options`` has it by its
    name."""

    def add(maker: Callable[[Config], NDArray[Any]]) -> Callable[[Config], NDArray[Any]]:
        ADDED[name] = maker
        return maker

    return add
