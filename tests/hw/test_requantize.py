"""The arithmetic that ALU and STORE share, against Python's integers; one input in every cycle."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest
from amaranth import Module, signed
from amaranth.lib.wiring import Component, In, Out
from arithmetic import near, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.hw.requantize import (
    FACTOR_BITS,
    LOW_BITS,
    MULTIPLY_CYCLES,
    VALUE_BITS,
    WINDOW_BITS,
    Multiply,
    Requantize,
    delayed,
    scaler,
    split,
)
from vdla.isa.numbers import pack_scale, rq, saturate, unpack_scale

ROUND_CYCLES = 3
NARROW = SimpleNamespace(multiplier_bits=18)  # as an ECP5's
VALUES = st.integers(-(1 << VALUE_BITS - 1), (1 << VALUE_BITS - 1) - 1)


class Limited(Component):
    """A requantizer as STORE and the ALU connect it, its zero and its limits along with the value;
    with ``multiplies``, behind a multiplier."""

    def __init__(self, bits, multiplies=False):
        self.bits, self.multiplies = bits, multiplies
        limits = dict.fromkeys(("zero", "low", "high"), In(signed(bits)))
        value = {"x": In(signed(32)), "factor": In(24)} if multiplies else {"value": In(signed(57))}
        super().__init__({**value, "shift": In(6), **limits, "result": Out(signed(bits))})

    def elaborate(self, platform):
        m = Module()
        cycles = MULTIPLY_CYCLES if self.multiplies else 0
        zero = delayed(m, self.zero, cycles + 2, "zero").as_signed()
        if self.multiplies:
            multiply, unit = scaler(m, 0, self.bits, self.shift, zero)
            low, high = split(self.x)
            m.d.comb += [multiply.low.eq(low), multiply.high.eq(high)]
            m.d.comb += [multiply.factor.eq(self.factor), multiply.high_factor.eq(self.factor)]
        else:
            m.submodules.requantize = unit = Requantize(self.bits)
            m.d.comb += [unit.value.eq(self.value), unit.shift.eq(self.shift), unit.zero.eq(zero)]
        whole = cycles + ROUND_CYCLES
        low, high = (delayed(m, getattr(self, n), whole, n) for n in ("low", "high"))
        m.d.comb += self.result.eq(unit.limited(low.as_signed(), high.as_signed()))
        return m


def stream(unit, inputs, cycles, output="result", platform=None):
    """What comes out ``cycles`` after each of a row of inputs, given in consecutive cycles."""
    results = []

    async def drive(ctx):
        for values in [*inputs, *[{}] * cycles]:
            for name, value in values.items():
                ctx.set(getattr(unit, name), value)
            results.append(ctx.get(getattr(unit, output)))
            await ctx.tick()

    simulate(unit, drive, platform)
    return results[cycles:]


def test_a_product_fits_a_dsp48e1():
    """UG479, table 2-1: 25 bits by 18, both signed."""
    assert FACTOR_BITS == (18, 25)


@pytest.mark.parametrize("platform", [None, NARROW], ids=["a DSP48E1", "a MULT18X18D"])
def test_multiply(platform):
    random = Random(1)
    inputs = [
        {
            "low": near(random, 18),
            "high": near(random, 15),
            "factor": factor,
            "high_factor": factor,
            "only_high": random.randrange(2),
        }
        for factor in (near(random, 25) for _ in range(3000))
    ]
    results = stream(Multiply(), inputs, MULTIPLY_CYCLES, platform=platform)
    for i, result in zip(inputs, results, strict=True):
        low = 0 if i["only_high"] else i["low"]
        assert result == (low + (i["high"] << LOW_BITS)) * i["factor"], i


@pytest.mark.parametrize("platform", [None, NARROW], ids=["a DSP48E1", "a MULT18X18D"])
def test_two_products(platform):
    random, unit = Random(2), Multiply()
    bits = {"low": 18, "high": 18, "factor": 25, "high_factor": 25}
    inputs = [{name: near(random, n) for name, n in bits.items()} for _ in range(3000)]
    wanted = [
        (i["low"] * i["factor"] + i["high"] * i["high_factor"]) % (1 << WINDOW_BITS) for i in inputs
    ]
    assert stream(unit, inputs, MULTIPLY_CYCLES, "total", platform) == wanted


def limits(random, bits):
    """Zero, low and high, now and then crossed."""
    return {name: near(random, bits) for name in ("zero", "low", "high")}


def limited(quotient, i):
    """``high`` wins when the limits cross, as in the ISA's words: min(max(x, low), high)."""
    return min(max(quotient + i["zero"], i["low"]), i["high"])


def rounded(value, shift):
    """``value / 2**shift``, ties to the even neighbour."""
    whole, rest = value >> shift, value & ((1 << shift) - 1)
    return whole + (2 * rest > 1 << shift or (2 * rest == 1 << shift and whole % 2))


def check(bits, cases, seed):
    """Values and shifts through a requantizer, each with limits of its own."""
    random = Random(seed)
    inputs = [{"value": v, "shift": s, **limits(random, bits)} for v, s in cases]
    wanted = [limited(rounded(i["value"], i["shift"]), i) for i in inputs]
    assert stream(Limited(bits), inputs, ROUND_CYCLES) == wanted


@settings(max_examples=25)
@given(st.lists(st.tuples(VALUES, st.integers(0, 63)), min_size=20), st.sampled_from((8, 9)))
def test_rounds_and_limits(cases, bits):
    check(bits, cases, 0)


@pytest.mark.parametrize("bits", [8, 9])
def test_ties_and_limits(bits):
    """Every shift; quotients odd and even, at zero, where the unit's own numbers end, far beyond;
    just below, at, above a tie; with single bits that make a rest greater than a tie."""
    cases = []
    edge = 1 << bits
    near_edges = [sign * edge + by for sign in (-2, -1, 1, 2) for by in (-2, -1, 0, 1)]
    far = [sign << bit for bit in range(bits, 56, 3) for sign in (-1, 1)]
    for shift in range(64):
        half = (1 << shift) >> 1
        for quotient in (-2, -1, 0, 1, 2, *near_edges, *far):
            rests = {0, half, half - 1, half + 1, *(half + (1 << b) for b in range(0, shift, 7))}
            values = {(quotient << shift) + r for r in rests}
            cases += [(v, shift) for v in values if -(1 << 56) <= v < 1 << 56]
    Random(2).shuffle(cases)
    check(bits, cases, 5)


def test_window_is_the_value_shifted_by_16s():
    unit = Requantize(9)
    unit.result = unit.window
    random = Random(6)
    inputs = [{"value": near(random, 57), "shift": random.randrange(64)} for _ in range(500)]
    wanted = [(i["value"] >> (i["shift"] & 48)) % (1 << WINDOW_BITS) for i in inputs]
    assert stream(unit, inputs, 1) == wanted


@pytest.mark.parametrize("bits", [8, 9])
def test_with_the_multiplier_it_is_the_requantization_that_the_isa_defines(bits):
    random, inputs, wanted = Random(3), [], []
    for _ in range(3000):
        word = random.choice((pack_scale(random.random() * 8 + 1e-9), random.getrandbits(30)))
        mantissa, shift = unpack_scale(word)
        # Half of the results within the limits, or not far from them.
        reach = (1 << bits + 1 + shift) // max(mantissa, 1)
        x = saturate(random.randint(-reach, reach), -(1 << 31), (1 << 31) - 1)
        x = random.choice((x, near(random, 32)))
        i = {"x": x, "factor": mantissa, "shift": shift, **limits(random, bits)}
        inputs.append(i)
        wanted.append(limited(rq(x, word), i))
    unit = Limited(bits, multiplies=True)
    assert stream(unit, inputs, MULTIPLY_CYCLES + ROUND_CYCLES) == wanted
