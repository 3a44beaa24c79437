"""Lanes: a config with fewer multipliers than lanes, which take a vector's groups in turn.

1. A micro-op whose x is multiplied or shifted stays in READ for a cycle per group, from that on in
   which its operands are read. In the last of them it may pass.
2. ALU's register of operands keeps the vector meanwhile, and ``group`` says which part is next.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Module, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component

from vdla.hw.alu import Alu
from vdla.hw.compute.micro_op import EARLY
from vdla.hw.compute.seams import MicroOpHooks, Reading
from vdla.hw.layout import is_operation
from vdla.hw.requantize import delayed
from vdla.isa import instructions as isa
from vdla.isa.operations import X
from vdla.isa.options.lanes import OPTIONS, alu_groups

ALU, STORE = OPTIONS


class LanesMicroOps(MicroOpHooks):
    """Group of lanes of the micro-op in READ."""

    option, instruction = ALU, isa.Alu
    marks = ("in_groups",)

    def begin(self, m: Module, unit: Component) -> None:
        """Makes the count of groups."""
        super().begin(m, unit)
        self.groups = alu_groups(self.config)
        self.group = Signal(range(max(self.groups, 2)), name="group")
        self.more = Signal(name="more_groups")  # a micro-op in READ has another group to come

    def decide(self, f2: data.View, first: Value) -> dict[str, Value]:
        """Marks micro-ops that the multipliers take."""
        multiplies = [op for op in isa.operations(self.config) if op.x is X.EARLY]
        is_alu = self.unit.micro_ops.is_alu(f2.operation)
        taken = is_operation(f2.operation.op, *multiplies)
        return {"in_groups": ~f2.null & is_alu & ~first & taken}

    def read(self, m: Module, read: data.View, reading: Reading) -> None:
        """Goes from group to group, the first one in the cycle in which operands are read."""
        group = self.group
        m.d.comb += self.more.eq(read.in_groups & (group != self.groups - 1))
        with m.If(group != 0):
            m.d.comb += reading.begun.eq(1)
        with m.If(read.valid & self.more & ~reading.waits):
            m.d.sync += group.eq(group + 1)
        with m.Elif(~reading.hold):
            m.d.sync += group.eq(0)

    def keeps(self, read: data.View) -> tuple[Value, ...]:
        """In READ until the last group."""
        return (self.more,)

    def feed(self, m: Module, unit: Alu, stages: Sequence[data.View]) -> None:
        """The group that goes with the operands in ALU's registers."""
        m.d.comb += unit.group.eq(delayed(m, self.group, EARLY, "group"))
