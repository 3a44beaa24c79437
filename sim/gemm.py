"""Semantics of GEMM: a matrix–vector product for each micro-op.

An option may do more before an instruction (``begin_products``) and behind each product
(``add_more``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.isa.instructions import Gemm, Init
from vdla.sim.compiled import inline, shared
from vdla.sim.compiled.seams import seam
from vdla.sim.memories import Int8, Memories
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
    src_reach,
)
from vdla.sim.stream import Rows, column

Lanes = NDArray[np.signedinteger[Any]]

_INIT, _WGT, _BIAS = (column(Gemm, name) for name in ("init", "wgt_base", "bias_base"))
_INIT_ACC, _INIT_BIAS = int(Init.ACC), int(Init.BIAS)


@shared
def multiply(row: Rows, of: Memories) -> bool:
    """Runs a GEMM; False: its micro-ops lead beyond a memory, and nothing ran."""
    if is_empty(row):
        return True
    begin_products(row, of)
    uops, inp, wgt, acc, value = of.uop, of.inp, of.wgt, of.acc, of.value
    lanes_out, lanes_in = wgt.shape[1], wgt.shape[2]
    mode = row[_INIT]
    leaves = leads_beyond(row, SRC, uops, 2, inp.shape[0] - src_reach(row))
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
                            copy(value, acc[held])
                        copy(acc[dst], value)
                        held = dst
                    if uops[u, 0] and mode != _INIT_ACC:
                        copy(value, acc[held])  # the bias may be this very accumulator
                        clear(value)
                        if mode == _INIT_BIAS:
                            copy(acc[place(row, _BIAS, i0, i1, i2)], value)
                    src = s0 + uops[u, 2]
                    x, w = inp[src], wgt[w0 + uops[u, 3]]
                    for o in range(lanes_out):
                        total = np.int32(0)
                        for i in range(lanes_in):
                            total += np.int32(w[o, i]) * np.int32(x[i])
                        value[o] += total
                    add_more(row, src, w, of)
                if held >= 0:
                    copy(value, acc[held])
    return True


@seam("then")
def begin_products(row: Rows, of: Memories) -> None:
    """An option's work before the first micro-op of an instruction."""


@seam("then")
def add_more(row: Rows, src: int, tile: Int8, of: Memories) -> None:
    """An option's addition to ``of.value`` behind the product of ``inp[src]`` and a tile of WGT."""


@inline
def copy(source: Lanes, to: Lanes) -> None:
    """A vector; an assignment of arrays takes numba three times as long to compile as all else."""
    for i in range(to.shape[0]):
        to[i] = source[i]


@inline
def clear(vector: Lanes) -> None:
    """Puts zeros into a vector."""
    for i in range(vector.shape[0]):
        vector[i] = 0
