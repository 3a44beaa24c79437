"""Where a burst ends, for every beat of DRAM and every length left.

1. Never longer than ``burst_beats``, nor than what is left; never empty when anything is left.
2. Never across a 4 KiB page.
3. Cut greedily: it ends with its run, at ``burst_beats``, or at the page's end.
4. It is known with its length whether it ends its run.
5. The burst behind another is found from where that one began, and is the same one.
"""

from __future__ import annotations

import pytest
from amaranth import Const, Module, Signal
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.bursts import Bursts, Run, beat_bits, cut
from vdla.isa.config import PAGE_BYTES, load_config

CASES = {  # settings, and bits of what is left
    "tiny": ([], 27),
    "paper": ([], 3),
    "ulx3s": (["burst_beats=7"], 12),
    "wide": (["port_bytes=16", "burst_beats=256"], 27),
    "narrow": (["burst_beats=1"], 4),
}


class Cut(Component):
    """The unit: hw/bursts.py is a function."""

    def __init__(self, config, left_bits):
        self.config = config
        beats = Out(range(config.burst_beats + 1))
        super().__init__(
            {"beat": In(beat_bits(config)), "left": In(left_bits), "beats": beats, "is_all": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        beats, is_all = cut(self.config, self.beat, self.left)
        m.d.comb += [self.beats.eq(beats), self.is_all.eq(is_all)]
        return m


@pytest.mark.parametrize(
    "name",
    [
        "tiny",
        "ulx3s",
        *(pytest.param(n, marks=pytest.mark.long) for n in ("paper", "wide", "narrow")),
    ],
)
def test_where_a_burst_ends(proof, name):
    settings, left_bits = CASES[name]
    config = load_config(name, settings)
    port, most = config.port_bytes, config.burst_beats
    burst = Cut(config, left_bits)
    proof.add(burst)
    end = (burst.beat * port) % PAGE_BYTES + burst.beats * port
    proof.check(burst.beats <= most)
    proof.check(burst.beats <= burst.left)
    proof.check((burst.beats != 0) == (burst.left != 0))
    proof.check(end <= PAGE_BYTES)
    proof.check((burst.beats == burst.left) | (burst.beats == most) | (end == PAGE_BYTES))
    proof.check(burst.is_all == (burst.beats == burst.left))
    proof.cover((burst.beats == 1) & (burst.left > 1) & (end == PAGE_BYTES))
    if most < (1 << left_bits) - 1:
        proof.cover((burst.beats == most) & (burst.left != most))
    proof.prove(depth=1, reach=1)


FOLLOWING = {  # settings, and bits of what is left
    "tiny": ([], 12),
    "paper": ([], 27),
    "ulx3s": (["burst_beats=7"], 12),
    "wide": (["port_bytes=16", "burst_beats=256"], 12),
    "narrow": (["burst_beats=1"], 4),
}


class Followed(Component):
    """Bursts of any run, one after the other; a run begins whenever it likes."""

    def __init__(self, config, left_bits):
        self.config, self.left_bits = config, left_bits
        super().__init__(
            {
                "moves": In(1),
                "begins": In(1),
                "place": In(beat_bits(config) + 1),
                "beats": In(left_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.bursts = Bursts(m, self.config, self.left_bits, lambda place: Const(0))
        run = Run(self.place, self.beats, Const(0))
        self.bursts.go(self.moves, self.begins | self.bursts.ends_run, run)
        return m


@pytest.mark.parametrize(
    "name",
    [
        "tiny",
        "ulx3s",
        *(pytest.param(n, marks=pytest.mark.long) for n in ("paper", "wide", "narrow")),
    ],
)
def test_the_burst_behind_another(proof, state, name):
    """``Bursts`` finds it without a carry: it is the one that ``cut`` gives."""
    settings, left_bits = FOLLOWING[name]
    config = load_config(name, settings)
    unit = Followed(config, left_bits)
    inner = proof.add(unit)
    started = Signal()  # a run has begun
    proof.m.d.sync += started.eq(started | (unit.moves & unit.begins))
    proof.assume(unit.beats != 0)
    bursts, left = unit.bursts, ~state(inner, "asked")
    beats, is_all = cut(config, bursts.place, left)
    proof.check(bursts.beats == beats, when=started)
    proof.check(bursts.ends_run == is_all, when=started)
    proof.check(left != 0, when=started)
    proof.check((beats != 0) & (beats <= config.burst_beats), when=started)

    follows = proof.past(started & unit.moves & ~unit.begins & ~bursts.ends_run)
    place, bits = bursts.place, beat_bits(config)
    before = proof.past(place), proof.past(left), proof.past(bursts.beats)
    proof.check(place[:bits] == (before[0][:bits] + before[2])[:bits], when=follows)
    proof.check(left + before[2] == before[1], when=follows)
    proof.cover(follows & bursts.ends_run)
    if config.burst_beats > 1:
        proof.cover(follows & (before[2] == 1) & (bursts.beats > 1))
    proof.prove(depth=1, reach=4)
