"""Reciprocals: RECIPROCAL and RSQRT, which units compute while READ holds, and SCALE.

1. The units (``reciprocal_units.py``) begin in the first cycle in which y can be read, and READ
   holds until they are ready. It doesn't wait for y after that. They work for micro-ops that are
   ``serial``: not for one that starts a reduction.
2. Words that the units have computed are in the late x's place; of y their micro-ops have nothing
   else. The units see y a cycle after it came, and ALU keeps it there.
3. SCALE takes RQ's way as far as the shift, and combine's adder rounds it. A result beyond 32 bits
   is dropped for the greatest or the least number, which pass where RQ's limits do.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Member, Out

from vdla.hw.alu import LIMIT_BITS, WEIGHED, Alu, AluHooks
from vdla.hw.compute.micro_op import COMBINE
from vdla.hw.compute.seams import MicroOpHooks
from vdla.hw.layout import is_operation, lanes
from vdla.hw.options.reciprocal_units import Reciprocals
from vdla.hw.requantize import Requantize, delayed
from vdla.isa import instructions as isa
from vdla.isa.options.reciprocals import OPTIONS, RECIPROCAL, RSQRT, SCALE

OPTION = OPTIONS[0]
SERIAL = (RECIPROCAL, RSQRT)


class ReciprocalMicroOps(MicroOpHooks):
    """The units, in the stages of ALU's engine."""

    option, instruction = OPTION, isa.Alu
    marks = ("serial",)

    def begin(self, m: Module, unit: Component) -> None:
        """Makes the units; ``works`` is high while READ holds for them."""
        super().begin(m, unit)
        m.submodules.reciprocals = self.units = Reciprocals(self.config)
        self.works = Signal(name="units_work")

    def decide(self, f1: data.View, first: Value) -> dict[str, Value]:
        """Marks micro-ops whose result the units compute."""
        is_alu = self.unit.micro_ops.is_alu(f1.operation)
        serial = is_operation(f1.operation.op, *SERIAL)
        return {"serial": ~f1.null & is_alu & ~first & serial}

    def y_waits(self, m: Module, read: data.View, hold: Signal, waits: Value) -> Value:
        """Has the units begin; returns whether y is still to be read, and ``waits``."""
        units, works = self.units, self.works
        begun, serial = Signal(name="units_begun"), read.valid & read.serial
        waits &= ~begun
        m.d.comb += [
            works.eq(serial & ~units.ready & ~waits),
            units.begin.eq(works & ~begun),
            units.is_root.eq(is_operation(read.operation.op, RSQRT)),
            units.passes.eq(units.ready & ~hold),
        ]
        with m.If(units.begin):
            m.d.sync += begun.eq(1)
        with m.Elif(units.passes):
            m.d.sync += begun.eq(0)
        return waits

    def working(self) -> tuple[Value, ...]:
        """READ holds for what the units compute, and for nothing else."""
        return (self.works,)

    def in_place_of_x(self) -> tuple[Value, ...]:
        """The words, which are zero but in the cycle in which they are used."""
        return (self.units.words.as_value(),)

    def feed(self, m: Module, unit: Alu, stages: Sequence[data.View]) -> None:
        """The units' y, and the end of their words: they are in stage 6 for a cycle."""
        units = self.units
        used = delayed(m, units.passes, COMBINE, "units_passed", reset_less=False)
        m.d.comb += [
            units.y.eq(unit.kept_y),
            unit.keeps_y.eq(units.keeps_y),
            units.clear.eq(used),
        ]


class ReciprocalAlu(AluHooks):
    """``kept_y`` is y a cycle later, and stays while ``keeps_y`` is high. SCALE's way."""

    option = OPTION
    unlimited = (SCALE,)

    def ports(self) -> dict[str, Member]:
        """The y that the units have, and whether they need it longer."""
        return {"kept_y": Out(lanes(32, self.config.block_out)), "keeps_y": In(1)}

    def waiting(self, m: Module, alu: Alu) -> Value:
        """Keeps y for the units, and passes it on."""
        kept = alu.kept_y.as_value()
        with m.If(~alu.keeps_y):
            m.d.sync += kept.eq(alu.y.as_value())
        return delayed(m, kept, WEIGHED - 1, "kept_y")

    def control(self, m: Module, alu: Alu) -> None:
        """SCALE has no limits of its own: what passes in their place is beyond 32 bits."""
        scales = ~alu.idle & is_operation(alu.late_op, SCALE)
        self.scales_now = Signal(name="scales", reset_less=True)
        m.d.sync += [self.scales_now.eq(scales), alu.drops_limited.eq(~alu.limits & ~scales)]
        with m.If(scales):  # between them is nothing but zero
            m.d.sync += [alu.low_now.eq(0), alu.high_now.eq(0)]

    def drops_y(self, alu: Alu) -> tuple[Value, ...]:
        """Whether the units have computed the late operation's result."""
        return (is_operation(alu.late_op, *SERIAL) & ~alu.late_first,)

    def carries(self, alu: Alu, requantize: Requantize) -> tuple[Value, ...]:
        """Rounds SCALE's result."""
        return (self.scales_now & requantize.up,)

    def limit(
        self, alu: Alu, requantize: Requantize, total: Value, drops: Value, limited: Value
    ) -> tuple[Value, Value]:
        """Drops SCALE's result beyond 32 bits for the number next to it, marked by a bit more."""
        high, low = self._beyond(requantize, total)
        bits = limited.as_unsigned()
        limited = Cat(bits | high.replicate(LIMIT_BITS), bits[-1] | low)
        return drops | (high | low), limited

    def widened(self, limited: Value) -> Value:
        """A number of 32 bits: those of ``limit``, and its sign where that isn't RQ's."""
        between = limited[LIMIT_BITS - 1].replicate(31 - LIMIT_BITS)
        return Cat(limited[:LIMIT_BITS], between, limited[LIMIT_BITS]).as_signed()

    def _beyond(self, requantize: Requantize, total: Value) -> tuple[Value, Value]:
        """Whether SCALE's result is greater than 32 bits hold, and whether it is less.

        Rounding leads beyond the greatest number, too, and to no number below the least.
        """
        rounds_beyond = ~requantize.too_low & total[31] & ~total[32]
        scales = self.scales_now
        return scales & (requantize.too_high | rounds_beyond), scales & requantize.too_low
