"""The arithmetic that ALU and STORE share, against Python's integers; one input in every cycle."""

from __future__ import annotations

from random import Random

from amaranth import Module, Signal
from amaranth.lib.wiring import Component, In, Out
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.hw.requantize import MultiplyAdd, RoundShift, split
from vdla.isa.numbers import INT32_MAX, INT32_MIN, MANTISSA_BITS, pack_scale, rq

MULTIPLY_CYCLES, SHIFT_CYCLES = 3, 2
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


class Requantizer(Component):
    """Both units in a row, as STORE and the ALU connect them."""

    def __init__(self):
        super().__init__({"x": In(32), "mantissa": In(24), "shift": In(6), "result": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.multiply = multiply = MultiplyAdd()
        m.submodules.round = shift = RoundShift()
        low, high = split(self.x)
        amount = self.shift
        m.d.comb += [
            multiply.a0.eq(low),
            multiply.a1.eq(high),
            multiply.b0.eq(self.mantissa),
            multiply.b1.eq(self.mantissa),
            multiply.wide.eq(1),
            shift.value.eq(multiply.result),
            self.result.eq(shift.result),
        ]
        for _ in range(MULTIPLY_CYCLES):
            later = Signal.like(amount)
            m.d.sync += later.eq(amount)
            amount = later
        m.d.comb += shift.shift.eq(amount)
        return m


def stream(unit, inputs, cycles):
    """What comes out ``cycles`` after each of a row of inputs, given in consecutive cycles."""
    results = []

    async def drive(ctx):
        for values in [*inputs, *[{}] * cycles]:
            for name, value in values.items():
                ctx.set(getattr(unit, name), value)
            results.append(ctx.get(unit.result))
            await ctx.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    return results[cycles:]


def signed(value, bits):
    """The low bits of a number, as a signed one."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def near(random, bits, values=(0,)):
    """A signed number, often one of an edge's neighbours."""
    edge = 1 << bits - 1
    if random.random() < 0.5:
        at = random.choice((-edge, edge - 1, 1 << random.randrange(bits), *values))
        return signed(at + random.randint(-2, 2), bits)
    return random.randrange(-edge, edge)


def test_multiply_add_takes_narrow_and_wide_products_in_turn():
    random = Random(1)
    inputs = [
        {
            **{name: near(random, 18) for name in ("a0", "a1")},
            **{name: near(random, 25) for name in ("b0", "b1")},
            "wide": random.randrange(2),
        }
        for _ in range(3000)
    ]
    results = stream(MultiplyAdd(), inputs, MULTIPLY_CYCLES)
    for i, result in zip(inputs, results, strict=True):
        assert result == i["a0"] * i["b0"] + (i["a1"] * i["b1"] << 17 * i["wide"]), i


def shifted(value, shift, wrap):
    """What ``RoundShift`` gives; Python rounds fractions to the even neighbour, too."""
    if wrap:
        return signed(value >> shift, 32)
    whole, rest = value >> shift, value & ((1 << shift) - 1)
    up = 2 * rest > 1 << shift or (2 * rest == 1 << shift and whole % 2)
    return min(max(whole + up, INT32_MIN), INT32_MAX)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(INT64, st.integers(0, 63), st.integers(0, 1)), min_size=20))
def test_round_shift(cases):
    inputs = [dict(zip(("value", "shift", "wrap"), case, strict=True)) for case in cases]
    assert stream(RoundShift(), inputs, SHIFT_CYCLES) == [shifted(*case) for case in cases]


def test_round_shift_at_ties_and_limits():
    """Every shift; quotients odd and even, at zero and at the limits; just below, at, above a tie;
    with every single bit that can make a rest greater than a tie."""
    cases = []
    for shift in range(64):
        half = (1 << shift) >> 1
        for quotient in (-2, -1, 0, 1, 2, INT32_MIN - 1, INT32_MIN, INT32_MAX - 1, INT32_MAX):
            rests = {0, half, half - 1, half + 1, *(half + (1 << b) for b in range(0, shift, 5))}
            values = {(quotient << shift) + r for r in rests}
            cases += [(v, shift, w) for v in values if -(1 << 63) <= v < 1 << 63 for w in (0, 1)]
    Random(2).shuffle(cases)
    inputs = [dict(zip(("value", "shift", "wrap"), case, strict=True)) for case in cases]
    assert stream(RoundShift(), inputs, SHIFT_CYCLES) == [shifted(*case) for case in cases]


def test_both_are_the_requantization_that_the_isa_defines():
    random, inputs, wanted = Random(3), [], []
    for _ in range(3000):
        word = random.choice((pack_scale(random.random() * 8 + 1e-9), random.getrandbits(30)))
        x = near(random, 32)
        mantissa, shift = word & ((1 << MANTISSA_BITS) - 1), word >> MANTISSA_BITS
        inputs.append({"x": x % (1 << 32), "mantissa": mantissa, "shift": shift})
        wanted.append(rq(x, word))
    results = stream(Requantizer(), inputs, MULTIPLY_CYCLES + SHIFT_CYCLES)
    assert [signed(r, 32) for r in results] == wanted
