"""Dependency tokens: one queue from an engine to a neighbour in the ring.

1. A token has no content: a queue of them is two counters, tokens there and slots free.
2. ``reserve`` takes a slot when an instruction starts, ``push`` fills it when that instruction
   finishes: finishing never waits, and a queue can't overflow.
3. ``pop`` takes a token; its slot is free from the next cycle on. What is pushed can be popped from
   the next cycle on.
4. Whoever pops has seen ``available``, whoever reserves has seen ``vacant``.
"""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib.wiring import Component, In, Out


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
        self.tokens = Signal(range(depth + 1))
        self.free = Signal(range(depth + 1), init=depth)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.available.eq(self.tokens != 0)
        m.d.comb += self.vacant.eq(self.free != 0)
        m.d.sync += self.tokens.eq(self.tokens + self.push - self.pop)
        m.d.sync += self.free.eq(self.free + self.pop - self.reserve)
        return m
