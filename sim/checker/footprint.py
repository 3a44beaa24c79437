"""The footprint of LOAD and STORE, and the columns of their rows that say how far it goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vdla.isa.instructions import Instruction, Load, Mem, Store
from vdla.sim.stream import Rows, Stream, column

L_MEMORY, L_SRAM = column(Load, "memory"), column(Load, "sram_base")
L_DRAM = column(Load, "dram_base")  # STORE has memory and dram_base in the same columns
L_X, L_Y, L_Z = (column(Load, f"{a}_size") for a in "xyz")
L_XS, L_YS, L_ZS = (column(Load, f"{a}_stride") for a in "xyz")
L_X0, L_X1 = column(Load, "pad_x0"), column(Load, "pad_x1")
L_Y0, L_Y1 = column(Load, "pad_y0"), column(Load, "pad_y1")
S_MEMORY, S_SRAM = column(Store, "memory"), column(Store, "sram_base")
S_X, S_Y, S_Z = (column(Store, f"{a}_size") for a in "xyz")
S_YP, S_ZP = column(Store, "y_pitch"), column(Store, "z_pitch")
S_XS, S_YS, S_ZS = (column(Store, f"{a}_stride") for a in "xyz")
S_SCALE = column(Store, "scale_base")


def rows_of(stream: Stream, cls: type[Instruction]) -> tuple[Rows, Rows]:
    """Indices and rows of the instructions of a class."""
    at = np.flatnonzero(stream.rows[:, 0] == cls.opcode)
    return at, stream.rows[at]


def load_footprint(rows: Rows) -> tuple[Rows, Rows]:
    """Buffer entries a LOAD writes, and DRAM entries from its base to the last it reads."""
    x, y, z = (rows[:, c] for c in (L_X, L_Y, L_Z))
    entries = z * (y + rows[:, L_Y0] + rows[:, L_Y1]) * (x + rows[:, L_X0] + rows[:, L_X1])
    return entries, _dram_span(rows, (L_X, L_Y, L_Z), (L_XS, L_YS, L_ZS))


def store_footprint(rows: Rows) -> tuple[Rows, Rows, Rows]:
    """Ends of the ACC entries and of the scales a STORE reads, and its span in DRAM or INP."""
    x, y, z = (rows[:, c] for c in (S_X, S_Y, S_Z))
    some = x * y * z > 0
    last = (z - 1) * rows[:, S_ZP] + (y - 1) * rows[:, S_YP] + x
    scaled = some & (rows[:, S_MEMORY] != Mem.ACC)
    words = _dram_span(rows, (S_X, S_Y, S_Z), (S_XS, S_YS, S_ZS))
    return some * (rows[:, S_SRAM] + last), scaled * (rows[:, S_SCALE] + z), words


def stays_on_chip(rows: Rows) -> NDArray[np.bool_]:
    """Mask of the STOREs to another memory than DRAM, among LOADs and STOREs."""
    to_dram = np.isin(rows[:, S_MEMORY], (Mem.ACC, Mem.ACC8))
    mask: NDArray[np.bool_] = (rows[:, 0] == Store.opcode) & ~to_dram
    return mask


def dram_ends(stream: Stream, rows: Rows, span: Rows) -> Rows:
    """The first byte after what a LOAD or STORE reaches in DRAM; 0 when that is nothing."""
    sizes = [stream.config.entry(m.name.lower()) for m in Mem]
    of_memory = np.array(sizes + [0] * 2, np.int64)  # the field can name memories that aren't there
    ends = rows[:, L_DRAM] + span * of_memory[rows[:, L_MEMORY]]
    return np.where((span > 0) & ~stays_on_chip(rows), ends, 0)


def inp_ends(stream: Stream, rows: Rows, span: Rows) -> Rows:
    """The first byte after what a STORE reaches in INP; 0 when that is nothing."""
    ends = rows[:, L_DRAM] + span * stream.config.out_entry
    return np.where((span > 0) & stays_on_chip(rows) & (rows[:, S_MEMORY] == Mem.INP), ends, 0)


def _dram_span(rows: Rows, sizes: Sequence[int], strides: Sequence[int]) -> Rows:
    last = np.ones(len(rows), np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        last += (rows[:, size] - 1) * rows[:, stride]
    span: Rows = last * np.all(rows[:, list(sizes)] > 0, axis=1)
    return span
