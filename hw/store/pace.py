"""STORE's pace: when the reader may read its next vector.

1. The pipeline takes a step a cycle, so reads of two vectors are as many cycles apart as the first
   has steps (``rested``): a beat each, or a group of lanes.
2. The pipeline never waits, so the write buffer must have room for all beats of a vector before it
   is read (``fits``). The room comes back beat by beat, as beats move to memory.
3. Both are registers, of the cycle before: COMPUTE's hold comes after STORE's read in a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Mux, Signal, Value

from vdla.hw.store.vectors import BUFFER_VECTORS, VectorBeats


@dataclass(frozen=True)
class Step:
    """Events in a cycle."""

    reads_vector: Value  # the reader reads a vector
    sent: Value  # a beat leaves the write buffer
    begins: Value  # the next instruction comes next cycle
    narrow: Value  # whether that one's vectors are narrow


class Pace:
    """``rested``: the vector before has passed; ``fits``: the next one has room."""

    def __init__(self, m: Module, beats: VectorBeats) -> None:
        self.m, self.beats = m, beats
        most = BUFFER_VECTORS * beats.raw
        self.rested, self.fits = Signal(init=1), Signal(name="fits", init=1)
        self.narrow = Signal()  # whether the vectors of the instruction at work are
        steps = max(beats.raw, beats.narrow_steps)
        self.pause = Signal(range(steps))  # cycles until the next read
        self.room = Signal(range(most + 1), init=most)

    def go_on(self, step: Step) -> tuple[Value, Value]:
        """Works out what may be read in the next cycle; returns whether it is ``rested`` then, and
        whether the next vector ``fits``."""
        m = self.m
        length = self.beats.of(self.narrow)
        untaken = self.room - Mux(step.reads_vector, length, 0)
        left = Mux(self.pause == 0, 0, self.pause - 1)
        next_narrow, next_pause = Signal(), Signal.like(self.pause)
        m.d.comb += [
            next_narrow.eq(Mux(step.begins, step.narrow, self.narrow)),
            next_pause.eq(Mux(step.reads_vector, self.beats.steps(self.narrow) - 1, left)),
        ]
        raw_fits, narrow_fits = (
            Mux(step.sent, untaken >= beats - 1, untaken >= beats)
            for beats in (self.beats.raw, self.beats.narrow)
        )
        rested, fits = next_pause == 0, Mux(next_narrow, narrow_fits, raw_fits)
        m.d.sync += [
            self.narrow.eq(next_narrow),
            self.fits.eq(fits),
            self.room.eq(untaken + step.sent),
            self.pause.eq(next_pause),
            self.rested.eq(rested),
        ]
        return rested, fits
