"""Runs of a walk through DRAM, one after the other: for LOAD's beats and for STORE's.

1. A run is a row of entries that lie together, else one entry. Runs go in the order z, y, x.
2. Each run is offered from registers until it is taken; the next one is worked out meanwhile. So
   nothing that decides on a burst begins with an addition.
3. Places in DRAM, in beats, only grow, and never wrap: the top bit says that they have left the
   32-bit space.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Signal, Value

from vdla.hw.bursts import beat_bits
from vdla.hw.loops import Loop, Nest
from vdla.isa.config import Config


@dataclass(frozen=True)
class Walk:
    """A walk that may begin: its first place, the beats of each run, and of x, y and z how many
    runs they have and how far apart these are. Places and distances are in beats."""

    base: Value
    beats: Value
    sizes: tuple[Value, Value, Value]
    strides: tuple[Value, Value, Value]


class Runs:
    """``place`` and ``beats`` of the run that is offered, ``last``: none of its walk follows."""

    def __init__(self, m: Module, config: Config, first: Walk) -> None:
        self.m, self.first = m, first
        bits = beat_bits(config) + 1
        bases = [Signal(bits, name=f"base_{a}", reset_less=True) for a in "xyz"]
        self._sizes, self._strides = (
            [_kept(value, f"{name}_{a}") for a, value in zip("xyz", values, strict=True)]
            for name, values in (("runs", first.sizes), ("stride", first.strides))
        )
        self.beats = _kept(first.beats, "run")
        loops = [Loop(m, f"runs_{a}", size) for a, size in zip("xyz", self._sizes, strict=True)]
        self._nest = Nest(loops, bases, self._strides)
        self.place = bases[0]
        x, y, z = loops
        self.last: Value = x.end & y.end & z.end

    def go(self, moves: Value, begins: Value) -> None:
        """To the next run if it ``moves``, which may be late; to the first walk's if it
        ``begins``."""
        first = self.first
        self._nest.advance(self.m, moves, begins, (first.base, first.sizes))
        pairs = [
            *zip(self._sizes, first.sizes, strict=True),
            *zip(self._strides, first.strides, strict=True),
        ]
        with self.m.If(begins):  # the last run needs them no more
            self.m.d.sync += [mine.eq(new) for mine, new in pairs]
        with self.m.If(moves & begins):
            self.m.d.sync += self.beats.eq(first.beats)


def _kept(value: Value, name: str) -> Signal:
    """A register for what the walk at work has of a value."""
    return Signal(len(value), name=f"{name}_kept", reset_less=True)
