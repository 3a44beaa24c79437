"""Who touched which element of a buffer last, and what is wrong with that; ``group`` opens with
the rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Coordinates = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a kernel; as a string, one line.

    Attributes:
        kind: ``"race"``, ``"divergent barrier"`` or ``"uninitialized read"``.
        buffer: the buffer's name; empty for a barrier.
        element: the element's indices; none for a barrier.
        statements: the first line of what each side does, the earlier one first; one statement
            where there is one side. For a barrier, the condition that keeps threads from it.
        sides: the coordinates of the thread, or group, that does each. For a barrier, those of one
            that reaches it, and of one that doesn't.
        writes: whether each side writes the element; empty for a barrier.
        level: whether the sides are of a ``"thread"`` or a ``"group"``.
    """

    kind: str
    buffer: str
    element: tuple[int, ...]
    statements: tuple[str, ...]
    sides: tuple[Coordinates, ...]
    writes: tuple[bool, ...] = ()
    level: str = "thread"

    def __str__(self) -> str:
        names = [f"{self.level} ({', '.join(map(str, side))})" for side in self.sides]
        if not self.buffer:
            here, absent = names
            (text,) = self.statements
            return f'{self.kind}: {here} reaches it and {absent} doesn\'t, parted by "{text}"'
        does = " and ".join(
            f'{name} {"writes" if wrote else "reads"} it in "{text}"'
            for name, wrote, text in zip(names, self.writes, self.statements, strict=True)
        )
        place = f"{self.buffer}[{', '.join(map(str, self.element))}]"
        return f"{self.kind}: {place}: {does}, {self._reason()}"

    def _reason(self) -> str:
        """Reason for which it is wrong."""
        if self.kind == "uninitialized read":
            return "with nothing written to it before"
        return "with no barrier between" if self.level == "thread" else "in one kernel"


class _Accesses:
    """For each element of a buffer who accessed it, in which epoch, and in which statement."""

    def __init__(self, size: int) -> None:
        self.who, self.epoch = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
        self.statement = np.zeros(size, np.int64)

    def set(self, at: Array, who: Array, epoch: int, statement: Array | int) -> None:
        """Remembers accesses; the last one to an element stays."""
        self.who[at], self.epoch[at], self.statement[at] = who, epoch, statement

    def by_others(self, at: Array, who: Array, epoch: int) -> Array:
        """Which of the elements ``at`` somebody else than ``who`` accessed in an epoch."""
        result: Array = (self.epoch[at] == epoch) & (self.who[at] != who)
        return result


class Trail:
    """Who last wrote each element of a buffer, and who last read it; ``other`` is someone else who
    read it in the same epoch, if anyone did."""

    def __init__(self, size: int) -> None:
        self.writer, self.reader, self.other = (_Accesses(size) for _ in range(3))

    def clashes(
        self, at: Array, who: Array, epoch: int, writes: bool
    ) -> Iterator[tuple[_Accesses, int]]:
        """Earlier accesses that those ``at`` clash with, one of each earlier statement, and where
        in ``at``."""
        readers = (self.reader, self.other) if writes else ()
        for earlier in (self.writer, *readers):
            wrong = np.flatnonzero(earlier.by_others(at, who, epoch))
            if wrong.size:
                _, first = np.unique(earlier.statement[at[wrong]], return_index=True)
                yield from ((earlier, int(place)) for place in wrong[np.sort(first)])

    def note(self, at: Array, who: Array, epoch: int, statement: int, writes: bool) -> None:
        """Remembers accesses."""
        if writes:
            self.writer.set(at, who, epoch, statement)
            return
        before, since = self.reader.who[at], self.reader.statement[at]
        same = self.reader.epoch[at] == epoch
        self.reader.set(at, who, epoch, statement)
        last = self.reader.who[at]
        old = same & (before != last)
        self.other.set(at[old], before[old], epoch, since[old])
        beside = who != last
        self.other.set(at[beside], who[beside], epoch, statement)
