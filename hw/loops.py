"""Loops that know their end a cycle ahead: a register says whether an iteration is the last."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Signal, Value


class Loop:
    """One level of a nest, of ``size`` iterations; ``size`` stays while the nest is under way.

    ``end`` is high in the last iteration. A loop begins with ``start``. What a size of zero gives
    is nobody's business: such a nest is empty, and its unit knows that.
    """

    def __init__(self, m: Module, name: str, size: Value) -> None:
        self.m, self.size = m, size
        self.left = Signal(len(size), name=f"{name}_left")  # iterations, this one among them
        self.end = Signal(name=f"{name}_end")

    def start(self, size: Value) -> None:
        """The first iteration is the next cycle's; ``size`` has its value from then on."""
        self.m.d.sync += [self.left.eq(size), self.end.eq(size == 1)]

    def advance(self, steps: Value | int = 1) -> None:
        """The next iteration if ``steps``; after the last comes the first again."""
        following = Mux(self.end, self.size, self.left - 1)
        ends = Mux(self.end, self.size == 1, self.left == 2)
        self.m.d.sync += [
            self.left.eq(Mux(steps, following, self.left)),
            self.end.eq(Mux(steps, ends, self.end)),
        ]


def inner_ends(loops: Sequence[Loop]) -> list[Value]:
    """For each level of a nest, innermost first, whether all levels within it are at their end."""
    return [Cat(*(loop.end for loop in loops[:level]), 1).all() for level in range(len(loops))]
