"""Reciprocal units: each word against the integers' definition, in so many cycles for any y."""

from __future__ import annotations

from random import Random

import pytest
from arithmetic import simulate
from planting import plant

from vdla.hw.options import reciprocal_units
from vdla.hw.options.reciprocal_units import Reciprocals
from vdla.isa.config import load_config
from vdla.isa.numbers import INT32_MAX, INT32_MIN, reciprocal, rsqrt
from vdla.sim.options.reciprocals import CYCLES as CYCLES_OF

LANES = 4
DEFINITIONS = (reciprocal, rsqrt)
CYCLES = tuple(CYCLES_OF.values())
# What a shift or the first and the last digits could get wrong: powers of two, what lies beside
# them, squares and what lies beside these, and numbers of ones. CLOSE's roots have a last digit of
# 0 by one unit: 2**k · y = u² - 1, where u is the root with a last digit of 1.
CLOSE = [
    (n << bits) ** 2 - n for n, bits in ((256, 7), (311, 7), (362, 7), (64, 8), (127, 8), (33, 9))
]
CORNERS = sorted(
    {min(max(n, INT32_MIN), INT32_MAX) for n in (
        *range(-2, 70), INT32_MIN, INT32_MAX, *CLOSE,
        *((1 << e) + d for e in range(31) for d in range(-2, 3)),
        *(n * n + d for n in (3, 181, 182, 4095, 4096, 4097, 23170, 32767, 46340)
          for d in (-1, 0, 1)),
        *(0x55555555 >> n for n in range(31)),
    )}
)  # fmt: skip


def vectors(count, seed=0):
    """Corners in a random order, then numbers of any length."""
    random = Random(seed)
    values = [*CORNERS, *(random.getrandbits(random.randint(1, 31)) for _ in range(LANES * count))]
    random.shuffle(values)
    return [tuple(values[n : n + LANES]) for n in range(0, LANES * count, LANES)]


def computed(units, work, wait=0):
    """The words of vectors, and the cycles from ``begin`` to ``ready``, of each (vector, root).

    The micro-op passes ``wait`` cycles after that; its words are looked at in stage 8, and whether
    they are gone in the next cycle.
    """
    unit, results = Reciprocals(load_config("tiny", [f"reciprocal_units={units}"])), []

    async def drive(ctx):
        for vector, is_root in work:
            ctx.set(unit.begin, 1)
            ctx.set(unit.is_root, is_root)
            await ctx.tick()
            ctx.set(unit.begin, 0)
            ctx.set(unit.is_root, not is_root)  # nobody looks at it any more
            cycles = 1
            await ctx.tick()
            for lane, y in enumerate(vector):
                ctx.set(unit.y[lane], y)
            cycles += 1
            while not ctx.get(unit.ready):
                await ctx.tick()
                cycles += 1
            for _ in range(wait):
                await ctx.tick()
                assert ctx.get(unit.ready)
            ctx.set(unit.passes, 1)
            await ctx.tick()
            ctx.set(unit.passes, 0)
            assert not ctx.get(unit.ready)
            for lane in range(LANES):  # y is gone
                ctx.set(unit.y[lane], -1)
            await ctx.tick().repeat(7)
            words = [ctx.get(unit.words[lane]) for lane in range(LANES)]
            ctx.set(unit.clear, 1)
            await ctx.tick()
            ctx.set(unit.clear, 0)
            assert not any(ctx.get(unit.words[lane]) for lane in range(LANES))
            results.append((words, cycles))

    simulate(unit, drive)
    return results


def check(units, work, wait=0):
    groups = LANES // units
    for (vector, is_root), (words, cycles) in zip(work, computed(units, work, wait), strict=True):
        assert words == [DEFINITIONS[is_root](y) for y in vector], (vector, is_root)
        assert cycles == groups * CYCLES[is_root]


@pytest.mark.parametrize("is_root", [0, 1])
def test_corners(is_root):
    rest = CORNERS[-1:] * (-len(CORNERS) % LANES)
    values = [*CORNERS, *rest]
    work = [(tuple(values[n : n + LANES]), is_root) for n in range(0, len(values), LANES)]
    check(LANES, work)


def test_the_last_digit_of_a_root_is_compared_exactly(monkeypatch, tmp_path):
    """No random program finds it: one root in 2**24 is that close."""
    fault = "range(1, MANTISSA_BITS)", "range(1, MANTISSA_BITS - 1)"
    plant((reciprocal_units, "Unit", "_divide", *fault), monkeypatch, tmp_path)
    with pytest.raises(AssertionError):
        check(LANES, [(tuple(CLOSE[:LANES]), 1)])


@pytest.mark.parametrize("units", [1, 2, 4])
def test_both_in_turn(units):
    random = Random(units)
    check(units, [(vector, random.randrange(2)) for vector in vectors(40, units)])


def test_words_wait_until_the_micro_op_passes():
    """VECTOR may hold it longer."""
    check(2, [(vector, n % 2) for n, vector in enumerate(vectors(6, 9))], wait=50)


@pytest.mark.long
def test_many_numbers():
    for part in range(20):
        check(LANES, [(vector, part % 2) for vector in vectors(1000, part)])
