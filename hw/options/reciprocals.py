"""Reciprocals: RECIPROCAL and RSQRT, which units compute while READ holds, and SCALE.

1. The units (``reciprocal_units.py``) begin in the first cycle in which y can be read, and READ
   holds until they are ready. It doesn't wait for y after that. They work for micro-ops that are
   ``serial``: not for one that starts a reduction.
2. Words that the units have computed are in the late x's place; of y their micro-ops have nothing
   else. The units see y in ALU's register of operands, where it stays while READ holds.
3. SCALE takes RQ's way as far as the shift, and combine's adder rounds it. A result beyond 32 bits
   is dropped for the greatest or the least number, which pass where RQ's limits do.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component

from vdla.hw.alu import Alu, AluHooks
from vdla.hw.compute.micro_op import COMBINE
from vdla.hw.compute.seams import MicroOpHooks, Reading
from vdla.hw.layout import is_operation
from vdla.hw.multipliers import LIMIT_BITS, Scaled
from vdla.hw.options.reciprocal_units import Reciprocals
from vdla.hw.requantize import delayed
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

    def decide(self, f2: data.View, first: Value) -> dict[str, Value]:
        """Marks micro-ops whose result the units compute."""
        is_alu = self.unit.micro_ops.is_alu(f2.operation)
        serial = is_operation(f2.operation.op, *SERIAL)
        return {"serial": ~f2.null & is_alu & ~first & serial}

    def read(self, m: Module, read: data.View, reading: Reading) -> None:
        """Has the units begin when y can be read, and READ hold until they are ready."""
        units, works = self.units, self.works
        begun, serial = Signal(name="units_begun"), read.valid & read.serial
        m.d.comb += [
            works.eq(serial & ~units.ready & ~reading.waits),
            units.begin.eq(works & ~begun),
            units.is_root.eq(is_operation(read.operation.op, RSQRT)),
            units.passes.eq(units.ready & ~reading.hold),
        ]
        with m.If(begun):
            m.d.comb += reading.begun.eq(1)
        with m.If(units.begin):
            m.d.sync += begun.eq(1)
        with m.Elif(units.passes):
            m.d.sync += begun.eq(0)

    def keeps(self, read: data.View) -> tuple[Value, ...]:
        """In READ until the units are ready."""
        return (read.serial & ~self.units.ready,)

    def in_place_of_x(self) -> tuple[Value, ...]:
        """The words, which are zero but in the cycle in which they are used."""
        return (self.units.words.as_value(),)

    def feed(self, m: Module, unit: Alu, stages: Sequence[data.View]) -> None:
        """The units' y, and the end of their words: they are in stage 8 for a cycle."""
        units = self.units
        used = delayed(m, units.passes, COMBINE, "units_passed", reset_less=False)
        m.d.comb += [units.y.eq(unit.y), units.clear.eq(used)]


class ReciprocalAlu(AluHooks):
    """SCALE's way."""

    option = OPTION
    unlimited = (SCALE,)

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

    def carries(self, alu: Alu, scaled: Scaled) -> tuple[Value, ...]:
        """Rounds SCALE's result."""
        return (self.scales_now & scaled.up,)

    def limit(
        self, alu: Alu, scaled: Scaled, total: Value, drops: Value, limited: Value
    ) -> tuple[Value, Value]:
        """Drops SCALE's result beyond 32 bits for the number next to it, marked by a bit more."""
        high, low = self._beyond(scaled, total)
        bits = limited.as_unsigned()
        limited = Cat(bits | high.replicate(LIMIT_BITS), bits[-1] | low)
        return drops | (high | low), limited

    def widened(self, limited: Value) -> Value:
        """A number of 32 bits: those of ``limit``, and its sign where that isn't RQ's."""
        between = limited[LIMIT_BITS - 1].replicate(31 - LIMIT_BITS)
        return Cat(limited[:LIMIT_BITS], between, limited[LIMIT_BITS]).as_signed()

    def _beyond(self, scaled: Scaled, total: Value) -> tuple[Value, Value]:
        """Whether SCALE's result is greater than 32 bits hold, and whether it is less.

        Rounding leads beyond the greatest number, too, and to no number below the least.
        """
        rounds_beyond = ~scaled.too_low & total[31] & ~total[32]
        scales = self.scales_now
        return scales & (scaled.too_high | rounds_beyond), scales & scaled.too_low
