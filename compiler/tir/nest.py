"""Nests of loops over groups and threads: the kernels of a function, and who runs in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from vdla.compiler.tir.ir import Alloc, Buffer, For, Stmt
from vdla.compiler.tir.trail import Array, Coordinates


@dataclass
class Group:
    """The group that runs: its number, None outside of kernels, its buffers, and how many threads
    each of its loops has.

    ``owners`` says which one each thread has of the buffers that there are several of.
    """

    number: int | None
    buffers: set[Buffer] = field(default_factory=set)
    sizes: Coordinates = ()
    owners: dict[Buffer, Array] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of threads."""
        return prod(self.sizes)

    def thread(self, number: int) -> Coordinates:
        """A thread's coordinates."""
        return tuple(int(n) for n in np.unravel_index(number, self.sizes or (1,)))

    def owns(self, buffer: Buffer) -> bool:
        """Whether each thread has a buffer for itself."""
        return buffer in self.owners and int(self.owners[buffer][-1]) == self.count - 1


@dataclass
class Nest:
    """Loops over threads directly inside one another, what is inside them, and the buffers in
    between, each with how many of the loops are around it."""

    loops: list[For]
    buffers: list[tuple[Buffer, int]]
    body: Stmt


def nest_of(stmt: Stmt, tags: Sequence[str]) -> Nest:
    """The nest of loops of different tags that a statement begins with."""
    nest = Nest([], [], stmt)
    while True:
        match nest.body:
            case For(kind="thread", thread_tag=tag) as loop if tag in tags:
                if tag in [outer.thread_tag for outer in nest.loops]:
                    return nest
                nest.loops.append(loop)
                nest.body = loop.body
            case Alloc(buffer, body):
                nest.buffers.append((buffer, len(nest.loops)))
                nest.body = body
            case _:
                return nest


def is_over(stmt: Stmt, tags: Sequence[str]) -> bool:
    """Whether a statement is a loop over groups, or over threads."""
    return isinstance(stmt, For) and stmt.kind == "thread" and stmt.thread_tag in tags
