"""The loop nest of GEMM and ALU: its columns in a row, and where it leads."""

from __future__ import annotations

from vdla.isa.instructions import Gemm
from vdla.sim.compiled import inline
from vdla.sim.compiled.seams import seam
from vdla.sim.stream import Rows, column

UOP_BEGIN, COUNT = column(Gemm, "uop_begin"), column(Gemm, "uop_count")
EXTENT_0, EXTENT_1, EXTENT_2 = (column(Gemm, f"extent_{i}") for i in range(3))
DST = column(Gemm, "dst_base")  # base, then the steps of loops 0, 1, 2
SRC = column(Gemm, "src_base")


@seam("+")
def src_reach(row: Rows) -> int:
    """Distance behind its src at which a GEMM's micro-op reads INP, too; 0 if it doesn't."""
    return 0


@inline
def is_empty(row: Rows) -> bool:
    """Whether a nest runs no micro-op, so that nothing reads its other fields."""
    loops = min(row[EXTENT_0], row[EXTENT_1], row[EXTENT_2])
    return bool(min(loops, row[COUNT]) == 0)


@inline
def place(row: Rows, base: int, i0: int, i1: int, i2: int) -> int:
    """Index to which a base and its three steps lead in an iteration."""
    steps = i0 * row[base + 1] + i1 * row[base + 2] + i2 * row[base + 3]
    return int(row[base] + steps)


@inline
def leads_beyond(row: Rows, base: int, uops: Rows, field: int, entries: int) -> bool:
    """Whether a base, its three loops and the micro-ops' ``field`` lead beyond a memory, in a nest
    that isn't empty.

    ``field`` is 0 for a bias: micro-ops give it no index, and those that aren't first don't read
    it. Timing has faulted a program that goes there. What remains is one whose micro-ops are loaded
    while they run: its effects aren't defined, but mustn't fall on other memory of this process.
    """
    if row[UOP_BEGIN] + row[COUNT] > uops.shape[0]:
        return True
    steps = row[base]
    for loop in range(3):
        steps += (row[EXTENT_0 + loop] - 1) * row[base + 1 + loop]
    for u in range(row[UOP_BEGIN], row[UOP_BEGIN] + row[COUNT]):
        counts = field > 0 or uops[u, 0] != 0
        if counts and steps + (uops[u, field] if field > 0 else 0) >= entries:
            return True
    return False
