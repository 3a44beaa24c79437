"""Shared memory of several copies: the next step's is filled before this step's is used.

before                                     after
    for k in 4:                                alloc S: float32[2, 16] @"shared"
        alloc S: float32[16] @"shared" x2      S[0, …] = A[0, …]
        S[…] = A[k, …]                         for k in 4:
        use S                                      if k + 1 < 4: S[(k + 1) % 2, …] = A[k + 1, …]
                                                   use S[k % 2]

What is loaded then arrives while the threads compute, and one barrier per step is enough. It is
done where a step begins with what fills these buffers; elsewhere a buffer has one copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from vdla.compiler.schedule.tree import peel_allocs, wrap_allocs
from vdla.compiler.tir.ir import (
    SHARED,
    ZERO,
    Binary,
    Buffer,
    Const,
    Expr,
    For,
    If,
    PrimFunc,
    Stmt,
    seq,
    sequence,
)
from vdla.compiler.tir.lower import written_buffers
from vdla.compiler.tir.visitor import (
    map_stmt,
    replace_buffer,
    stmt_loads,
    substitute,
    with_own_loops,
)


def fill_ahead(func: PrimFunc) -> PrimFunc:
    """The function with every double buffer filled one step ahead.

    Args:
        func: without blocks, its threads not dealt yet.
    """
    return replace(func, body=_visit(func.body))


def _visit(stmt: Stmt) -> Stmt:
    new = map_stmt(stmt, _visit)
    return _ahead(new) if isinstance(new, For) and new.kind in ("serial", "unrolled") else new


def _ahead(loop: For) -> Stmt:
    """A loop whose steps fill the next one's buffers; the loop itself where it has none."""
    allocs, inner = peel_allocs(loop.body)
    buffers = [b for b in allocs if b.copies > 1 and b.scope == SHARED]
    if not buffers:
        return loop
    parts = sequence(inner)
    count = _fills(parts, buffers)
    if not count or loop.extent == 1:
        single = loop.body
        for buffer in buffers:
            single = replace_buffer(single, buffer, replace(buffer, copies=1))
        return replace(loop, body=single)
    deep = [replace(b, shape=(b.copies, *b.shape), copies=1, alignments=_moved(b)) for b in buffers]

    def at(stmt: Stmt, step: Expr) -> Stmt:
        """A statement of a step, in the copies that are that step's."""
        for old, new in zip(buffers, deep, strict=True):
            stmt = replace_buffer(stmt, old, new, partial(_behind, loop.var % old.copies))
        return substitute(stmt, {loop.var: step})

    fill, use = seq(*parts[:count]), seq(*parts[count:])
    later = loop.var + 1
    following = If(
        Binary("lt", later, Const(loop.extent, "int32")), with_own_loops(at(fill, later))
    )
    others = [b for b in allocs if b not in buffers]
    body = wrap_allocs(others, seq(following, at(use, loop.var)))
    return wrap_allocs(deep, seq(at(fill, ZERO), replace(loop, body=body)))


def _fills(parts: Sequence[Stmt], buffers: Sequence[Buffer]) -> int:
    """Number of statements at the beginning of a step that fill the buffers, and do
    nothing else.
    """
    count = 0
    for part in parts:
        read = {load.buffer for load in stmt_loads(part)}
        if not written_buffers(part) <= set(buffers) or read & set(buffers):
            break
        count += 1
    return count


def _behind(copy: Expr, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """An element's indices in one of several copies."""
    return (copy, *indices)


def _moved(buffer: Buffer) -> tuple[tuple[int, int, int], ...]:
    """A buffer's alignments behind one more dimension."""
    return tuple((dim + 1, factor, offset) for dim, factor, offset in buffer.alignments)
