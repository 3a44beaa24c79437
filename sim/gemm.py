"""Semantics of GEMM: a matrix–vector product for each micro-op, with or without a window."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.isa.instructions import Gemm, Init
from vdla.sim.compiled import inline, shared
from vdla.sim.nest import (
    COUNT,
    DST,
    EXTENT_0,
    EXTENT_1,
    EXTENT_2,
    SRC,
    UOP_BEGIN,
    is_empty,
    leads_beyond,
    place,
    window_pitch,
)
from vdla.sim.stream import Rows, column

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Lanes = NDArray[np.signedinteger[Any]]

_INIT, _WGT, _BIAS = (column(Gemm, name) for name in ("init", "wgt_base", "bias_base"))
_WINDOW = column(Gemm, "window")
_INIT_ACC, _INIT_BIAS = int(Init.ACC), int(Init.BIAS)


@shared
def multiply(
    row: Rows, uops: Rows, inp: Int8, wgt: Int8, acc: Int32, window: Int8, value: Int32
) -> bool:
    """Runs a GEMM; False: its micro-ops lead beyond a memory, and nothing ran.

    ``window`` is int8 [window_rows, window_taps, block_in] and ``value`` int32 [block_out]: room
    for what the machine's registers hold.
    """
    if is_empty(row):
        return True
    windowed = row[_WINDOW] != 0
    for each in range(window.shape[0] if windowed else 0):
        for age in range(window.shape[1]):
            _clear(window[each, age])
    lanes_out, lanes_in = wgt.shape[1], wgt.shape[2]
    mode = row[_INIT]
    pitch = window_pitch(row)
    leaves = leads_beyond(row, SRC, uops, 2, inp.shape[0] - pitch)
    leaves = leaves or leads_beyond(row, DST, uops, 1, acc.shape[0])
    leaves = leaves or leads_beyond(row, _WGT, uops, 3, wgt.shape[0])
    if leaves or (mode == _INIT_BIAS and leads_beyond(row, _BIAS, uops, 0, acc.shape[0])):
        return False
    for i0 in range(row[EXTENT_0]):
        for i1 in range(row[EXTENT_1]):
            for i2 in range(row[EXTENT_2]):
                d0, s0 = place(row, DST, i0, i1, i2), place(row, SRC, i0, i1, i2)
                w0 = place(row, _WGT, i0, i1, i2)
                held = -1  # the accumulator that ``value`` holds
                for u in range(row[UOP_BEGIN], row[UOP_BEGIN] + row[COUNT]):
                    dst = d0 + uops[u, 1]
                    if dst != held:
                        if held >= 0:
                            _copy(value, acc[held])
                        _copy(acc[dst], value)
                        held = dst
                    if uops[u, 0] and mode != _INIT_ACC:
                        _copy(value, acc[held])  # the bias may be this very accumulator
                        _clear(value)
                        if mode == _INIT_BIAS:
                            _copy(acc[place(row, _BIAS, i0, i1, i2)], value)
                    src = s0 + uops[u, 2]
                    x, w = inp[src], wgt[w0 + uops[u, 3]]
                    for o in range(lanes_out):
                        total = np.int32(0)
                        for i in range(lanes_in):
                            total += np.int32(w[o, i]) * np.int32(x[i])
                        value[o] += total
                    if windowed:
                        for each in range(window.shape[0]):
                            _enter(inp[src + each * pitch], window[each])
                        _add_window(w, x, window, value)
                if held >= 0:
                    _copy(value, acc[held])
    return True


@inline
def _enter(x: Int8, places: Int8) -> None:
    """Puts a vector in front of those of its row, the oldest of which goes."""
    for age in range(places.shape[0] - 1, 0, -1):
        _copy(places[age - 1], places[age])
    _copy(x, places[0])


@inline
def _add_window(w: Int8, x: Int8, window: Int8, value: Int32) -> None:
    """In lanes that the window fills, its products take the place of the vector's own: to leave
    those out of the loop over all lanes took ten times as long."""
    rows, taps, lanes = window.shape
    for o in range(value.shape[0]):
        pair = o // 2 * 2
        one, other = pair % lanes, (pair + 1) % lanes
        total = np.int32(0)
        for each in range(rows):
            for age in range(taps):
                i = 2 * (each * taps + age)
                seen = np.int32(window[each, age, one])
                total += np.int32(w[o, i]) * (seen - np.int32(x[i]))
                seen = np.int32(window[each, age, other])
                total += np.int32(w[o, i + 1]) * (seen - np.int32(x[i + 1]))
        value[o] += total


@inline
def _copy(source: Lanes, to: Lanes) -> None:
    """A vector; an assignment of arrays takes numba three times as long to compile as all else."""
    for i in range(to.shape[0]):
        to[i] = source[i]


@inline
def _clear(vector: Lanes) -> None:
    """Puts zeros into a vector."""
    for i in range(vector.shape[0]):
        vector[i] = 0
