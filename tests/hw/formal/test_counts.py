"""Counts of what is under way.

1. The value = its start + ups − downs, since reset; zero since ``clear``.
2. It is never below zero or beyond ``most``; ``some`` says that it isn't zero, ``full`` that it is
   ``most``.

Assumed is what hw/count.py says: nobody takes it down from zero, or up from ``most``, unless both
happen. Without it, the second property falls.
"""

from __future__ import annotations

import pytest
from amaranth import Signal

from vdla.hw.count import Count


def build(proof, most, init=0, *, careful=True):
    m = proof.m
    count = Count(m, "count", most, init)
    up, down, clear = (proof.free(name=name) for name in ("up", "down", "clear"))
    count.move(up, down)
    with m.If(clear):
        count.clear()
    if careful:
        proof.assume(~(up & ~down) | ~count.full)
        proof.assume(~(down & ~up) | count.some)
    proof.check(count.value <= most)
    proof.check(count.some == (count.value != 0))
    proof.check(count.full == (count.value == most))
    return count, up, down, clear


@pytest.mark.parametrize(
    ("most", "init"), [(1, 1), (2, 0), pytest.param(5, 2, marks=pytest.mark.long)]
)
def test_value_and_flags(proof, most, init):
    count, up, down, clear = build(proof, most, init)
    m, ghost, both = proof.m, Signal(16, init=init), Signal()
    with m.If(clear):
        m.d.sync += ghost.eq(0)
    with m.Else():
        m.d.sync += ghost.eq(ghost + up - down)
    m.d.sync += both.eq(both | (up & down & count.full))
    proof.check(count.value == ghost)
    proof.cover(both & ~count.some & ~proof.past(clear))
    proof.cover(proof.past(clear & count.full) & ~count.some)
    proof.prove(reach=2 * most + 6)


@pytest.mark.parametrize("most", [1, 3])
def test_more_than_most_breaks_it(proof, most):
    _, up, down, clear = build(proof, most, careful=False)
    proof.assume(up & ~down & ~clear)
    proof.refute(depth=most + 3)


@pytest.mark.parametrize("most", [1, 3])
def test_less_than_nothing_breaks_it(proof, most):
    _, up, down, _ = build(proof, most, careful=False)
    proof.assume(down & ~up)
    proof.refute()
