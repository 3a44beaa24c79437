"""Dependency tokens: one queue from an engine to a neighbour in the ring.

1. A token has no content: a queue of them is two counters, tokens there and slots free.
2. ``reserve`` takes a slot when an instruction starts, ``push`` fills it when that instruction
   finishes: finishing never waits, and a queue can't overflow.
3. ``pop`` takes a token; its slot is free from the next cycle on. What is pushed can be popped from
   the next cycle on.
4. Whoever pops has seen ``available``, whoever reserves has seen ``vacant``.
"""

from __future__ import annotations

from amaranth import Module
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.count import Count


class TokenQueue(Component):
    """A queue of ``depth`` tokens.

    Invariant: tokens there + slots free + slots reserved = depth.
    """

    def __init__(self, depth: int) -> None:
        super().__init__(
            {
                "pop": In(1),
                "push": In(1),
                "reserve": In(1),
                "available": Out(1),
                "vacant": Out(1),
            }
        )
        self.depth = depth

    def elaborate(self, platform: object) -> Module:
        """Two counts, of the tokens that are there and of the slots that are free."""
        m = Module()
        tokens = Count(m, "tokens", self.depth)
        free = Count(m, "free", self.depth, init=self.depth)
        tokens.move(self.push, self.pop)
        free.move(self.pop, self.reserve)
        m.d.comb += [self.available.eq(tokens.some), self.vacant.eq(free.some)]
        return m
