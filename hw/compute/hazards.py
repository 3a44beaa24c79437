"""Hazards of ALU: when READ, and all before it, holds.

1. An early operand waits while it is the dst of a micro-op in stages 1 to 9.
2. An early x also waits while it would meet stage 6's late read at ACC's first port, a y while
   STORE takes the second port.
3. Which stages write the operands is worked out while a micro-op is in F2, and they are a stage
   earlier: ``src_unwritten`` and ``dst_unwritten`` of READ, which follow the stages while READ
   holds. Whether there are any is kept beside them (``src_waits``, ``dst_waits``).
4. An engine beside GEMM's leaves ACC's ports to GEMM: READ also holds an early x while GEMM reads
   late, a late one while GEMM's micro-op in READ will, and whatever writes while that one will
   write.
5. READ holds while an option ``keeps`` a micro-op there. One that has ``begun`` has read its
   operands, and waits for them no more. The option sees to it that this ends.
6. The back end, GEMM and the units go on, so a hold ends by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.compute.micro_op import LATE_READ, WRITE
from vdla.hw.compute.seams import MicroOpHooks, Reading
from vdla.hw.interfaces import Port


@dataclass(frozen=True)
class HazardPorts:
    """Inputs that decide on a hold. Hazards drive ``hold``, and the marks in ``read`` of rule 3."""

    hold: Signal
    read: data.View  # the micro-op in READ
    following: Mapping[str, Value]  # dst and src of the one in F2
    stages: Sequence[data.View]  # of the back end
    acc_y_taken: Value  # STORE takes ACC's second read port
    gemm: Port | None  # interfaces.claims: of the engine beside this one, if GEMM is there
    hooks: Sequence[MicroOpHooks]  # of options


class Hazards:
    """``meets_late``: stage 6 reads ACC in this cycle; ``begun``: the micro-op in READ has read its
    operands, and stays for what is computed of them; ``waits``: it holds for another reason."""

    def __init__(self, m: Module, ports: HazardPorts) -> None:
        self.m, self.ports = m, ports
        self.meets_late, self.begun = (Signal(name=n) for n in ("meets_late", "begun"))
        self.waits = Signal(name="read_waits")
        self._compare()
        self._hold()

    def _compare(self) -> None:
        """Compares the operands of F2 with the dst of all before it."""
        m, read, hold = self.m, self.ports.read, self.ports.hold
        in_stages = ((stage.writes, stage.dst) for stage in self.ports.stages[1:WRITE])
        ahead = [(read.valid & ~read.null, read.dst), *in_stages]
        for name, index in self.ports.following.items():
            now = read[f"{name}_unwritten"]
            meets, later = Cat(writes & (dst == index) for writes, dst in ahead), now[: WRITE - 1]
            m.d.sync += [
                now.eq(Mux(hold, Cat(0, later), meets)),
                read[f"{name}_waits"].eq(Mux(hold, later.any(), meets.any())),
            ]

    def _hold(self) -> None:
        m, read, before = self.m, self.ports.read, self.ports.stages[LATE_READ - 1]
        m.d.sync += self.meets_late.eq(before.writes & before.late)
        y_waits = read.src_waits | self.ports.acc_y_taken
        x_waits = read.dst_waits | self.meets_late
        gemm = self.ports.gemm
        if gemm is not None:
            x_waits |= gemm.reads
        operands = ((read.reads_y & y_waits) | (read.early & x_waits)) & ~self.begun
        ports: Value = Const(0)
        if gemm is not None:
            ports = (read.late & gemm.will_read) | (~read.null & gemm.will_write)
        keeps: Value = Const(0)
        for hook in self.ports.hooks:
            hook.read(m, read, Reading(operands, self.begun, self.ports.hold))
            for each in hook.keeps(read):
                keeps |= each
        m.d.comb += [
            self.ports.hold.eq(read.valid & (operands | ports | keeps)),
            self.waits.eq(read.valid & (operands | (ports & ~keeps))),
        ]
