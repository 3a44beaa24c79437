"""Semantics of ALU: an operation on two vectors of ACC for each micro-op.

An option adds operations (``operate``), and says which go beyond a memory of its own.
"""

from __future__ import annotations

import numpy as np

from vdla.isa.instructions import (
    MUL_BITS,
    SHR_BITS,
    WADD_BITS,
    WEIGHT_BITS,
    Alu,
    AluOp,
)
from vdla.isa.operations import bits_of
from vdla.sim.compiled import inline, shared
from vdla.sim.compiled.seams import seam
from vdla.sim.memories import Memories
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
from vdla.sim.requantize import requantize
from vdla.sim.stream import Rows, column

_A_OP, _A_USE_IMM = column(Alu, "alu_op"), column(Alu, "use_imm")
_A_INIT, _A_IMM, _A_WEIGHT = column(Alu, "init"), column(Alu, "imm"), column(Alu, "weight")
_A_ZERO, _A_LOW, _A_HIGH = column(Alu, "zero"), column(Alu, "low"), column(Alu, "high")

_FROM_ACC = bits_of(op for op in AluOp if op.y_from_acc)


@shared
def combine(row: Rows, of: Memories) -> bool:
    """Runs an ALU instruction; False: its micro-ops lead beyond a memory, and nothing ran."""
    if is_empty(row):
        return True
    uops, acc = of.uop, of.acc
    lanes = acc.shape[1]
    op = row[_A_OP]
    immediate = row[_A_USE_IMM] != 0 and not (_FROM_ACC >> op) & 1
    leaves = not immediate and leads_beyond(row, SRC, uops, 2, acc.shape[0])
    leaves = leaves or leads_beyond(row, DST, uops, 1, acc.shape[0])
    if leaves or (operates(row, uops) and alu_reads_beyond(row, of)):
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
                        value = y if start else operate(op, x, y, row, of)
                        acc[dst, i] = _signed(value, 32)
    return True


@inline
def _signed(value: int, bits: int) -> int:
    """The low ``bits`` of a value, sign-extended."""
    return int((np.int64(value) << (64 - bits)) >> (64 - bits))


# Operations -------------------------------------------------------------------------------------


@seam("choice")
def operate(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    """The result of an operation, of which the low 32 bits count."""
    return 0  # of an operation that the machine doesn't know


@operate.on(AluOp.ADD)
def _add(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    return x + y


@operate.on(AluOp.MIN)
def _min(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    return min(x, y)


@operate.on(AluOp.MAX)
def _max(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    return max(x, y)


@operate.on(AluOp.SHR)
def _shr(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    amount = _signed(y, SHR_BITS)
    return x >> amount if amount >= 0 else x << -amount


@operate.on(AluOp.MUL)
def _mul(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    return x * _signed(y, MUL_BITS)


@operate.on(AluOp.WADD)
def _wadd(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    weight = _signed(row[_A_IMM], WEIGHT_BITS)
    return int(_signed(x, WADD_BITS) * row[_A_WEIGHT] + _signed(y, WADD_BITS) * weight)


@operate.on(AluOp.RQ)
def _rq(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    return int(min(max(requantize(x, y) + row[_A_ZERO], row[_A_LOW]), row[_A_HIGH]))


# Memories of options ----------------------------------------------------------------------------


@seam("or")
def alu_reads_beyond(row: Rows, of: Memories) -> bool:
    """Whether an operation reads beyond a memory that an option adds."""
    return False


@inline
def operates(row: Rows, uops: Rows) -> bool:
    """Whether a micro-op of a nest that isn't empty does more than give y."""
    for u in range(row[UOP_BEGIN], row[UOP_BEGIN] + row[COUNT]):
        if uops[u, 0] == 0 or row[_A_INIT] == 0:
            return True
    return False
