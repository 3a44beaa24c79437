"""Semantics of ALU: an operation on two vectors of ACC for each micro-op."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vdla.isa.instructions import (
    MUL_BITS,
    SHR_BITS,
    WADD_BITS,
    WEIGHT_BITS,
    Alu,
    AluOp,
)
from vdla.isa.operations import bits_of
from vdla.isa.options.tables import TABLE_BITS, TABLE_RESULTS
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
)
from vdla.sim.requantize import reciprocal, requantize, rsqrt
from vdla.sim.stream import Rows, column

Int16 = NDArray[np.int16]
Int32 = NDArray[np.int32]

_A_OP, _A_USE_IMM = column(Alu, "alu_op"), column(Alu, "use_imm")
_A_INIT, _A_IMM, _A_WEIGHT = column(Alu, "init"), column(Alu, "imm"), column(Alu, "weight")
_A_ZERO, _A_LOW, _A_HIGH = column(Alu, "zero"), column(Alu, "low"), column(Alu, "high")

_ADD, _MIN, _MAX, _SHR, _MUL, _WADD, _RQ, _TABLE, *_LATER = (int(op) for op in AluOp)
_SCALE, _RECIPROCAL, _RSQRT = _LATER
_FROM_ACC = bits_of(op for op in AluOp if op.y_from_acc)


@shared
def combine(row: Rows, uops: Rows, acc: Int32, results: Int16) -> bool:
    """Runs an ALU instruction; False: its micro-ops lead beyond a memory, and nothing ran."""
    if is_empty(row):
        return True
    lanes = acc.shape[1]
    op = row[_A_OP]
    immediate = row[_A_USE_IMM] != 0 and not (_FROM_ACC >> op) & 1
    leaves = not immediate and leads_beyond(row, SRC, uops, 2, acc.shape[0])
    leaves = leaves or leads_beyond(row, DST, uops, 1, acc.shape[0])
    if leaves or _reads_beyond(row, uops, results.shape[0]):
        return False
    for i0 in range(row[EXTENT_0]):
        for i1 in range(row[EXTENT_1]):
            for i2 in range(row[EXTENT_2]):
                d0, s0 = place(row, DST, i0, i1, i2), place(row, SRC, i0, i1, i2)
                for u in range(row[UOP_BEGIN], row[UOP_BEGIN] + row[COUNT]):
                    dst, src = d0 + uops[u, 1], s0 + uops[u, 2]
                    start = uops[u, 0] != 0 and row[_A_INIT] != 0
                    for i in range(lanes):
                        y = int(row[_A_IMM]) if immediate else int(np.int64(acc[src, i]))
                        x = int(np.int64(acc[dst, i]))
                        value = y if start else _operate(op, x, y, row, results)
                        acc[dst, i] = _signed(value, 32)
    return True


@inline
def _signed(value: int, bits: int) -> int:
    """The low ``bits`` of a value, sign-extended."""
    return int((np.int64(value) << (64 - bits)) >> (64 - bits))


@inline
def _operate(op: int, x: int, y: int, row: Rows, results: Int16) -> int:
    if op == _ADD:
        return x + y
    if op == _MIN:
        return min(x, y)
    if op == _MAX:
        return max(x, y)
    if op == _SHR:
        amount = _signed(y, SHR_BITS)
        return x >> amount if amount >= 0 else x << -amount
    if op == _MUL:
        return x * _signed(y, MUL_BITS)
    if op == _WADD:
        weight = _signed(row[_A_IMM], WEIGHT_BITS)
        return int(_signed(x, WADD_BITS) * row[_A_WEIGHT] + _signed(y, WADD_BITS) * weight)
    if op == _TABLE:
        return int(np.int64(results[_first_result(row) + (y & (TABLE_RESULTS - 1))]))
    if op == _SCALE:
        return requantize(x, y)
    if op == _RECIPROCAL:
        return reciprocal(y)
    if op == _RSQRT:
        return rsqrt(y)
    return int(min(max(requantize(x, y) + row[_A_ZERO], row[_A_LOW]), row[_A_HIGH]))


@inline
def _first_result(row: Rows) -> int:
    """Number of the first result of a TABLE's table."""
    return int((row[_A_IMM] & ((1 << TABLE_BITS) - 1)) * TABLE_RESULTS)


@inline
def _reads_beyond(row: Rows, uops: Rows, results: int) -> bool:
    """Whether a micro-op of a TABLE reads a table beyond the last; one that starts from y doesn't
    read any."""
    if row[_A_OP] != _TABLE or _first_result(row) < results:
        return False
    for u in range(row[UOP_BEGIN], row[UOP_BEGIN] + row[COUNT]):
        if uops[u, 0] == 0 or row[_A_INIT] == 0:
            return True
    return False
