"""Counts of what is under way, whose answers are registers.

1. A count goes up by one and down by one; what does both in a cycle stays as it is.
2. ``some`` and ``full`` are registers: whoever waits for them is often at the end of a long path.
3. A bit flips if all below it are ones, or zeros on the way down: one LUT for each bit of a small
   count, where a sum and a difference take three.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value


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
        """Counts up, down, both or neither in this cycle."""
        m, value = self.m, self.value
        ones, zeros = (
            Cat(below[:bit].all() for bit in range(len(value))) for below in (value, ~value)
        )
        flips = Mux(up, ones, zeros)  # ``up`` is often late, and passes one LUT
        with m.If(up ^ down):
            m.d.sync += [
                value.eq(value ^ flips),
                self.some.eq(up | (value != 1)),
                self.full.eq(up & (value == self.most - 1)),
            ]

    def clear(self) -> None:
        """Nothing is under way any more."""
        self.m.d.sync += [self.value.eq(0), self.some.eq(0), self.full.eq(0)]
