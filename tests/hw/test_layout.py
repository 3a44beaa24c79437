"""Sums and differences whose operands are placed on purpose: against Python's integers."""

from __future__ import annotations

from itertools import product

import pytest
from amaranth import Module, Signal, signed, unsigned
from amaranth.sim import Simulator

from vdla.hw.layout import add_selected, subtract_selected

SHAPES = (signed(3), unsigned(3), unsigned(2))


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@pytest.mark.parametrize("other", SHAPES, ids=repr)
def test_below_and_plus(shape, other):
    x, y = Signal(shape), Signal(other)
    difference, total = subtract_selected(x, y), add_selected(x, y)
    m = Module()
    less, more = Signal(difference.shape()), Signal(total.shape())
    m.d.comb += [less.eq(difference), more.eq(total)]
    seen = []

    async def drive(ctx):
        for a, b in product(range(1 << len(x)), range(1 << len(y))):
            ctx.set(x, a)
            ctx.set(y, b)
            a, b = ctx.get(x), ctx.get(y)
            seen.append((ctx.get(less) - (a - b - 1), ctx.get(more) - (a + b)))

    simulator = Simulator(m)
    simulator.add_testbench(drive)
    simulator.run()
    assert set(seen) == {(0, 0)}
    assert len(seen) == 1 << len(x) + len(y)
