"""The vector that STORE's pipeline works on, while it passes, a step in each cycle.

1. A vector comes out of ACC a cycle after its read, and is held until the next one comes.
2. ``left`` steps of it are still to pass; ``number`` is that of the one that passes. A step is a
   beat of a raw vector, a group of lanes of a narrow one.
3. The plane's scales stay as long as none replace them. Zero and limits are the instruction's.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.store.vectors import LIMITS, vector_beats
from vdla.isa.config import Config
from vdla.isa.instructions import Mem


@dataclass(frozen=True)
class Read:
    """Read by the reader in this cycle; its data are at ``data`` in the next."""

    instruction: data.View
    scale: Value  # it reads scales
    vector: Value  # it reads a vector
    data: Value  # of ACC's port


class Held:
    """``vector``, its ``scales`` and ``limits``; the ``number`` of its step, if any is ``left``."""

    def __init__(self, m: Module, config: Config, read: Read) -> None:
        self.m, self.read = m, read
        self.beats = beats = vector_beats(config)
        self.scales, self.vector = (
            Signal(8 * config.acc_entry, name=n, reset_less=True) for n in ("scales", "vector")
        )
        self.limits = Signal(LIMITS, name="held", reset_less=True)
        steps = max(beats.raw, beats.narrow_steps)
        self.left = Signal(range(steps + 1))
        self.number = Signal(range(steps), reset_less=True)
        self.scale_arrives, self.vector_arrives = Signal(), Signal()
        self._take(self._arriving())

    def _take(self, arriving: data.View) -> None:
        m = self.m
        with m.If(self.scale_arrives):
            m.d.sync += self.scales.eq(self.read.data)
        with m.If(self.left != 0):
            m.d.sync += [self.left.eq(self.left - 1), self.number.eq(self.number + 1)]
        with m.If(self.vector_arrives):
            m.d.sync += [
                self.vector.eq(self.read.data),
                self.limits.eq(arriving),
                self.left.eq(self.beats.steps(arriving.narrow)),
                self.number.eq(0),
            ]

    def _arriving(self) -> data.View:
        """Limits of the vector that was read in the cycle before."""
        m, read, now = self.m, self.read, self.read.instruction
        arriving, is_raw = Signal(LIMITS, name="arriving", reset_less=True), Signal()
        m.d.comb += is_raw.eq(now.memory == Mem.ACC)
        m.d.sync += [
            self.scale_arrives.eq(read.scale),
            self.vector_arrives.eq(read.vector),
            arriving.narrow.eq(~is_raw),
            # Between limits of zero nothing is left of raw lanes.
            *(arriving[name].eq(Mux(is_raw, 0, now[name])) for name in ("low", "high")),
            arriving.zero.eq(now.zero),
        ]
        return arriving
