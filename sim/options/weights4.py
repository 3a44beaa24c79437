"""Weights of 4 bits: what a LOAD of WGT4 writes to WGT. Its entries' beats say when."""

from __future__ import annotations

from vdla.isa.instructions import Load
from vdla.isa.options.weights4 import INT4_MAX, NIBBLE_BITS, WGT4
from vdla.sim.compiled import inline, shared
from vdla.sim.memories import Memories
from vdla.sim.semantics import load_more
from vdla.sim.stream import Bytes, Rows, column

_SRAM, _DRAM = column(Load, "sram_base"), column(Load, "dram_base")
_X, _Y, _Z = (column(Load, f"{a}_size") for a in "xyz")
_XS, _YS, _ZS = (column(Load, f"{a}_stride") for a in "xyz")
_X0, _X1 = column(Load, "pad_x0"), column(Load, "pad_x1")
_Y0, _Y1 = column(Load, "pad_y0"), column(Load, "pad_y1")
_PAD = column(Load, "pad_value")

_VALUES = 1 << NIBBLE_BITS  # that a nibble may have


@load_more.on(WGT4)
def load_wgt4(memory: int, row: Rows, of: Memories) -> None:
    """DRAM → WGT, each nibble as int8; padding has a byte for each weight."""
    _load_nibbles(row, of.dram, of.wgt_rows)


@shared
def _load_nibbles(row: Rows, dram: Bytes, buffer: Bytes) -> None:
    """Widens tiles of nibbles into ``buffer`` [entry, weight]."""
    weights = buffer.shape[1]
    size, at = weights // 2, row[_SRAM]
    for z in range(row[_Z]):
        for y in range(-row[_Y0], row[_Y] + row[_Y1]):
            inside = 0 <= y < row[_Y]
            source = row[_DRAM] + size * (z * row[_ZS] + y * row[_YS])
            for x in range(-row[_X0], row[_X] + row[_X1]):
                if inside and 0 <= x < row[_X]:
                    first = source + size * x * row[_XS]
                    for i in range(size):
                        byte = int(dram[first + i])
                        buffer[at, 2 * i] = _widened(byte % _VALUES)
                        buffer[at, 2 * i + 1] = _widened(byte // _VALUES)
                else:
                    for i in range(weights):
                        buffer[at, i] = row[_PAD] & 0xFF
                at += 1


@inline
def _widened(nibble: int) -> int:
    """The byte of a nibble in two's complement: its top bit in all bits above."""
    return (nibble - _VALUES if nibble > INT4_MAX else nibble) & 0xFF
