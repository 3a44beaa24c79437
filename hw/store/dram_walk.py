"""STORE's walk through DRAM, from run to run.

1. A run is a row of entries that lie together, else one entry. Runs go in the order z, y, x.
2. Places in DRAM, in beats, only grow, and never wrap.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.bursts import beat_bits
from vdla.hw.layout import scaled
from vdla.hw.loops import Loop, Nest
from vdla.hw.store.vectors import vector_beats
from vdla.isa.config import Config


class DramWalk:
    """The loops of the walk ``now``; ``last``: no run follows this one."""

    def __init__(self, m: Module, config: Config, now: data.View) -> None:
        self.m, self.now, self.beats = m, now, vector_beats(config)
        bits = beat_bits(config) + 1
        self.bases = [Signal(bits, name=f"base_{a}", reset_less=True) for a in "xyz"]
        self.loops = [Loop(m, f"runs_{a}", now[f"{a}_runs"]) for a in "xyz"]
        x, y, z = self.loops
        self.last: Value = x.end & y.end & z.end

    def go_on(self, moves: Value, run_ends: Value, unused: Value, following: data.View) -> Value:
        """To the next run if this one ends, to the walk ``following`` after the last or if this
        one is ``unused``; returns where the next run begins.
        """
        begins = unused | (run_ends & self.last)
        strides = [self.now[f"{a}_stride"] for a in "xyz"]
        first = following.base, [following[f"{a}_runs"] for a in "xyz"]
        nest = Nest(self.loops, self.bases, strides, self._scale)
        return nest.advance(self.m, moves, begins, first, run_ends)

    def _scale(self, stride: Value) -> Value:
        narrow, raw = scaled(stride, self.beats.narrow), scaled(stride, self.beats.raw)
        return Mux(self.now.narrow, narrow, raw)
