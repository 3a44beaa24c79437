"""Loops that know their end a cycle ahead: a register says whether an iteration is the last."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value


class Loop:
    """One level of a nest, of ``size`` iterations; ``size`` stays from ``start`` to the end.

    ``end`` is high in the last iteration. What a size of zero gives is nobody's business: such a
    nest is empty, and its unit knows that.
    """

    def __init__(self, m: Module, name: str, size: Value) -> None:
        self.m, self.size = m, size
        self.left = Signal(len(size), name=f"{name}_left")  # iterations after this one
        self.end = Signal(name=f"{name}_end")
        self.once = Signal(name=f"{name}_once")

    def start(self, size: Value) -> None:
        """The first iteration is the next cycle's; ``size`` has its value from then on."""
        once = size == 1
        self.m.d.sync += [self.left.eq(size - 1), self.end.eq(once), self.once.eq(once)]

    def step(self) -> None:
        """The next iteration; after the last comes the first again."""
        self.m.d.sync += [
            self.left.eq(Mux(self.end, self.size, self.left) - 1),
            self.end.eq(Mux(self.end, self.once, self.left == 1)),
        ]
