"""Arithmetic: GEMM and ALU with what their stages need, and the accumulator they meet.

1. The data of ACC's first port are an early x in stage 1, and the accumulator in stage 6.
2. The late accumulator is taken from stages 7 and 8 if these have just computed it; where the
   micro-op has none it is zero, or what the reciprocal units have computed. Which one is known, and
   kept, a cycle before.
3. In stage 6, combine, the accumulator meets GEMM's sums, or what the ALU computed. The result is
   chosen in the next, on the way to the scratchpad.
4. Without ALU there is one adder: it has the late accumulator's choice in front of its carry chain.
5. TABLE has its indices, y's low bits, at TAB in stage 4, and the results in stage 5.
6. GEMM's window keeps what comes in stage 1 if the next micro-op is one of the same instruction. An
   ALU may have any bit in the flag's place: nothing of it is kept beyond its last micro-op.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.lib import data, enum

from vdla.hw.alu import WEIGHED, Alu
from vdla.hw.compute.micro_op import COMBINE, TABLE_READ, WRITE, MicroOps
from vdla.hw.compute.operands import ReadPorts
from vdla.hw.gemm import Gemm
from vdla.hw.interfaces import Port
from vdla.hw.layout import add_selected, is_operation, is_other_operation
from vdla.hw.reciprocals import Reciprocals
from vdla.hw.requantize import choose, delayed
from vdla.isa.instructions import AluOp
from vdla.isa.options.window import window_taps


class Accumulator(enum.Enum, shape=2):
    """Source of the late x: what the last two cycles computed isn't in the scratchpad."""

    SCRATCHPAD = 0
    BEFORE = 1
    LATEST = 2
    NONE = 3  # zero, or a word of the reciprocal units


@dataclass(frozen=True)
class CombinePorts:
    """Ports that the arithmetic is connected to."""

    reads: ReadPorts
    stages: Sequence[data.View]  # of the back end
    units: Reciprocals | None  # if ALU has any


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
        none = Const(0, len(before)) if ports.units is None else ports.units.words.as_value()
        self.accumulators = [self.ports.acc_x.data, before, self.latest, none]
        self.source = source.as_value()
        if micro_ops.alu:
            self.late_x = choose(self.source, self.accumulators)
        self._feed()
        if micro_ops.alu:
            self._feed_late()
        else:
            self._accumulate()
        if self.ports.tab is not None:
            self._look_up(self.ports.tab)
        if ports.units is not None:
            self._invert(ports.units)
        if micro_ops.gemm and window_taps(self.config):
            self._use_window()

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
        if ports.inp_second is not None:
            m.d.comb += self.gemm.second.eq(ports.inp_second.data)
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

    def _look_up(self, tab: Port) -> None:
        """TABLE's read. LOAD's write waits for ``enable``, so that is a register."""
        m, before, now = self.m, self.stages[TABLE_READ - 1], self.stages[TABLE_READ]
        enable, looked_up = Signal(name="looks_up"), Signal(name="looked_up", reset_less=True)
        looks_up = is_operation(before.operation.op, AluOp.TABLE)
        is_table = self.micro_ops.is_alu(before.operation) & looks_up
        m.d.sync += enable.eq(before.writes & ~before.first & is_table)
        m.d.sync += looked_up.eq(enable)
        m.d.comb += [
            tab.enable.eq(enable),
            self.alu.results.eq(tab.data),
            self.alu.looked_up.eq(looked_up),
        ]
        for lane in range(self.config.block_out):
            m.d.comb += tab.index[lane].eq(Cat(self.alu.indices[lane], now.operation.imm))

    def _invert(self, units: Reciprocals) -> None:
        """The units' y, and the end of their words: they are in stage 6 for a cycle."""
        m, alu = self.m, self.alu
        used = delayed(m, units.passes, COMBINE, "units_passed", reset_less=False)
        m.d.comb += [
            units.y.eq(alu.kept_y),
            alu.keeps_y.eq(units.keeps_y),
            units.clear.eq(used),
        ]

    def _use_window(self) -> None:
        """Which vectors GEMM's window keeps: known, and kept, a cycle before their data come."""
        m, gemm, read = self.m, self.gemm, self.stages[0]
        used, goes_on = Signal(name="window"), Signal(name="window_goes_on")
        m.d.sync += [
            used.eq(read.operation.window),
            goes_on.eq(read.writes & read.operation.window & ~read.last),
        ]
        m.d.comb += [gemm.window.eq(used), gemm.window_goes_on.eq(goes_on)]

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
