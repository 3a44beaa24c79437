"""Reciprocals and roots, bit by bit: units that take the lanes of a vector group by group.

    step          0      1 to 3   4 to 6   7        8 to 31               32 to 55
    RECIPROCAL    load   by 8s    by 2s    by 1     digits of 1 / D
    RSQRT         load   by 8s    by 2s             digits of the root    digits of 1 / D

1. ``Unit`` computes one lane's word, ``Reciprocals`` has the units, which do the same step in each
   cycle, and the registers that keep the words of all lanes.
2. The number y is shifted left until its first one stands in the highest bit, or for a root in one
   of the two highest: by 8s, by 2s, by 1, each only where nothing is lost. What is left of 31 then
   is y's logarithm, of which the word's shift is made.
3. Numbers are fixed-point: the highest bit of ``number`` and ``root`` is 1, and the second of
   ``rest``. So y is D in [1, 2), or for a root g / 2 in [½, 2), g being y by a power of four.
4. Digits are found without restoring: the next rest is twice the last one less B, or plus B where
   that one is negative; a digit is 1 where the next rest is not negative. The weights of a number's
   digits are 1 to 2**-23.
5. For 1 / D, B is D, and the first rest is 1 - D: so ``rest`` begins as ½.
6. For √g with the digits S so far, the rest behind digit n is 2**n · (g - S²) / 2. Thus B for it is
   S + 2**-(n + 1), and 2**-n more where the last rest is negative. The first rest is g / 2 - ½:
   ``rest`` begins as -¼, and B is g / 2.
7. The root is in [1, 2), as D is: it is D for the steps that follow. ``number`` is 0 by then, as
   ``root`` is for RECIPROCAL.
8. Of y ≤ 0 no digit and no shift is kept, so the word is 0.
9. ``y`` is there from two cycles after ``begin`` on, which is step 0 of the first group, and stays
   until ``passes``. ``ready`` is high as many cycles after ``begin`` as the steps of all
   groups take, and stays until ``passes``. Two cycles after it the words are complete. They are 0
   from ``clear`` until step 8.
"""

from __future__ import annotations

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.layout import add_selected, lanes
from vdla.hw.requantize import choose
from vdla.isa.config import Config
from vdla.isa.numbers import MANTISSA_BITS, RECIPROCAL_BITS, SHIFT_BITS
from vdla.isa.options.reciprocals import reciprocal_groups, reciprocal_units

NUMBER_BITS = 32
FIRST = 8  # the step of the first digit
SECOND = FIRST + MANTISSA_BITS  # the step of the first digit of a root's reciprocal
RECIPROCAL_STEPS = FIRST + MANTISSA_BITS
RSQRT_STEPS = SECOND + MANTISSA_BITS
STEP_BITS = 6
AHEAD = 2  # cycles from ``ready`` to the end of the last step
LOAD, BY_8, BY_2, BY_1 = range(4)  # what a step before FIRST does to the number
HALF = 1 << (NUMBER_BITS - 2)  # as ``rest`` holds it
MINUS_QUARTER = 0b1111 << (NUMBER_BITS - 3)


class Unit(Component):
    """One lane's word: from step FIRST on a digit of it in each step, and its shift.

    ``shifts`` is high in the steps before, and ``by`` says what they do. ``is_loaded`` is high in
    the step after the load, ``turns_over`` in the last one of a root. ``turn`` has a bit for each
    digit of a root, high in its step.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "y": In(NUMBER_BITS),
                "is_root": In(1),
                "shifts": In(1),
                "by": In(2),
                "is_loaded": In(1),
                "turns_over": In(1),
                "turn": In(MANTISSA_BITS),
                "digit": Out(1),
                "shift": Out(SHIFT_BITS),
                "is_positive": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The number as it is shifted, then digit after digit."""
        m = Module()
        self.number = Signal(NUMBER_BITS, reset_less=True)
        self.root = Signal(NUMBER_BITS, reset_less=True)
        self._shift(m)
        self._divide(m)
        return m

    def _shift(self, m: Module) -> None:
        """Shifts the number where that loses nothing, and counts its logarithm down."""
        number = self.number
        eights, twos, one = (
            Signal(bits, name=name, init=-1, reset_less=True)
            for name, bits in (("eights", 2), ("twos", 2), ("one", 1))
        )
        negative = Signal(reset_less=True)
        shifted = [Cat(Const(0, n), number[:-n]) for n in (8, 2, 1)]
        zeros = Const(1), ~number[-8:].any(), ~number[-2:].any(), ~number[-1] & ~self.is_root
        m.d.comb += [
            self.shift.eq(
                RECIPROCAL_BITS + Mux(self.is_root, Cat(twos, eights), Cat(one, twos, eights))
            ),
        ]
        with m.If(self.shifts & choose(self.by, zeros)):
            m.d.sync += number.eq(choose(self.by, [self.y, *shifted]))
            with m.Switch(self.by):
                with m.Case(LOAD):
                    m.d.sync += [eights.eq(-1), twos.eq(-1), one.eq(-1)]
                with m.Case(BY_8):
                    m.d.sync += eights.eq(eights - 1)
                with m.Case(BY_2):
                    m.d.sync += twos.eq(twos - 1)
                with m.Case(BY_1):
                    m.d.sync += one.eq(0)
        with m.If(self.is_loaded):
            m.d.sync += negative.eq(number[-1])
        with m.If(self.shifts & (self.by == BY_1)):
            m.d.sync += self.is_positive.eq(~negative & number[-2:].any())
        with m.If(self.turn[0]):
            m.d.sync += number.eq(0)

    def _divide(self, m: Module) -> None:
        """The next rest, whose sign is a digit; what a root has found is kept in its place."""
        number, root = self.number, self.root
        rest = Signal(NUMBER_BITS + 1, reset_less=True)
        negative = rest[-1]
        beside: list[Value] = [Const(0)] * NUMBER_BITS
        for n in range(1, MANTISSA_BITS):
            bit = NUMBER_BITS - 1 - n
            beside[bit] = beside[bit] | (self.turn[n] & negative)
            beside[bit - 1] = beside[bit - 1] | self.turn[n]
        by = Cat(number | root | Cat(beside), 0)
        twice = Cat(Const(0, 1), rest[:-1]).as_signed()
        subtracted = (by ^ ~negative.replicate(len(by))).as_signed()
        total = add_selected(twice, subtracted, ~negative)[: len(rest)]
        found = Signal()
        begins = self.shifts | self.turns_over
        m.d.sync += rest.eq(total)
        with m.If(begins):
            m.d.sync += rest.eq(Mux(self.shifts & self.is_root, MINUS_QUARTER, HALF))
        for n in range(MANTISSA_BITS):
            with m.If(self.turn[n]):
                m.d.sync += root[NUMBER_BITS - 1 - n].eq(found)
        with m.If(self.shifts):
            m.d.sync += root.eq(0)
        m.d.comb += [found.eq(~total[-1]), self.digit.eq(found & self.is_positive)]


class Reciprocals(Component):
    """The units, and the words of a vector's lanes; rule 9 says when."""

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "begin": In(1),
                "is_root": In(1),
                "y": In(lanes(NUMBER_BITS, config.block_out)),
                "ready": Out(1),
                "passes": In(1),
                "clear": In(1),
                "words": Out(lanes(NUMBER_BITS, config.block_out)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The steps, which all units take together, and where their digits go."""
        m = Module()
        self.step, self.works = Signal(STEP_BITS), Signal()
        self.group = Signal(range(max(reciprocal_groups(self.config), 2)))
        self.root = Signal(reset_less=True)  # what all groups are computed of
        self._go_on(m)
        shifts = Signal()
        m.d.comb += shifts.eq(self.step < FIRST)
        turn = Signal(MANTISSA_BITS)
        m.d.sync += turn.eq(Cat(self.works & self.root & (self.step == FIRST - 1), turn))
        low = self.step[:3]
        by = Signal(2)
        m.d.comb += by.eq(Cat(Mux(low[2], low[:2].all(), low[:2].any()), low[2]))
        for number in range(reciprocal_units(self.config)):
            m.submodules[f"unit_{number}"] = unit = Unit()
            m.d.comb += [
                unit.is_root.eq(self.root),
                unit.shifts.eq(shifts),
                unit.by.eq(by),
                unit.is_loaded.eq(self.step == 1),
                unit.turns_over.eq(turn[-1]),
                unit.turn.eq(turn),
            ]
            self._connect(m, unit, number)
        return m

    def _go_on(self, m: Module) -> None:
        """Counts the steps of a group, and the groups."""
        last, last_group = Signal(), Signal()
        begun = Signal()
        final = Mux(self.root, RSQRT_STEPS, RECIPROCAL_STEPS)
        groups = reciprocal_groups(self.config)
        m.d.comb += [
            last.eq(self.step == final - 1),
            last_group.eq(self.group == groups - 1),
        ]
        m.d.sync += begun.eq(self.begin)
        with m.If(self.begin):
            m.d.sync += self.root.eq(self.is_root)
        with m.If(begun):
            m.d.sync += self.works.eq(1)
        with m.If(self.works):
            m.d.sync += self.step.eq(Mux(last, 0, self.step + 1))
            with m.If(last):
                m.d.sync += [
                    self.group.eq(Mux(last_group, 0, self.group + 1)),
                    self.works.eq(~last_group),
                ]
        with m.If(self.passes):
            m.d.sync += self.ready.eq(0)
        with m.If(last_group & (self.step == final - 1 - AHEAD)):
            m.d.sync += self.ready.eq(1)

    def _connect(self, m: Module, unit: Unit, number: int) -> None:
        """A unit's lanes: which of them it loads, and what it has of each."""
        units, groups = reciprocal_units(self.config), reciprocal_groups(self.config)
        ys = Array(self.y[group * units + number] for group in range(groups))
        m.d.comb += unit.y.eq(ys[self.group])
        divides = Mux(self.root, self.step >= SECOND, self.step >= FIRST)
        for group in range(groups):
            lane = group * units + number
            mantissa = Signal(MANTISSA_BITS, name=f"mantissa_{lane}")
            shift = Signal(SHIFT_BITS, name=f"shift_{lane}")
            here = self.group == group
            with m.If(here & divides):
                m.d.sync += mantissa.eq(Cat(unit.digit, mantissa))
            with m.If(here & (self.step == FIRST) & unit.is_positive):
                m.d.sync += shift.eq(unit.shift)
            with m.If(self.clear):
                m.d.sync += [mantissa.eq(0), shift.eq(0)]
            m.d.comb += self.words[lane].eq(Cat(mantissa, shift, Const(0, 2)))
