"""Counts of what is under way, whose answers are registers.

1. A count goes up by one and down by one; what does both in a cycle stays as it is.
2. ``some`` and ``full`` are registers: whoever waits for them is often at the end of a long path.
   So is what says up and down: no sum here waits for it, it only enables.
"""

from __future__ import annotations

from amaranth import Module, Signal, Value


class Count:
    """``value`` of at most ``most``; ``some``: it isn't zero; ``full``: it is ``most``.

    Nobody takes it down from zero, or up from ``most``.
    """

    def __init__(self, m: Module, name: str, most: int, init: int = 0) -> None:
        self.m, self.most = m, most
        self.value = Signal(range(most + 1), name=name, init=init)
        self.some = Signal(name=f"{name}_some", init=init > 0)
        self.full = Signal(name=f"{name}_full", init=init == most)

    def move(self, up: Value, down: Value) -> None:
        """What happens in this cycle."""
        m, value = self.m, self.value
        with m.If(up & ~down):
            m.d.sync += [value.eq(value + 1), self.some.eq(1), self.full.eq(value == self.most - 1)]
        with m.If(down & ~up):
            m.d.sync += [value.eq(value - 1), self.some.eq(value != 1), self.full.eq(0)]

    def clear(self) -> None:
        """Nothing is under way any more."""
        self.m.d.sync += [self.value.eq(0), self.some.eq(0), self.full.eq(0)]
