"""Features of the lowered loops of a schedule for a processor: what the learned model sees.

After Ansor (OSDI'20, appendix B). Of the function, over all its stores and instructions: arithmetic
and elements moved, those of them in vectors, and steps of loops. Of the busiest one, called
``main``: its operations, lanes and copies, and the steps that threads share; the bytes that pass
between the caches, where every loop whose data fit in a cache finds them there the next time; the
bytes touched between two uses of the same element, the fewest and the most of its buffers.
Everything is a logarithm, since effects multiply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2, prod

import numpy as np

from vdla.compiler.search.points import Floats
from vdla.compiler.tir.ir import (
    Alloc,
    Binary,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    Load,
    PrimFunc,
    Select,
    Stmt,
    Store,
    Var,
)
from vdla.compiler.tir.lower import flatten_blocks
from vdla.compiler.tir.visitor import expr_vars, stmt_children, walk, walk_expr

CACHES = {"l1": 32 << 10, "l2": 1 << 20}  # bytes, of a usual core


@dataclass(frozen=True)
class Access:
    """A buffer that a statement reads or writes: by which loops its place moves, and how many
    elements one step takes."""

    buffer: Buffer
    moves: frozenset[Var]
    elements: int

    def touched(self, loops: Sequence[For]) -> int:
        """Bytes touched by some loops that are around the statement."""
        steps = prod(loop.extent for loop in loops if loop.var in self.moves)
        item = np.dtype(self.buffer.dtype).itemsize
        return item * min(self.buffer.size, steps * self.elements)


@dataclass(frozen=True)
class Work:
    """A store or an instruction in its loops, outermost first; ``ops`` are those of one step."""

    loops: tuple[For, ...]
    ops: int
    width: int
    accesses: tuple[Access, ...]

    @property
    def steps(self) -> int:
        """Number of times that it runs."""
        return prod(loop.extent for loop in self.loops)

    def extent(self, kind: str) -> int:
        """Steps of its loops of one kind."""
        return prod(loop.extent for loop in self.loops if loop.kind == kind)

    @property
    def lanes(self) -> int:
        """Elements that are computed at once."""
        return self.width * self.extent("vectorized")

    def traffic(self, cache: int) -> int:
        """Bytes that come from beyond a cache of some bytes."""
        for depth in range(len(self.loops) + 1):
            inside = self.loops[depth:]
            touched = sum(access.touched(inside) for access in self.accesses)
            if touched <= cache or depth == len(self.loops):
                return touched * prod(loop.extent for loop in self.loops[:depth])
        return 0

    def distances(self) -> list[int]:
        """The bytes touched between two uses of an element, for each buffer that has such."""
        touched = []
        for access in self.accesses:
            again = [n for n, loop in enumerate(self.loops) if loop.var not in access.moves]
            if again:
                inside = self.loops[again[-1] + 1 :]
                touched.append(sum(other.touched(inside) for other in self.accesses))
        return touched


def features(func: PrimFunc) -> dict[str, float]:
    """The features of a function as it would be compiled, by name."""
    work = list(_work(flatten_blocks(func).body, ()))
    main = max(work, key=lambda each: each.steps * each.ops * each.width)
    distances = main.distances() or [0]
    values = {
        "ops": sum(w.steps * w.ops * w.width for w in work),
        "ops.lanes": sum(w.steps * w.ops * w.width // w.lanes for w in work),
        "accesses": sum(w.steps * len(w.accesses) for w in work),
        "statements": len(work),
        "scratch": sum(s.buffer.span for s in walk(func.body) if isinstance(s, Alloc)),
        "copies": sum(w.extent("unrolled") for w in work),
        "turns": sum(w.steps // (w.extent("unrolled") * w.extent("vectorized")) for w in work),
        "main.ops": main.ops,
        "main.lanes": main.lanes,
        "main.copies": main.extent("unrolled"),
        "main.parts": main.extent("parallel"),
        "main.inner": main.loops[-1].extent if main.loops else 1,
        "main.reads": _reads(main),
        "main.reuse.least": min(distances),
        "main.reuse.most": max(distances),
        "main.bytes": sum(access.touched(main.loops) for access in main.accesses),
    }
    for name, size in CACHES.items():
        values[f"{name}.traffic"] = sum(w.traffic(size) for w in work)
        values[f"main.{name}.traffic"] = main.traffic(size)
    return {name: log2(1 + value) for name, value in values.items()}


NAMES = (
    "ops", "ops.lanes", "accesses", "statements", "scratch", "copies", "turns", "main.ops",
    "main.lanes", "main.copies", "main.parts", "main.inner", "main.reads", "main.reuse.least",
    "main.reuse.most", "main.bytes", "l1.traffic", "main.l1.traffic", "l2.traffic",
    "main.l2.traffic",
)  # fmt: skip


def row(func: PrimFunc) -> Floats:
    """The features in the order of ``NAMES``."""
    values = features(func)
    return np.array([values[name] for name in NAMES])


def _reads(work: Work) -> int:
    """Vectors and elements that the copies of a statement read: what needs registers."""
    copied = [loop for loop in work.loops if loop.kind == "unrolled"]
    return sum(
        prod(loop.extent for loop in copied if loop.var in access.moves) for access in work.accesses
    )


def _work(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[Work]:
    """The stores and instructions under a statement."""
    match stmt:
        case For():
            loops = (*loops, stmt)
        case Store(buffer, indices, value):
            exprs = list(walk_expr(value))
            reads = [_access(e.buffer, e.indices) for e in exprs if isinstance(e, Load)]
            ops = sum(isinstance(e, Binary | Call | Select) for e in exprs)
            yield Work(loops, max(ops, 1), 1, (_access(buffer, indices), *reads))
        case Evaluate(call):
            accesses = tuple(
                _access(ref.buffer, ref.indices, operand.size)
                for ref, operand in zip(call.operands, call.intrin.operands, strict=True)
            )
            steps = prod(n for _, n, kind in call.intrin.axes if kind == "reduce")
            yield Work(loops, 2 * steps, call.intrin.output.size, accesses)
    for child in stmt_children(stmt):
        yield from _work(child, loops)


def _access(buffer: Buffer, indices: Sequence[Expr], elements: int = 1) -> Access:
    moves = frozenset(var for index in indices for var in expr_vars(index))
    return Access(buffer, moves, elements)
