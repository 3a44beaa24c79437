"""The loops, and per index stream what they add up to.

1. An index is base + i0 x step0 + i1 x step1 + i2 x step2. Sums are kept instead, so no multiplier
   lies in the way of an address: a step of loop i is added to sum i, and copied to those within it.
2. The loops go on when the micro-ops of an iteration have been issued.
3. Sums only grow and never wrap: their top bit says that they have left their buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.loops import Loop, Nest, inner_ends


@dataclass(frozen=True)
class Advance:
    """Moves of the loops in this cycle, if the nest ``moves``."""

    moves: Value
    begins: Value  # the next instruction comes next
    iteration_ends: Value  # else the next iteration, if this is high


class Indices:
    """``loops``, outermost first, and ``sums``.

    ``sums[stream][i]`` is the index with loops i+1 .. 2 at their first iteration.
    """

    def __init__(self, m: Module, index_bits: dict[str, int], now: data.View) -> None:
        self.m, self.now = m, now
        self.loops = [Loop(m, f"loop_{i}", now[f"extent_{i}"]) for i in range(3)]
        self.sums = {
            name: [Signal(bits + 1, name=f"{name}_sum_{i}", reset_less=True) for i in range(3)]
            for name, bits in index_bits.items()
        }
        self.innermost = {name: sums[2] for name, sums in self.sums.items()}

    def go_on(self, advance: Advance, word: data.View) -> None:
        """To the next iteration, or to the first one of the instruction ``word``."""
        loops = self.loops
        inner = [advance.iteration_ends & ends for ends in reversed(inner_ends(loops[::-1]))]
        for i, (loop, ends) in enumerate(zip(loops, inner, strict=True)):
            loop.go(advance.moves, advance.begins, word[f"extent_{i}"], ends)
        # One of the loops takes a step, or none does.
        steps = [ends & ~loop.end for ends, loop in zip(inner, loops, strict=True)]
        for name in self.sums:
            self._add(name, advance, steps, word)

    def _add(self, name: str, advance: Advance, steps: list[Value], word: data.View) -> None:
        """Adds the step of the loop that takes one to the sums of a stream."""
        m, sums, begins = self.m, self.sums[name], advance.begins
        pitches = [self.now[f"{name}_{i}"] for i in range(3)]
        following = Nest(self.loops[::-1], sums[::-1], pitches[::-1]).following()
        for i, total in enumerate(sums):
            with m.If(advance.moves & (begins | Cat(steps[: i + 1]).any())):
                m.d.sync += total.eq(Mux(begins, word[f"{name}_base"], following))
