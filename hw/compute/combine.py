"""Arithmetic: GEMM and ALU with what their stages need, and the accumulator they meet.

1. The data of ACC's first port are an early x in stage 1, and the accumulator in stage 6.
2. The late accumulator is taken from stages 7 and 8 if these have just computed it; where the
   micro-op has none it is zero, or the result of an option's unit. Which one is known, and kept, a
   cycle before.
3. In stage 6, combine, the accumulator meets GEMM's sums, or what the ALU computed. The result is
   chosen in the next, on the way to the scratchpad.
4. Without ALU there is one adder: it has the late accumulator's choice in front of its carry chain.
5. Options connect their units with GEMM and ALU (``feed``), when all others are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from amaranth import Const, Module, Signal, Value
from amaranth.lib import data, enum

from vdla.hw.alu import WEIGHED, Alu
from vdla.hw.compute.micro_op import COMBINE, WRITE, MicroOps
from vdla.hw.compute.operands import ReadPorts
from vdla.hw.gemm import Gemm
from vdla.hw.layout import add_selected, is_other_operation
from vdla.hw.requantize import choose
from vdla.isa import instructions as isa
from vdla.isa.instructions import AluOp


class Accumulator(enum.Enum, shape=2):
    """Source of the late x: what the last two cycles computed isn't in the scratchpad."""

    SCRATCHPAD = 0
    BEFORE = 1
    LATEST = 2
    NONE = 3  # zero, or the result of an option's unit


@dataclass(frozen=True)
class CombinePorts:
    """Ports that the arithmetic is connected to."""

    reads: ReadPorts
    stages: Sequence[data.View]  # of the back end


class Combine:
    """``latest`` is the result of the micro-op in stage 7."""

    def __init__(self, m: Module, micro_ops: MicroOps, ports: CombinePorts) -> None:
        self.m, self.config, self.micro_ops = m, micro_ops.config, micro_ops
        self.ports, self.stages = ports.reads, ports.stages
        if micro_ops.gemm:
            m.submodules.gemm = self.gemm = Gemm(self.config)
        if micro_ops.alu:
            m.submodules.alu = self.alu = Alu(self.config, gemm=micro_ops.gemm)
            self.latest: Value = self.alu.result.as_value()
        else:
            self.latest = Signal(8 * self.config.acc_entry, name="latest", reset_less=True)
        before = Signal(len(self.latest), name="before", reset_less=True)
        source = Signal(Accumulator, name="source", reset_less=True)
        m.d.sync += before.eq(self.latest)
        self._choose(source)
        self.accumulators = [self.ports.acc_x.data, before, self.latest, self._none()]
        self.source = source.as_value()
        if micro_ops.alu:
            self.late_x = choose(self.source, self.accumulators)
        self._feed()
        if micro_ops.alu:
            self._feed_late()
        else:
            self._accumulate()
        for hook in micro_ops.hooks:
            hook.feed(m, self.gemm if hook.instruction is isa.Gemm else self.alu, self.stages)

    def _none(self) -> Value:
        """Late accumulator of a micro-op that has none."""
        results = [each for hook in self.micro_ops.hooks for each in hook.in_place_of_x()]
        return reduce(or_, results) if results else Const(0, 8 * self.config.acc_entry)

    def _choose(self, source: Signal) -> None:
        """Which accumulator the micro-op takes that comes to stage 6."""
        m = self.m
        late, now, write = (self.stages[n] for n in (COMBINE - 1, COMBINE, WRITE))
        m.d.sync += source.eq(Accumulator.SCRATCHPAD)
        with m.If(~late.late):
            m.d.sync += source.eq(Accumulator.NONE)
        with m.Elif(now.writes & (now.dst == late.late_at)):
            m.d.sync += source.eq(Accumulator.LATEST)
        with m.Elif(write.writes & (write.dst == late.late_at)):
            m.d.sync += source.eq(Accumulator.BEFORE)

    def _feed(self) -> None:
        """Connects what comes with the scratchpads' data, and what clears GEMM's sums."""
        m, ports = self.m, self.ports
        early, late = self.stages[1].operation, self.stages[COMBINE - 1].operation
        if ports.inp is not None and ports.wgt is not None:
            m.d.comb += [
                self.gemm.inp.eq(ports.inp.data),
                self.gemm.wgt.eq(ports.wgt.data),
                self.gemm.clear.eq(self.micro_ops.is_alu(late)),
            ]
        for name, (_, port) in ports.places.items():
            m.d.comb += getattr(self.gemm, name).eq(port.data)
        if ports.acc_y is not None:
            m.d.comb += [
                self.alu.x.eq(ports.acc_x.data),
                self.alu.y.eq(ports.acc_y.data),
                *(getattr(self.alu, n).eq(early[n]) for n in ("op", "use_imm", "imm", "weight")),
            ]

    def _accumulate(self) -> None:
        """Without ALU: adds GEMM's sums and the late accumulator."""
        for lane in range(self.config.block_out):
            late = choose(self.source, [a.word_select(lane, 32) for a in self.accumulators])
            total = add_selected(self.gemm.sums[lane], late.as_signed(), self.gemm.carry[lane])
            self.m.d.sync += self.latest.word_select(lane, 32).eq(total)

    def _feed_late(self) -> None:
        """Connects the data of later stages: WADD's second product, and all that combine needs."""
        m, alu = self.m, self.alu
        weighed, late = self.stages[1 + WEIGHED], self.stages[COMBINE - 1]
        operation = late.operation
        m.d.comb += [
            *(getattr(alu, f"late_{n}").eq(operation[n]) for n in ("op", "use_imm", "imm")),
            alu.unweighed.eq(weighed.first | is_other_operation(weighed.operation.op, AluOp.WADD)),
            alu.y_weight.eq(weighed.operation.imm),
            alu.late_first.eq(late.first),
        ]
        if self.micro_ops.gemm:
            m.d.comb += alu.late_gemm.eq(~operation.is_alu)
        m.d.comb += [
            *(getattr(alu, n).eq(operation[n]) for n in ("zero", "low", "high")),
            alu.late_x.eq(self.late_x),
        ]
        if self.micro_ops.gemm:
            m.d.comb += [alu.sums.eq(self.gemm.sums), alu.carry.eq(self.gemm.carry)]
