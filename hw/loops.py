"""Loops that know their end a cycle ahead: a register says whether an iteration is the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, Value

from vdla.hw.layout import add_sticky


class Loop:
    """One level of a nest, of ``size`` iterations; ``size`` stays while the nest is under way.

    ``end`` is high in the last iteration. With a size of zero it means nothing: such a nest is
    empty, and the unit that has it doesn't start it. The count goes up from 2, which is the size
    at which the next iteration would be the last, and not down from the size, because to start at
    a constant costs no multiplexer.
    """

    def __init__(self, m: Module, name: str, size: Value) -> None:
        self.m, self.name, self.size = m, name, size
        self.end = Signal(name=f"{name}_end", reset_less=True)

    def go(self, moves: Value, begins: Value, first_size: Value, inner: Value | int = 1) -> None:
        """State that the next cycle sees, if the nest ``moves``.

        If it ``begins``, the first iteration of a loop of ``first_size``, which is ``size`` from
        then on; else the next iteration if ``inner``, all loops within it being at their end; after
        the last comes the first again. ``moves`` may be late: nothing else here waits for it.
        """
        again = begins | self.end
        is_one = Mux(begins, first_size == 1, self.size == 1)
        with self.m.If(moves & (begins | inner)):
            before_last = self._count(again, Mux(begins, first_size, self.size))
            self.m.d.sync += self.end.eq(Mux(again, is_one, before_last))

    def _count(self, again: Value, size: Value) -> Value:
        """Counts this iteration; returns whether the next is the last, if it isn't the first."""
        self.due = due = Signal(len(self.size), name=f"{self.name}_due", reset_less=True)
        self.m.d.sync += due.eq(Mux(again, 2, due + 1))
        return due == self.size


class Countdown(Loop):
    """A loop that tells how many iterations are ``left``, this one among them.

    What is kept is the complement, which counts up: on the way down a carry chain has an inverter
    before each of its bits.
    """

    def __init__(self, m: Module, name: str, size: Value) -> None:
        super().__init__(m, name, size)
        self._kept = Signal(len(size), name=f"{name}_kept", reset_less=True)
        self.left = ~self._kept

    @property
    def left_after(self) -> Value:
        """``left - 1``."""
        return ~(self._kept + 1)[: len(self._kept)]

    def _count(self, again: Value, size: Value) -> Value:
        self.m.d.sync += self._kept.eq(Mux(again, ~size, self._kept + 1))
        return self.left == 2


def inner_ends(loops: Sequence[Loop]) -> list[Value]:
    """For each level of a nest, innermost first, whether all levels within it are at their end."""
    return [Cat(*(loop.end for loop in loops[:level]), 1).all() for level in range(len(loops))]


@dataclass(frozen=True)
class Nest:
    """Three loops, innermost first: where each of them stands, and how far its steps go."""

    loops: Sequence[Loop]
    places: Sequence[Signal]
    steps: Sequence[Value]

    def following(self) -> Value:
        """Next place: a step of the first loop that isn't at its end, from where that one stands.
        Multiplexers select place and step first, so one adder serves all loops.
        """
        x, y, _ = self.loops
        at, step = (Mux(x.end, Mux(y.end, of[2], of[1]), of[0]) for of in (self.places, self.steps))
        return add_sticky(at, step)

    def advance(
        self,
        m: Module,
        moves: Value,
        begins: Value,
        first: tuple[Value, Sequence[Value]],
        goes: Value | int = 1,
    ) -> Value:
        """Keeps the loops and their places; returns the next place.

        ``first`` is the place where the nest begins, and its sizes. It goes on if ``goes``: by the
        step of the innermost loop that isn't at its end, from where that one stood.
        """
        place, sizes = first
        following = self.following()
        levels = zip(self.loops, self.places, inner_ends(self.loops), sizes, strict=True)
        for loop, at, inner, size in levels:
            loop.go(moves, begins, size, goes & inner)
            with m.If(moves & (begins | (goes & inner))):
                m.d.sync += at.eq(Mux(begins, place, following))
        return following
