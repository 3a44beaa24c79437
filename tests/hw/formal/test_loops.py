"""Nests of loops, as a unit with a queue of instructions drives them.

1. A nest that begins goes through its iterations in order, as often as its sizes say, however long
   each takes; the next one begins right after the last, or later.
2. ``end`` says that an iteration is its loop's last, a countdown's ``left`` how many there are with
   this one.

Assumed: a nest that begins isn't empty. As in the units, the sizes at work are taken over as soon
as the next nest is what comes next: in the last iteration they needn't be this nest's any more.
"""

from __future__ import annotations

import pytest
from amaranth import Const, Mux, Signal

from vdla.hw.loops import Countdown, Loop, inner_ends

BITS = 3


@pytest.mark.parametrize("kind", [Loop, Countdown])
def test_a_nest_of_three(proof, kind):
    m = proof.m
    names = ("x", "y", "z")
    first = [proof.free(BITS, name=f"first_{n}") for n in names]
    start, step = proof.free(name="start"), proof.free(name="step")
    now = [Signal(BITS, name=f"now_{n}") for n in names]
    loops = [kind(m, n, size) for n, size in zip(names, now, strict=True)]
    active, last = Signal(), Signal()
    m.d.comb += last.eq(loops[0].end & loops[1].end & loops[2].end)
    begins, moves = ~active | last, ~active | step
    for loop, size, inner in zip(loops, first, inner_ends(loops), strict=True):
        loop.go(moves, begins, size, inner)
        proof.assume(~(start & begins & moves) | (size != 0))
    with m.If(begins):
        m.d.sync += [kept.eq(size) for kept, size in zip(now, first, strict=True)]
    with m.If(begins & moves):
        m.d.sync += active.eq(start)

    sizes = [Signal(BITS, name=f"size_{n}") for n in names]
    at = [Signal(BITS, name=f"at_{n}") for n in names]
    with m.If(begins & moves):
        m.d.sync += [a.eq(0) for a in at]
        m.d.sync += [kept.eq(size) for kept, size in zip(sizes, first, strict=True)]
    with m.Elif(moves):
        steps = Const(1)
        for a, size in zip(at, sizes, strict=True):
            with m.If(steps):
                m.d.sync += a.eq(Mux(a + 1 == size, 0, a + 1))
            steps &= a + 1 == size
    for loop, a, size, kept in zip(loops, at, sizes, now, strict=True):
        proof.check(a < size, when=active)
        if kind is Countdown:
            proof.check(loop.left == size - a, when=active)
        else:
            proof.check(loop.due == (a + 2)[:BITS], when=active)
        proof.check(loop.end == (a + 1 == size), when=active)
        proof.check(kept == size, when=active & ~last)
    proof.cover(active & last & (sizes[0] == 3) & (sizes[1] == 2) & (sizes[2] == 1))
    proof.cover(proof.past(active & last & step) & active & (sizes[0] == 2))
    proof.prove()
