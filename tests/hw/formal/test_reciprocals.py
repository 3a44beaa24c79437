"""Reciprocal units: for every y the word of 1 / y or 1 / √y, at the cycle that READ counts on.

1. Shifting: y's first one stands in the highest bit, or for a root in one of the two highest, and
   nothing is lost: ``number`` = y · 2**z. The word's shift is 54 − z, for a root 38 − z / 2.
2. Behind each digit of a root its square is at most the number, and that of the next is greater:
   0 ≤ number − T² < 2T + 1, all by powers of two.
3. Behind each digit of 1 / D its product with D is at most 1, and that of the next is greater:
   0 ≤ 2**54 − q · D < D. So behind the last digit q is the quotient, rounded down.
4. A word is q and the shift, both 0 for y ≤ 0. It stays until it is cleared, and is 0 from then on.
5. ``ready`` is high so many cycles after ``begin`` as the groups take steps, until the micro-op
   passes. The units work from two cycles after ``begin`` on, as long.

Squares and products are ghosts that grow with each digit: (2T + d)² = 4T² + d · (4T + 1), and
(2q + d) · D = 2qD + d · D. So all is sums, for any y of 32 bits.

Assumed is what hw/compute promises, and what the second proof shows of it:

6. A micro-op passes when the units are ready, the next one begins after that, and words are cleared
   COMBINE cycles after a micro-op passes.
7. y is read from ACC in the cycle of ``begin``, is there two cycles later, and stays until two
   cycles after the micro-op has passed.
"""

from __future__ import annotations

import pytest
from amaranth import Cat, Const, Mux, Signal
from amaranth.lib import data
from planting import plant

from vdla.hw.compute import Compute
from vdla.hw.compute import compute as compute_module
from vdla.hw.compute.micro_op import COMBINE
from vdla.hw.options import reciprocal_units
from vdla.hw.options.reciprocal_units import (
    FIRST,
    HALF,
    MINUS_QUARTER,
    NUMBER_BITS,
    RECIPROCAL_STEPS,
    RSQRT_STEPS,
    SECOND,
    Reciprocals,
)
from vdla.isa.config import load_config
from vdla.isa.numbers import MANTISSA_BITS, RECIPROCAL_BITS, SHIFT_BITS

ONE = NUMBER_BITS - 1  # the bit of ``number`` and ``root`` that is 1
EXACT = 60  # bits of a ghost: none of its sums wraps
LANES = 4
SIZES = ["acc_bytes=64", "inp_bytes=8", "wgt_bytes=32", "uop_bytes=16"]
BEGINS = 2  # cycles from ``begin`` to the first step
SHIFT = RECIPROCAL_BITS + ONE  # of a number that isn't shifted
ROOT_SHIFT = RECIPROCAL_BITS + ONE // 2
AGES = 255  # cycles since ``begin`` that a ghost counts


class Handshake:
    """The cycles since ``begin``, and rules 6 and 7: ``promises`` of whoever has the units."""

    def __init__(self, proof, unit):
        self.age, self.open = Signal(range(AGES + 1), name="age"), Signal(name="is_open")
        with proof.m.If(unit.begin):
            proof.m.d.sync += [self.age.eq(1), self.open.eq(1)]
        with proof.m.Elif((self.age != 0) & (self.age != AGES)):
            proof.m.d.sync += self.age.eq(self.age + 1)
        with proof.m.If(unit.passes):
            proof.m.d.sync += self.open.eq(0)
        self.passed = [unit.passes]  # so many cycles ago
        for _ in range(COMBINE):
            self.passed.append(proof.past(self.passed[-1]))
        kept = proof.past((self.age >= BEGINS) & (self.open | self.passed[1]))
        self.promises = [
            ~unit.begin | ~self.open,
            ~unit.passes | unit.ready,
            unit.clear == self.passed[COMBINE],
            ~kept | (unit.y.as_value() == proof.past(unit.y)),
        ]


class Run:
    """The units with one lane of each group, and ghosts of the run that has begun last."""

    def __init__(self, proof, state, groups):
        self.proof, self.groups = proof, groups
        units = LANES // groups
        self.all = Reciprocals(load_config("tiny", [f"reciprocal_units={units}"]))
        inner = proof.add(self.all)
        parts = [getattr(inner.submodules, f"unit_{n}") for n in range(units)]
        self.unit, module = parts[0], proof.open(inner, "unit_0")
        for n, part in enumerate(parts[1:], 1):
            proof.cut(inner, f"unit_{n}", part.digit, part.shift, part.is_positive)
        self.rest, self.negative = (state(module, name) for name in ("rest", "negative"))
        one, twos, eights = (state(module, name) for name in ("one", "twos", "eights"))
        self.places = Signal(range(NUMBER_BITS))  # that the number has been shifted by
        proof.m.d.comb += self.places.eq(ONE - Cat(one, twos, eights))
        self.begun = state(inner, "begun")
        self._place()
        self.steps = Mux(self.is_root, RSQRT_STEPS, RECIPROCAL_STEPS)
        self.words, ys = ([port[n * units] for n in range(groups)]
                          for port in (self.all.words, self.all.y))  # fmt: skip
        self.y = Signal(NUMBER_BITS)
        proof.m.d.comb += self.y.eq(self._of_group(ys))
        self.positive = (self.y != 0) & ~self.y[-1]
        self._handshake()

    def _place(self):
        """Where the run is; in the cycle behind a group's last step it is still that group's."""
        past, step, works = self.proof.past, self.all.step, self.all.works
        steps = Mux(self.all.root, RSQRT_STEPS, RECIPROCAL_STEPS)
        self.ended = past(works & (step == steps - 1))
        self.is_root = Mux(self.ended, past(self.all.root), self.all.root)
        self.group = Mux(self.ended, past(self.all.group), self.all.group)
        self.step = Signal(range(RSQRT_STEPS + 1))
        there = Mux(self.is_root, RSQRT_STEPS, RECIPROCAL_STEPS)
        self.proof.m.d.comb += self.step.eq(Mux(self.ended, there, step))
        self.runs = self.ended | works
        self.divides_from = Mux(self.is_root, SECOND, FIRST)

    def _of_group(self, values):
        return values[0] if self.groups == 1 else Mux(self.group, values[1], values[0])

    def _handshake(self):
        """What the neighbours promise, and the cycles since the last run began."""
        handshake = Handshake(self.proof, self.all)
        self.age, self.open, self.passed = handshake.age, handshake.open, handshake.passed
        for promise in handshake.promises:
            self.proof.assume(promise)

    # What holds -----------------------------------------------------------------------------------

    def check_cycles(self):
        """Rule 5, and where the steps are."""
        check, unit, age, steps = self.proof.check, self.all, self.age, Signal(6)
        self.proof.m.d.comb += steps.eq(Mux(unit.root, RSQRT_STEPS, RECIPROCAL_STEPS))
        self.total_steps = steps
        total = steps * self.groups
        check(unit.ready == (self.open & (age >= total)))
        check(unit.works == ((age >= BEGINS) & (age < BEGINS + total)))
        check((age == BEGINS + unit.group * steps + unit.step) & (unit.step < steps), unit.works)
        check((unit.group == 0) & (unit.step == 0), ~unit.works)
        check(self.begun == (age == 1))
        goes_on = unit.works & (unit.step == 0) & (unit.group == self.group + 1)
        is_last = ~unit.works & (self.group == self.groups - 1)
        check((goes_on & (unit.root == self.is_root)) | is_last, self.ended)
        check(age == BEGINS + (self.group + 1) * self.steps, self.ended & (age != 1))
        check(self.passed[2] & self.open, self.ended & (age == 1))
        check(is_last, self.ended & (age == 1))
        check(self.open | self.passed[1] | self.passed[2], self.ended)
        check((age == 0) | (age > total), ~self.open)
        for cycles, passed in enumerate(self.passed[1:], 1):
            check(Mux(self.open, (age != 0) & (age < cycles), age > total), passed)
        finds = unit.works & unit.root & (unit.step >= FIRST) & (unit.step < SECOND)
        one = Mux(finds, 1 << (unit.step - FIRST)[:5], 0)
        check(self.unit.turn == one[:MANTISSA_BITS])

    def check_shifts(self):
        """Rule 1."""
        check, unit, step = self.proof.check, self.unit, self.step
        number, top = unit.number, self.y << self.places
        begun = self.runs & (step > 0)
        check(top == number, begun & ((step <= FIRST) | ~self.is_root))
        eights, below = self.places[3:], self.places[:3]
        for at in range(4):
            none = (below == 0) & (eights <= at) & (number[-8:].any() | (eights == at))
            check(none, begun & (step == 1 + at))
            highest = number[-(8 - 2 * at) :].any() | (self.y == 0)
            check(highest & ~below[0] & (below <= 2 * at), begun & (step == 4 + at))
        highest = number[-2:].any() & (self.is_root | number[-1])
        check(highest, begun & (step == FIRST) & (self.y != 0))
        check(self.negative == self.y[-1], begun & (step > 1))
        check(unit.is_positive == self.positive, begun & (step >= FIRST))
        check(~self.places[0], begun & self.is_root)
        first = Mux(self.is_root, MINUS_QUARTER, HALF)
        check((self.rest == first) & (unit.root == 0), begun & (step <= FIRST))
        check(unit.root == 0, begun & ~self.is_root)

    def check_root(self):
        """Rule 2: what is left of the number, by a power of two, and the square of the root."""
        m, check, unit, step = self.proof.m, self.proof.check, self.unit, self.step
        left, square = (Signal(EXACT, name=name) for name in ("left", "square"))
        place = Const(1, EXACT) << (Mux(step < SECOND, SECOND - step, 0)[:5] + 6)  # of a digit
        with m.If(self.all.works & (step == FIRST)):
            m.d.sync += [left.eq(unit.number), square.eq(1 << (ONE - 1))]
        with m.Elif(self.all.works & (step < SECOND)):
            more = Mux(unit.digit, unit.root + place, 0)
            m.d.sync += [left.eq(2 * left), square.eq(2 * square + more)]
        finds = self.is_root & self.positive & self.runs & (step > FIRST)
        rest = (left - square)[:EXACT].as_signed()
        next_ = unit.root + 2 * place
        check((rest >= 0) & (rest < next_), finds)
        behind = self.rest.as_signed() + Mux(self.rest[-1], next_, 0)
        check(behind == rest, finds & (step < SECOND))
        check(unit.root[-1] & ((unit.root & (2 * place - 1)) == 0), finds)
        check(unit.number == 0, finds)
        check(self.rest == HALF, finds & (step == SECOND))

    def check_quotient(self):
        """Rule 3, with D in the place of a number or a root."""
        m, check, unit = self.proof.m, self.proof.check, self.unit
        self.quotient = Signal(MANTISSA_BITS, name="quotient")
        product = Signal(EXACT, name="product")
        divisor = Mux(self.is_root, unit.root, unit.number)
        divides = self.positive & self.runs & (self.step >= self.divides_from)
        with m.If(divides & self.all.works & ~self.ended):
            m.d.sync += [
                self.quotient.eq(Cat(unit.digit, self.quotient)),
                product.eq(2 * product + Mux(unit.digit, divisor, 0)),
            ]
        with m.Else():
            m.d.sync += [self.quotient.eq(0), product.eq(0)]
        one = Const(1, EXACT) << (ONE - 1 + (self.step - self.divides_from)[:5])
        rest = (one - product)[:EXACT].as_signed()
        check((rest >= 0) & (rest < divisor) & divisor[-1], divides)
        behind = self.rest.as_signed() + Mux(self.rest[-1], divisor, 0)
        check(behind == rest, divides)
        check((self.quotient == 0) & (product == 0), ~divides)

    def check_words(self):
        """Rule 4."""
        m, check, step = self.proof.m, self.proof.check, self.step
        shift = Mux(self.is_root, ROOT_SHIFT - (self.places >> 1), SHIFT - self.places)
        shift = Mux(self.positive & (step > FIRST), shift, 0)
        found = Cat(self.quotient, shift[:SHIFT_BITS])
        check(self._of_group(self.words).as_unsigned() == found, self.runs & (step >= FIRST))
        waits = Cat(self.passed[1:]).any()
        for group, word in enumerate(self.words):
            ended = self.ended & (self.group == group)
            empty, there, kept = Signal(init=1), Signal(), Signal(NUMBER_BITS)
            with m.If(self.all.clear):
                m.d.sync += [empty.eq(1), there.eq(0)]
            with m.Elif(self.all.works & (self.all.group == group) & (step == FIRST)):
                m.d.sync += empty.eq(0)
            with m.Elif(ended):
                m.d.sync += [there.eq(1), kept.eq(word)]
            check(word.as_unsigned() == 0, empty)
            check(word.as_unsigned() == kept, there)
            begins = BEGINS + group * self.total_steps
            check(waits | (self.open & (self.age > begins + FIRST)), ~empty)
            check(empty, self.open & (self.age > COMBINE) & (self.age <= begins + FIRST))
            check(waits | (self.open & (self.age > begins + self.total_steps)), there)
            check(~empty, there | ended)
            check(~empty, self.runs & (self.group == group) & (step > FIRST))

    def check(self):
        for rule in (
            self.check_cycles, self.check_shifts, self.check_root, self.check_quotient,
            self.check_words,
        ):  # fmt: skip
            rule()
        self.proof.cover(self.ended & ~self.is_root & self.positive)


@pytest.mark.parametrize("groups", [1, 2])
def test_words_and_cycles(proof, state, groups):
    run = Run(proof, state, groups)
    run.check()
    proof.prove(depth=2, reach=36)


FAULTS = {
    "a root's parity is lost": ("Unit", "_shift", "~number[-1] & ~self.is_root", "~number[-1]"),
    "a negative number has a reciprocal": ("Unit", "_shift", "~negative & number", "number"),
    "a root begins with its own half": ("Unit", "_divide", "MINUS_QUARTER, HALF)", "HALF, HALF)"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found(proof, state, name, monkeypatch, tmp_path):
    plant((reciprocal_units, *FAULTS[name]), monkeypatch, tmp_path)
    Run(proof, state, 1).check()
    proof.refute(depth=14)


def build_compute(proof, state):
    """COMPUTE, which has the units; they are cut out, and ``ready`` as rule 5 says at most."""
    compute = Compute(load_config("tiny", ["reciprocal_units=4", *SIZES]))
    inner = proof.add(compute)
    gemm, alu, units = (getattr(inner.submodules, n) for n in ("gemm", "alu", "reciprocals"))
    proof.cut(inner, "gemm", gemm.sums, gemm.carry)
    proof.cut(inner, "alu", alu.result)
    proof.cut(inner, "reciprocals", units.ready, units.words)
    handshake = Handshake(proof, units)
    proof.assume(~units.ready | handshake.open)
    for promise in handshake.promises:
        proof.check(promise)
    proof.check(compute.acc_y.enable & ~compute.acc_y_taken, when=units.begin)
    came = handshake.age == BEGINS
    proof.check(units.y.as_value() == proof.past(compute.acc_y.data), when=came)
    register = Cat(state(inner, "read_marks"), state(inner, "read", of=2))
    read = data.View(compute.micro_ops.arrived(), register)
    proof.check(read.reads_y, when=read.valid & read.serial)
    proof.check(read.valid & read.serial, when=handshake.open)
    proof.check(state(inner, "units_begun") == handshake.open)
    for cycles, passed in enumerate(handshake.passed[1:], 1):
        proof.check(state(inner, f"units_passed_after_{cycles}") == passed)
    return units, handshake


def test_compute_keeps_y(proof, state):
    units, handshake = build_compute(proof, state)
    proof.cover(units.begin & handshake.passed[1])
    proof.cover(units.clear & (handshake.age > BEGINS) & handshake.open)
    proof.prove(depth=3, reach=24)


def test_compute_may_not_read_y_again(proof, state, monkeypatch, tmp_path):
    fault = compute_module, "Compute", "elaborate", "read.valid & ~begun", "read.valid"
    plant(fault, monkeypatch, tmp_path)
    build_compute(proof, state)
    proof.refute(depth=12)
