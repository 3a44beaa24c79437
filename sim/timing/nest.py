"""The loop nests of the engines of micro-ops, and the micro-ops that steer them.

A GEMM or ALU runs its micro-ops, one after another, in each iteration of three loops. The clock
keeps its own copy of the UOP buffer, since what is in there decides which entries are accessed.
"""

from __future__ import annotations

from vdla.isa.instructions import (
    Alu,
    AluOp,
    Gemm,
    Init,
    Load,
    Mem,
)
from vdla.isa.operations import bits_of
from vdla.sim.compiled import inline
from vdla.sim.compiled.seams import seam
from vdla.sim.nest import src_reach
from vdla.sim.stream import column
from vdla.sim.timing.state import NONE, Machine, Pipeline, Tables
from vdla.sim.transfers import load_uops

_UOP, _COUNT = column(Gemm, "uop_begin"), column(Gemm, "uop_count")
_E0, _E1, _E2 = (column(Gemm, f"extent_{i}") for i in range(3))
DST, SRC = column(Gemm, "dst_base"), column(Gemm, "src_base")
_WGT, _BIAS = column(Gemm, "wgt_base"), column(Gemm, "bias_base")
_INIT = column(Gemm, "init")
_OP, _USE_IMM = column(Alu, "alu_op"), column(Alu, "use_imm")
_A_INIT = column(Alu, "init")
_GEMM, _INIT_BIAS = Gemm.opcode, int(Init.BIAS)
_FROM_ACC = bits_of(op for op in AluOp if op.y_from_acc)
_MEMORY, _SRAM = column(Load, "memory"), column(Load, "sram_base")
_IN_INP, _IN_WGT, _IN_ACC, _IN_UOP = int(Mem.INP), int(Mem.WGT), int(Mem.ACC), int(Mem.UOP)


@inline
def take_over_uops(m: Machine, t: Tables, row: int) -> None:
    """Takes over the micro-ops of a LOAD that has finished."""
    if t.rows[row, _MEMORY] != _IN_UOP:
        return
    n = load_uops(t.rows[row], t.dram, t.uop_raw, t.uop_layout, t.uops)
    first, per_word = t.rows[row, _SRAM], t.uop_layout[4, 1]
    for u in range(first * per_word, (first + n) * per_word):
        for field in range(4):
            t.most[field] = max(t.most[field], t.uops[u, field])


@inline
def begin_nest(m: Machine, t: Tables, p: Pipeline, row: int) -> None:
    """Puts an instruction into the loop nest, at its first micro-op."""
    p.nest.row = row
    p.nest.checked = _may_leave(m, t, row)
    place(p, t, 0)


@inline
def place(p: Pipeline, t: Tables, index: int) -> None:
    """Sets the loop nest to its ``index``-th micro-op."""
    row = p.nest.row
    p.nest.index = index
    p.nest.u = index % max(t.rows[row, _COUNT], 1)
    index //= max(t.rows[row, _COUNT], 1)
    p.nest.i2 = index % max(t.rows[row, _E2], 1)
    index //= max(t.rows[row, _E2], 1)
    p.nest.i1 = index % max(t.rows[row, _E1], 1)
    p.nest.i0 = index // max(t.rows[row, _E1], 1)


@inline
def advance(p: Pipeline, t: Tables) -> bool:
    """Steps the loop nest, which lets its instruction go after the last micro-op; true then."""
    row = p.nest.row
    p.nest.index += 1
    p.nest.u += 1
    if p.nest.u < t.rows[row, _COUNT]:
        return False
    p.nest.u = 0
    p.nest.i2 += 1
    if p.nest.i2 < t.rows[row, _E2]:
        return False
    p.nest.i2 = 0
    p.nest.i1 += 1
    if p.nest.i1 < t.rows[row, _E1]:
        return False
    p.nest.i1 = 0
    p.nest.i0 += 1
    if p.nest.i0 < t.rows[row, _E0]:
        return False
    p.nest.row = NONE
    return True


@inline
def pass_empty(p: Pipeline) -> None:
    """Lets an instruction without micro-ops go."""
    p.nest.row = NONE


@inline
def steps(t: Tables, row: int) -> int:
    """Micro-ops that an instruction issues in all."""
    iterations = t.rows[row, _E0] * t.rows[row, _E1] * t.rows[row, _E2]
    return int(iterations * t.rows[row, _COUNT])


@inline
def micro_op(p: Pipeline, t: Tables) -> int:
    """Entry of the next micro-op in the UOP buffer."""
    return int(t.rows[p.nest.row, _UOP] + p.nest.u)


@inline
def iteration_base(p: Pipeline, t: Tables, base: int) -> int:
    """A base of the instruction with its loop steps at the present iteration."""
    row = p.nest.row
    return int(
        t.rows[row, base]
        + p.nest.i0 * t.rows[row, base + 1]
        + p.nest.i1 * t.rows[row, base + 2]
        + p.nest.i2 * t.rows[row, base + 3]
    )


@inline
def goes_beyond(m: Machine, t: Tables, p: Pipeline) -> bool:
    """Whether the next micro-op, or anything it reads or writes, lies beyond its buffer."""
    if not p.nest.checked:
        return False
    row, u, entries = p.nest.row, micro_op(p, t), m.settings.entries
    if u >= m.settings.uops or iteration_base(p, t, DST) + t.uops[u, 1] >= entries[_IN_ACC]:
        return True
    src = iteration_base(p, t, SRC) + t.uops[u, 2]
    if t.rows[row, 0] != _GEMM:
        reads_y = t.rows[row, _USE_IMM] == 0 or (_FROM_ACC >> t.rows[row, _OP]) & 1 != 0
        starts = t.uops[u, 0] != 0 and t.rows[row, _A_INIT] != 0
        beyond = not starts and alu_beyond(m, t, row)
        return bool(beyond or (reads_y and src >= entries[_IN_ACC]))
    wgt = iteration_base(p, t, _WGT) + t.uops[u, 3]
    if src + src_reach(t.rows[row]) >= entries[_IN_INP] or wgt >= entries[_IN_WGT]:
        return True
    biased = t.uops[u, 0] != 0 and t.rows[row, _INIT] == _INIT_BIAS
    return bool(biased and iteration_base(p, t, _BIAS) >= entries[_IN_ACC])


@inline
def _may_leave(m: Machine, t: Tables, row: int) -> bool:
    """Whether an instruction might go beyond a buffer, so that its micro-ops need a look each."""
    entries = m.settings.entries
    dst = _reach(t, row, DST) + t.most[1]
    src = _reach(t, row, SRC) + t.most[2]
    end = t.rows[row, _UOP] + t.rows[row, _COUNT]
    if end > m.settings.uops or dst >= entries[_IN_ACC]:
        return True
    if t.rows[row, 0] != _GEMM:
        return bool(src >= entries[_IN_ACC] or alu_beyond(m, t, row))
    wgt, bias = _reach(t, row, _WGT) + t.most[3], _reach(t, row, _BIAS)
    beyond = wgt >= entries[_IN_WGT] or bias >= entries[_IN_ACC]
    return bool(src + src_reach(t.rows[row]) >= entries[_IN_INP] or beyond)


@seam("or")
def alu_beyond(m: Machine, t: Tables, row: int) -> bool:
    """Whether an ALU instruction reads beyond a memory that an option adds, in micro-ops that don't
    give y itself."""
    return False


@inline
def _reach(t: Tables, row: int, base: int) -> int:
    """The greatest index that a base and its three loop steps add up to."""
    last = t.rows[row, base]
    for loop in range(3):
        last += max(t.rows[row, _E0 + loop] - 1, 0) * t.rows[row, base + 1 + loop]
    return int(last)
