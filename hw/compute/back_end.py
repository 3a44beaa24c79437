"""The back end: stages 1 to 9, which a micro-op passes after READ.

1. A micro-op goes on by a stage in each cycle; the back end never holds.
2. A chain of micro-ops that accumulate into one entry, each a cycle after the one before, writes
   once. The write before an accumulation is left out: that micro-op is marked ``skipped``. Where
   GEMM is alone, LOOK says so as it passes READ, else it is known when the next one passes.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Signal, Value
from amaranth.lib import data

from vdla.hw.compute.micro_op import WRITE, MicroOps
from vdla.hw.layout import valid_register


@dataclass(frozen=True)
class BackEndPorts:
    """Inputs of the back end."""

    read: data.View  # the micro-op in READ
    look: data.View  # the one behind it in LOOK, where there is that stage
    hold: Value  # READ holds


class BackEnd:
    """``stages[n]`` is the micro-op in stage n, ``stages[0]`` the one in READ as it passes."""

    def __init__(self, m: Module, micro_ops: MicroOps, ports: BackEndPorts) -> None:
        self.m, self.micro_ops, self.ports = m, micro_ops, ports
        shape = micro_ops.passed()
        self.stages = [self._passing(shape)]
        for number in range(1, WRITE + 1):
            stage = valid_register(shape, 2, f"stage_{number}")
            m.d.sync += stage.eq(self.stages[-1])
            self.stages.append(stage)
        if not micro_ops.looks:
            self._skip()

    def _passing(self, shape: data.StructLayout) -> data.View:
        m, read, hold = self.m, self.ports.read, self.ports.hold
        passing = Signal(shape, name="passing")
        kept = ("last", "dst", "late", "first", "operation")
        m.d.comb += [
            *(passing[name].eq(read[name]) for name in kept),
            passing.valid.eq(read.valid & ~hold),
            passing.writes.eq(read.valid & ~hold & ~read.null),
            passing.late_at.eq(read.bias if self.micro_ops.gemm else read.dst),
        ]
        if self.micro_ops.looks:
            m.d.comb += [
                passing.skipped.eq(chains(self.ports.look)),
                passing.chained.eq(read.chained),
            ]
        return passing

    def _skip(self) -> None:
        """Marks the micro-op in stage 1 if the one in READ accumulates into the same entry."""
        read, hold = self.ports.read, self.ports.hold
        meets = read.dst_unwritten[0]  # it came a cycle after stage 1
        again = read.valid & ~hold & read.accumulates & meets
        self.m.d.sync += self.stages[2].skipped.eq(again)


def chains(look: data.View) -> Value:
    """Whether the micro-op in LOOK leaves the write of the one in READ out; one that goes beyond a
    buffer doesn't."""
    return look.valid & look.chained & ~look.beyond
