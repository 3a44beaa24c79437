"""Arithmetic: GEMM and ALU with what their stages need, and the accumulator they meet.

1. The data of ACC's ports go into registers first: an early x and y are there in stage 2, the
   accumulator in stage 8. The early ones stay until others are read.
2. The late accumulator is taken from the three results before it if one of these is it. Where the
   micro-op has none it is zero, or the result of an option's unit. Which one is known, and kept, a
   cycle before.
3. In stage 8, combine, the accumulator meets GEMM's sums, or what the ALU computed. The result is
   chosen in the next, on the way to the scratchpad.
4. Without ALU there is one adder: it has the late accumulator's choice in front of its carry chain.
5. Options connect their units with GEMM and ALU (``feed``), when all others are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, enum

from vdla.hw.alu import Alu
from vdla.hw.compute.micro_op import COMBINE, EARLY, WRITE, MicroOps
from vdla.hw.compute.operands import ReadPorts
from vdla.hw.gemm import Gemm
from vdla.hw.layout import add_selected
from vdla.hw.requantize import choose, delayed
from vdla.isa import instructions as isa


class Accumulator(enum.Enum, shape=2):
    """Source of the late x: what the last three cycles computed wasn't in the scratchpad."""

    SCRATCHPAD = 0  # or, for a micro-op without one, zero or the result of an option's unit
    EARLIER = 1
    BEFORE = 2
    LATEST = 3


@dataclass(frozen=True)
class CombinePorts:
    """Ports that the arithmetic is connected to."""

    reads: ReadPorts
    stages: Sequence[data.View]  # of the back end
    takes: Value  # READ reads operands in this cycle


class Combine:
    """``latest`` is the result of the micro-op in stage 9."""

    def __init__(self, m: Module, micro_ops: MicroOps, ports: CombinePorts) -> None:
        self.m, self.config, self.micro_ops = m, micro_ops.config, micro_ops
        self.ports, self.stages, self.early = ports.reads, ports.stages, ports
        if micro_ops.gemm:
            m.submodules.gemm = self.gemm = Gemm(self.config)
        if micro_ops.alu:
            m.submodules.alu = self.alu = Alu(self.config, gemm=micro_ops.gemm)
            self.latest: Value = self.alu.result.as_value()
        else:
            self.latest = Signal(8 * self.config.acc_entry, name="latest", reset_less=True)
        before, earlier, read = (
            Signal(len(self.latest), name=n, reset_less=True) for n in ("before", "earlier", "read")
        )
        source = Signal(Accumulator, name="source", reset_less=True)
        late = self.stages[COMBINE - 1].late
        m.d.sync += [
            before.eq(self.latest),
            earlier.eq(before),
            read.eq(Mux(late, self.ports.acc_x.data, 0)),
        ]
        self._choose(source)
        self.accumulators = [self._with_results(read), earlier, before, self.latest]
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

    def _with_results(self, read: Value) -> Value:
        """The accumulator that was read, or what options have in its place; one of them is zero."""
        results = [each for hook in self.micro_ops.hooks for each in hook.in_place_of_x()]
        return reduce(or_, results, read)

    def _choose(self, source: Signal) -> None:
        """Which accumulator the micro-op takes that comes to combine."""
        m = self.m
        late, now, write = (self.stages[n] for n in (COMBINE - 1, COMBINE, WRITE))
        wrote, at = Signal(name="wrote"), Signal.like(write.dst, name="wrote_at", reset_less=True)
        m.d.sync += [wrote.eq(write.writes), at.eq(write.dst)]
        # Whether the stages write what this one will take, found a stage earlier.
        m.d.sync += source.eq(Accumulator.SCRATCHPAD)
        with m.If(late.late):
            with m.If(now.writes & (now.dst == late.late_at)):
                m.d.sync += source.eq(Accumulator.LATEST)
            with m.Elif(write.writes & (write.dst == late.late_at)):
                m.d.sync += source.eq(Accumulator.BEFORE)
            with m.Elif(wrote & (at == late.late_at)):
                m.d.sync += source.eq(Accumulator.EARLIER)

    def _feed(self) -> None:
        """Connects what comes with the scratchpads' data, and what clears GEMM's sums."""
        m, ports = self.m, self.ports
        late = self.stages[COMBINE - 1].operation
        if ports.inp is not None and ports.wgt is not None:
            m.d.comb += self.gemm.clear.eq(self.micro_ops.is_alu(late))
            operands = {"inp": ports.inp, "wgt": ports.wgt}
            operands |= {name: port for name, (_, port) in ports.places.items()}
            for name, port in operands.items():
                read = delayed(m, port.data, EARLY - 1, f"{name}_read")
                m.d.comb += getattr(self.gemm, name).eq(read)
        if ports.acc_y is not None:
            self._feed_early(ports.acc_x.data, ports.acc_y.data)

    def _feed_early(self, x: Value, y: Value) -> None:
        """Keeps the operands that READ has read, and connects what comes with them."""
        m, alu, read = self.m, self.alu, self.stages[0].operation
        takes = delayed(m, self.early.takes, EARLY - 1, "takes", reset_less=False)
        kept = [Signal(len(x), name=f"{name}_kept", reset_less=True) for name in "xy"]
        with m.If(takes):
            m.d.sync += [kept[0].eq(x), kept[1].eq(y)]
        m.d.comb += [alu.x.eq(kept[0]), alu.y.eq(kept[1])]
        # They are still in READ's register while the micro-op stays there.
        for name in ("op", "use_imm", "imm", "weight"):
            value = delayed(m, Value.cast(read[name]), EARLY, f"early_{name}")
            m.d.comb += getattr(alu, name).eq(value)

    def _accumulate(self) -> None:
        """Without ALU: adds GEMM's sums and the late accumulator."""
        for lane in range(self.config.block_out):
            late = choose(self.source, [a.word_select(lane, 32) for a in self.accumulators])
            total = add_selected(self.gemm.sums[lane], late.as_signed(), self.gemm.carry[lane])
            self.m.d.sync += self.latest.word_select(lane, 32).eq(total)

    def _feed_late(self) -> None:
        """Connects the data of later stages: all that combine needs."""
        m, alu = self.m, self.alu
        late = self.stages[COMBINE - 1]
        operation = late.operation
        m.d.comb += [
            *(getattr(alu, f"late_{n}").eq(operation[n]) for n in ("op", "use_imm", "imm")),
            alu.late_first.eq(late.first),
            alu.late_valid.eq(late.valid),
        ]
        if self.micro_ops.gemm:
            m.d.comb += alu.late_gemm.eq(~operation.is_alu)
        m.d.comb += [
            *(getattr(alu, n).eq(operation[n]) for n in ("zero", "low", "high")),
            alu.late_x.eq(self.late_x),
        ]
        if self.micro_ops.gemm:
            m.d.comb += [alu.sums.eq(self.gemm.sums), alu.carry.eq(self.gemm.carry)]
