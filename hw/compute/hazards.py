"""Hazards of ALU: when READ, and all before it, holds.

1. An early operand waits while it is the dst of a micro-op in stages 1 to 7.
2. An early x also waits while it would meet stage 5's late read at ACC's first port, a y while
   STORE takes the second port.
3. Which stages write the operands is worked out while a micro-op is in F1, and they are a stage
   earlier: ``src_unwritten`` and ``dst_unwritten`` of READ. While READ holds, those stages leave
   the pipeline one by one, and ``unwritten`` says which are left.
4. An engine beside GEMM's leaves ACC's ports to GEMM: READ also holds an early x while GEMM reads
   late, a late one while GEMM's micro-op in READ will, and whatever writes while that one will
   write.
5. READ holds while units of an option are ``working``, and an option may keep a y waiting, or know
   better. It sees to it that this ends.
6. The back end, GEMM and the units go on, so a hold ends by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.compute.micro_op import LATE_READ, WRITE
from vdla.hw.compute.seams import MicroOpHooks
from vdla.hw.interfaces import Port


@dataclass(frozen=True)
class HazardPorts:
    """Inputs that decide on a hold. Hazards drive ``hold``, and the marks in ``read`` of rule 3."""

    hold: Signal
    read: data.View  # the micro-op in READ
    following: Mapping[str, Value]  # dst and src of the one in F1
    stages: Sequence[data.View]  # of the back end
    acc_y_taken: Value  # STORE takes ACC's second read port
    gemm: Port | None  # interfaces.claims: of the engine beside this one, if GEMM is there
    hooks: Sequence[MicroOpHooks]  # of options


class Hazards:
    """``meets_late``: stage 5 reads ACC in this cycle."""

    def __init__(self, m: Module, ports: HazardPorts) -> None:
        self.m, self.ports = m, ports
        self.meets_late = Signal()
        self._compare()
        self._hold()

    def _compare(self) -> None:
        """Compares the operands of F1 with the dst of all before it."""
        m, read, hold = self.m, self.ports.read, self.ports.hold
        in_stages = ((stage.writes, stage.dst) for stage in self.ports.stages[1:WRITE])
        ahead = [(read.valid & ~read.null, read.dst), *in_stages]
        m.d.sync += read.unwritten.eq(Mux(hold, read.unwritten >> 1, (1 << WRITE) - 1))
        with m.If(~hold):
            for name, index in self.ports.following.items():
                meets = Cat(writes & (dst == index) for writes, dst in ahead)
                m.d.sync += read[f"{name}_unwritten"].eq(meets)

    def _hold(self) -> None:
        m, read, before = self.m, self.ports.read, self.ports.stages[LATE_READ - 1]
        m.d.sync += self.meets_late.eq(before.writes & before.late)
        y_waits = (read.src_unwritten & read.unwritten).any() | self.ports.acc_y_taken
        x_waits = (read.dst_unwritten & read.unwritten).any() | self.meets_late
        gemm = self.ports.gemm
        if gemm is not None:
            x_waits |= gemm.reads
        for hook in self.ports.hooks:
            y_waits = hook.y_waits(m, read, self.ports.hold, y_waits)
        waits = (read.reads_y & y_waits) | (read.early & x_waits)
        if gemm is not None:
            waits |= (read.late & gemm.will_read) | (~read.null & gemm.will_write)
        for hook in self.ports.hooks:
            for working in hook.working():
                waits |= working
        m.d.comb += self.ports.hold.eq(read.valid & waits)
