"""Sums that windows make get room between their rows.

The first micro-ops of a row fill the window, and what they write belongs to no pixel. It goes in
front of the row, where the pass leaves room:

before   alloc sums: int32[4, 10, 16] @"vdla.acc"
         gemm_window1x3(acc=sums[y, x, 0], …)
after    alloc sums: int32[4, 10, 16] @"vdla.acc" align(0, 192, 0)      rows 12 entries apart
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.accelerator.description.lowering import lowering_of
from vdla.compiler.tir.ir import Buffer, Evaluate, PrimFunc
from vdla.compiler.tir.visitor import replace_buffer, walk

ROW = -3  # the dimension whose steps are rows: before pixels and lanes
Count = TypeVar("Count", int, float | NDArray[np.int64])  # a number, or one or a column of them


def row_pitch(cols: Count, fills: int) -> Count:
    """Entries from one row of sums to the next: its pixels, behind what fills the window."""
    return cols + fills


def widen_rows(func: PrimFunc) -> PrimFunc:
    """Moves the rows of every buffer apart that a window's intrinsic writes."""
    room: dict[Buffer, int] = {}
    for stmt in walk(func.body):
        if isinstance(stmt, Evaluate) and (fills := lowering_of(stmt.call.intrin).fills):
            sums = stmt.call.operands[0].buffer
            room[sums] = max(room.get(sums, 0), fills)
    body = func.body
    for buffer, fills in room.items():
        rank, (cols, *lanes) = len(buffer.shape), buffer.shape[ROW + 1 :]
        pitch = row_pitch(cols, fills) * prod(lanes)
        apart = replace(buffer, alignments=((rank + ROW, pitch, 0),))
        body = replace_buffer(body, buffer, apart)
    return PrimFunc(func.name, func.params, body)
