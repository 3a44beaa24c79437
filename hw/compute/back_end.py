"""COMPUTE's back end: stages 1 to 7, which a micro-op passes after READ.

1. A micro-op goes on by a stage in each cycle; the back end never holds.
2. A chain of micro-ops that accumulate into one entry, each a cycle after the one before, writes
   once. The write before an accumulation is left out: that micro-op is marked ``skipped``.
"""

from __future__ import annotations

from amaranth import Module, Signal, Value
from amaranth.lib import data

from vdla.hw.compute.micro_op import WRITE, MicroOps
from vdla.hw.layout import valid_register


class BackEnd:
    """``stages[n]`` is the micro-op in stage n, ``stages[0]`` the one in READ as it passes."""

    def __init__(self, m: Module, micro_ops: MicroOps, read: data.View, hold: Value) -> None:
        self.m, self.read, self.hold = m, read, hold
        shape = micro_ops.passed()
        self.stages = [self._passing(shape)]
        for number in range(1, WRITE + 1):
            stage = valid_register(shape, 2, f"stage_{number}")
            m.d.sync += stage.eq(self.stages[-1])
            self.stages.append(stage)
        self._skip()

    def _passing(self, shape: data.StructLayout) -> data.View:
        read, passing = self.read, Signal(shape, name="passing")
        kept = ("last", "dst", "late", "first", "operation")
        self.m.d.comb += [
            *(passing[name].eq(read[name]) for name in kept),
            passing.valid.eq(read.valid & ~self.hold),
            passing.writes.eq(read.valid & ~self.hold & ~read.null),
            passing.late_at.eq(read.bias),
        ]
        return passing

    def _skip(self) -> None:
        """Marks the micro-op in stage 1 if the one in READ accumulates into the same entry."""
        read = self.read
        meets = read.dst_unwritten[0] & read.unwritten[-1]  # it came a cycle after stage 1
        again = read.valid & ~self.hold & read.accumulates & meets
        self.m.d.sync += self.stages[2].skipped.eq(again)
