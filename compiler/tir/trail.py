"""Who touched which element of a buffer last, and what is wrong with that; ``group`` opens with
the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Coordinates = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a kernel.

    Attributes:
        kind: ``"race"``, ``"divergent barrier"`` or ``"uninitialized read"``.
        buffer: the buffer's name; empty for a barrier.
        element: its element's number.
        statements: what both sides do, the earlier first; one statement where there is one side.
        sides: which thread, or which group, does each.
        level: ``"thread"`` or ``"group"``.
    """

    kind: str
    buffer: str
    element: int
    statements: tuple[str, ...]
    sides: tuple[Coordinates, ...]
    level: str = "thread"

    def __str__(self) -> str:
        where = f" of {self.buffer}[{self.element}]" if self.buffer else ""
        sides = zip(self.sides, self.statements, strict=True)
        does = " and ".join(f"{self.level} {side} in `{text}`" for side, text in sides)
        return f"{self.kind}{where}: {does}"


@dataclass
class Trail:
    """Who last wrote and read each element of a buffer, by number, and in which epoch; ``several``
    says that more than one read it then. Statements are known by their numbers."""

    size: int

    def __post_init__(self) -> None:
        self.writer, self.reader = (np.full(self.size, -1, np.int64) for _ in range(2))
        self.written, self.read = (np.full(self.size, -1, np.int64) for _ in range(2))
        self.writing, self.reading = (np.zeros(self.size, np.int64) for _ in range(2))
        self.several = np.zeros(self.size, bool)

    def clashes(self, at: Array, who: Array, epoch: int, writes: bool) -> tuple[Array, Array]:
        """Which accesses, by their places in ``at``, clash with an earlier write, and which with an
        earlier read."""
        after_write = (self.written[at] == epoch) & (self.writer[at] != who)
        if not writes:
            return after_write, np.zeros(at.shape, bool)
        others = (self.reader[at] != who) | self.several[at]
        return after_write, (self.read[at] == epoch) & others

    def note(self, at: Array, who: Array, epoch: int, statement: int, writes: bool) -> None:
        """Remembers accesses."""
        if writes:
            self.writer[at], self.written[at], self.writing[at] = who, epoch, statement
            return
        again = (self.read[at] == epoch) & (self.reader[at] != who)
        self.several[at] = np.where(self.read[at] == epoch, self.several[at] | again, False)
        self.reader[at], self.read[at], self.reading[at] = who, epoch, statement
        self.several[at] |= self.reader[at] != who  # two of them read it just now
