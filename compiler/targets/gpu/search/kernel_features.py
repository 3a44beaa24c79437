"""Features of a function's kernels: what the learned model sees.

Of all kernels: how many there are, groups, threads, arithmetic, and elements moved from and to
global memory, those apart whose neighbours go to neighbouring threads. Of the one with the most
arithmetic, called ``main``: the threads of a group, the bytes that it shares, the elements that a
thread has of its own, copies of its statements, steps of one thread, and arithmetic for each
element that comes from global, and from shared memory. Everything is a logarithm, since effects
multiply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log2, prod

import numpy as np

from vdla.compiler.search.points import Floats
from vdla.compiler.targets.gpu.description import extents, kernels, shared_bytes
from vdla.compiler.tir.arith import linear
from vdla.compiler.tir.injective import offset
from vdla.compiler.tir.ir import (
    GLOBAL,
    LOCAL,
    SHARED,
    Alloc,
    Binary,
    Buffer,
    Call,
    Expr,
    For,
    Load,
    PrimFunc,
    Select,
    Stmt,
    Store,
)
from vdla.compiler.tir.visitor import stmt_children, walk, walk_expr

NEIGHBOURS = "threadIdx.x"  # threads that run side by side


@dataclass(frozen=True)
class Work:
    """A store in its loops, outermost first: its operations, and what it reads and writes."""

    loops: tuple[For, ...]
    ops: int
    accesses: tuple[tuple[Buffer, Expr], ...]

    def steps(self, *kinds: str) -> int:
        """Steps of its loops; of those of some kinds, where they are given."""
        return prod(loop.extent for loop in self.loops if not kinds or loop.kind in kinds)

    def moved(self, scope: str) -> int:
        """Elements of a scope that it reads and writes, all steps together."""
        return self.steps() * sum(buffer.scope == scope for buffer, _ in self.accesses)

    def side_by_side(self) -> int:
        """Elements of global memory whose neighbours go to neighbouring threads."""
        own = [place for buffer, place in self.accesses if buffer.scope == GLOBAL]
        threads = [loop.var for loop in self.loops if loop.thread_tag == NEIGHBOURS]
        ranges = {loop.var: (0, loop.extent - 1) for loop in self.loops}
        count = 0
        for place in own:
            terms = linear(place, ranges).terms
            count += not threads or terms.get(threads[0], 0) in (0, 1)
        return self.steps() * count


def features(func: PrimFunc) -> Mapping[str, float]:
    """The features of a function by name.

    Args:
        func: kernels, with or without barriers.
    """
    nests = list(kernels(func.body))
    by_nest = [list(_work(nest, ())) for nest in nests]
    work = [each for own in by_nest for each in own]
    sizes = [extents(nest) for nest in nests]
    busiest = max(range(len(nests)), key=lambda n: sum(w.steps() * w.ops for w in by_nest[n]))
    nest, main = nests[busiest], max(by_nest[busiest], key=lambda w: w.steps() * w.ops)
    ops = sum(w.steps() * w.ops for w in by_nest[busiest])
    grid, group = sizes[busiest]
    values = {
        "kernels": len(nests),
        "groups": sum(prod(grid) for grid, _ in sizes),
        "threads": sum(prod(grid) * prod(group) for grid, group in sizes),
        "ops": sum(w.steps() * w.ops for w in work),
        "global": sum(w.moved(GLOBAL) for w in work),
        "global.side": sum(w.side_by_side() for w in work),
        "main.groups": prod(grid),
        "main.group": prod(group),
        "main.x": group[0],
        "main.shared": shared_bytes(nest),
        "main.own": own_elements(nest),
        "main.copies": main.steps("unrolled"),
        "main.turns": main.steps("serial"),
        "main.ops.global": ops // (1 + sum(w.moved(GLOBAL) for w in by_nest[busiest])),
        "main.ops.shared": ops // (1 + sum(w.moved(SHARED) for w in by_nest[busiest])),
    }
    return {name: log2(1 + value) for name, value in values.items()}


NAMES = (
    "kernels", "groups", "threads", "ops", "global", "global.side", "main.groups", "main.group",
    "main.x", "main.shared", "main.own", "main.copies", "main.turns", "main.ops.global",
    "main.ops.shared",
)  # fmt: skip


def row(func: PrimFunc) -> Floats:
    """The features in the order of ``NAMES``."""
    values = features(func)
    return np.array([values[name] for name in NAMES])


def own_elements(kernel: Stmt) -> int:
    """Elements that each thread of a kernel has of its own."""
    buffers = (s.buffer for s in walk(kernel) if isinstance(s, Alloc))
    return sum(buffer.span for buffer in buffers if buffer.scope == LOCAL)


def _work(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[Work]:
    """The stores under a statement."""
    match stmt:
        case For():
            loops = (*loops, stmt)
        case Store(buffer, indices, value):
            exprs = list(walk_expr(value))
            reads = [
                (e.buffer, offset(e.buffer.shape, e.indices)) for e in exprs if isinstance(e, Load)
            ]
            ops = sum(isinstance(e, Binary | Call | Select) for e in exprs)
            yield Work(loops, max(ops, 1), ((buffer, offset(buffer.shape, indices)), *reads))
    for child in stmt_children(stmt):
        yield from _work(child, loops)
