"""Semantics of LOAD and STORE: rows of DRAM into a buffer, vectors of ACC into DRAM or INP."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.isa.instructions import Load, Store
from vdla.sim.compiled import compiled, shared
from vdla.sim.requantize import requantize
from vdla.sim.stream import Bytes, Rows, column, decode_uops

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Lanes = NDArray[np.signedinteger[Any]]

_L_SRAM = column(Load, "sram_base")
_L_DRAM = column(Load, "dram_base")
_L_X, _L_Y, _L_Z = (column(Load, f"{a}_size") for a in "xyz")
_L_XS, _L_YS, _L_ZS = (column(Load, f"{a}_stride") for a in "xyz")
_L_PAD_X0, _L_PAD_X1 = column(Load, "pad_x0"), column(Load, "pad_x1")
_L_PAD_Y0, _L_PAD_Y1 = column(Load, "pad_y0"), column(Load, "pad_y1")
_L_PAD_VALUE = column(Load, "pad_value")

_S_SRAM, _S_DRAM = column(Store, "sram_base"), column(Store, "dram_base")
_S_X, _S_Y, _S_Z = (column(Store, f"{a}_size") for a in "xyz")
_S_YP, _S_ZP = column(Store, "y_pitch"), column(Store, "z_pitch")
_S_XS, _S_YS, _S_ZS = (column(Store, f"{a}_stride") for a in "xyz")
_S_SCALE, _S_ZERO = column(Store, "scale_base"), column(Store, "zero")
_S_LOW, _S_HIGH = column(Store, "low"), column(Store, "high")


def tile_entries(row: Rows) -> int:
    """Buffer entries a LOAD writes, padding included."""
    y = row[_L_Y] + row[_L_PAD_Y0] + row[_L_PAD_Y1]
    x = row[_L_X] + row[_L_PAD_X0] + row[_L_PAD_X1]
    return int(row[_L_Z] * y * x)


@shared
def load_rows(row: Rows, dram: Bytes, buffer: Bytes, pad: int) -> int:
    """Runs a LOAD that keeps bytes as they are; returns the entries written."""
    size = buffer.shape[1]
    at = row[_L_SRAM]
    for z in range(row[_L_Z]):
        for y in range(-row[_L_PAD_Y0], row[_L_Y] + row[_L_PAD_Y1]):
            inside = 0 <= y < row[_L_Y]
            source = row[_L_DRAM] + size * (z * row[_L_ZS] + y * row[_L_YS])
            for x in range(-row[_L_PAD_X0], row[_L_X] + row[_L_PAD_X1]):
                if inside and 0 <= x < row[_L_X]:
                    first = source + size * x * row[_L_XS]
                    for i in range(size):
                        buffer[at, i] = dram[first + i]
                else:
                    for i in range(size):
                        buffer[at, i] = pad
                at += 1
    return int(at - row[_L_SRAM])


@shared
def load_uops(row: Rows, dram: Bytes, raw: Bytes, layout: Rows, uops: Rows) -> int:
    """Runs a LOAD of UOP into ``raw`` [entry, byte], and decodes what it wrote into ``uops`` rows
    (first, dst, src, wgt); returns the entries written."""
    entries = load_rows(row, dram, raw, row[_L_PAD_VALUE] & 0xFF)
    decode_uops(raw, row[_L_SRAM], entries, layout, uops)
    return entries


@compiled("simulator")
def take_uops(row: Rows, dram: Bytes, raw: Bytes, layout: Rows, uops: Rows) -> int:
    """``load_uops`` for callers in Python."""
    return load_uops(row, dram, raw, layout, uops)


@shared
def load_lanes(
    row: Rows, dram: Lanes, buffer: Lanes, pad: int, zero: int, address_bytes: int
) -> None:
    """Runs a LOAD of lanes, less ``zero``: int32 (address_bytes 4) or int8 (1) into ACC, int16 (2)
    into TAB."""
    size = buffer.shape[1]
    base = row[_L_DRAM] // address_bytes
    at = row[_L_SRAM]
    for z in range(row[_L_Z]):
        for y in range(-row[_L_PAD_Y0], row[_L_Y] + row[_L_PAD_Y1]):
            inside = 0 <= y < row[_L_Y]
            source = base + size * (z * row[_L_ZS] + y * row[_L_YS])
            for x in range(-row[_L_PAD_X0], row[_L_X] + row[_L_PAD_X1]):
                if inside and 0 <= x < row[_L_X]:
                    first = source + size * x * row[_L_XS]
                    for i in range(size):
                        buffer[at, i] = np.int32(dram[first + i]) - zero
                else:
                    for i in range(size):
                        buffer[at, i] = pad
                at += 1


@shared
def store_lanes(row: Rows, acc: Int32, dram: Int32) -> None:
    """Runs a STORE of whole lanes."""
    """Runs a STORE of whole lanes."""
    size = acc.shape[1]
    for z in range(row[_S_Z]):
        for y in range(row[_S_Y]):
            for x in range(row[_S_X]):
                at = row[_S_SRAM] + z * row[_S_ZP] + y * row[_S_YP] + x
                to = z * row[_S_ZS] + y * row[_S_YS] + x * row[_S_XS]
                first = row[_S_DRAM] // 4 + to * size
                for i in range(size):
                    dram[first + i] = acc[at, i]


@shared
def store_bytes(row: Rows, acc: Int32, to_bytes: Int8) -> None:
    """Runs a STORE of a byte for each lane, into the bytes of DRAM or of INP."""
    size = acc.shape[1]
    zero, low, high = row[_S_ZERO], row[_S_LOW], row[_S_HIGH]
    for z in range(row[_S_Z]):
        scale = acc[row[_S_SCALE] + z]
        for y in range(row[_S_Y]):
            for x in range(row[_S_X]):
                at = row[_S_SRAM] + z * row[_S_ZP] + y * row[_S_YP] + x
                to = z * row[_S_ZS] + y * row[_S_YS] + x * row[_S_XS]
                first = row[_S_DRAM] + to * size
                for i in range(size):
                    value = requantize(acc[at, i], scale[i]) + zero
                    to_bytes[first + i] = np.int8(min(max(value, low), high))
