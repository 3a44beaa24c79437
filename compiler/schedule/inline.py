"""compute_inline: a stage's expression in place of reading its buffer."""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.tree import (
    children,
    contains,
    get_block,
    home,
    map_blocks,
    peel_allocs,
    refresh_regions,
    with_body,
    wrap_allocs,
)
from vdla.compiler.tir.ir import (
    TRUE,
    Block,
    Buffer,
    Expr,
    For,
    Load,
    PrimFunc,
    Stmt,
    Store,
    Var,
    seq,
)
from vdla.compiler.tir.lower import has_intrinsics
from vdla.compiler.tir.visitor import expr_vars, rewrite, rewrite_expr, substitute_expr


def compute_inline(func: PrimFunc, name: str) -> PrimFunc:
    """Puts the stage's expression where its readers read its buffer; the stage is gone.

    Before: ``for i: B[i] = A[i] + 1``, ``for i: C[i] = B[i] * 2``.
    After:  ``for i: C[i] = (A[i] + 1) * 2``.

    Raises:
        ScheduleError: the stage isn't an elementwise one that stands by itself, or a reader is
            tensorized.
    """
    block = get_block(func, name)
    store = _inlinable(func, block)
    buffer = store.buffer
    place = home(func, buffer)
    allocs, inner = peel_allocs(place)
    parts = children(inner)
    own = next((p for p in parts if contains(p, lambda s: s is block)), None)
    if own is None or not _is_plain_nest(own):
        raise ScheduleError(
            f"compute_inline {name}: expected a stage of its own, found it "
            f"attached, or with other stages attached to it"
        )
    formals = [v for v in store.indices if isinstance(v, Var)]

    def inlined(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer is buffer:
            return substitute_expr(store.value, dict(zip(formals, e.indices, strict=True)))
        return e

    def reader(b: Block) -> Block:
        if not any(r.buffer is buffer for r in b.reads):
            return b
        body = rewrite(b.body, fe=lambda e: rewrite_expr(e, inlined))
        init = None if b.init is None else rewrite(b.init, fe=lambda e: rewrite_expr(e, inlined))
        return refresh_regions(replace(b, body=body, init=init))

    rest = seq(*(map_blocks(p, reader) for p in parts if p is not own))
    return with_body(func, place, wrap_allocs([b for b in allocs if b is not buffer], rest))


def _inlinable(func: PrimFunc, block: Block) -> Store:
    """The one store of an elementwise stage."""
    where = f"compute_inline {block.name}"
    store = block.body
    if block.init is not None or block.reduce_iters:
        raise ScheduleError(f"{where}: expected an elementwise stage, found a reduction")
    if not isinstance(store, Store):
        raise ScheduleError(f"{where}: expected a plain store, found a tensorized stage")
    if store.buffer in func.params:
        raise ScheduleError(f"{where}: expected an intermediate stage, found an output")
    formals = {i.var for i in block.iters}
    if not set(store.indices) <= set(formals) or not expr_vars(store.value) <= formals:
        raise ScheduleError(f"{where}: expected a stage of its own, found it attached")
    if block.predicate != TRUE:
        raise ScheduleError(
            f"{where}: expected unguarded loops, found a predicate; inline before splitting"
        )
    _check_readers(func, block, store.buffer)
    return store


def _check_readers(func: PrimFunc, block: Block, buffer: Buffer) -> None:
    """Raises where a reader of the buffer is tensorized already."""

    def tensorized(stmt: Stmt) -> bool:
        return (
            isinstance(stmt, Block)
            and stmt is not block
            and has_intrinsics(stmt.body)
            and any(r.buffer is buffer for r in stmt.reads)
        )

    if contains(func.body, tensorized):
        raise ScheduleError(
            f"compute_inline {block.name}: expected plain readers, found a tensorized one"
        )


def _is_plain_nest(stmt: Stmt) -> bool:
    """Whether a statement is loops around one block."""
    while isinstance(stmt, For):
        stmt = stmt.body
    return isinstance(stmt, Block)
