"""From blocks to plain loops: predicates become If, inits become statements of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vdla.compiler.tir.arith import Ranges, simplify
from vdla.compiler.tir.ir import (
    FALSE,
    TRUE,
    ZERO,
    Alloc,
    Binary,
    Block,
    Buffer,
    Evaluate,
    Expr,
    For,
    If,
    PrimFunc,
    Seq,
    Stmt,
    Var,
    all_of,
    seq,
)
from vdla.compiler.tir.visitor import (
    blocks,
    expr_vars,
    map_stmt,
    stmt_children,
    stmt_loads,
    stores,
    substitute,
    substitute_expr,
    walk,
)


def flatten_blocks(func: PrimFunc) -> PrimFunc:
    """``func`` without Block nodes, in loop variables only, simplified.

    Before: ``for y: for k: block(vy = y, vk = k) init: C[vy] = 0; C[vy] = C[vy] + A[vy, vk]``.
    After:  ``for y: C[y] = 0; for k: C[y] = C[y] + A[y, k]``.
    """
    return replace(func, body=simplify_stmt(_Flattener(func.body).visit(func.body)))


@dataclass(frozen=True, slots=True, eq=False)
class _Hoisted:
    """An init that runs once before the reduction's outermost loop, on new loops of its own.

    ``path`` are the loops from that one inwards, ``reduce_vars`` those of them that the init leaves
    out.
    """

    block: Block
    init: Stmt
    path: tuple[For, ...]
    reduce_vars: frozenset[Var]


class _Flattener:
    """Replaces blocks by their bodies; inits move before their reductions where that is sound.

    Elsewhere an init stays at its place, under the condition that this is the reduction's first
    step.
    """

    def __init__(self, body: Stmt) -> None:
        self.before: dict[For, list[_Hoisted]] = {}
        self.hoisted: set[Block] = set()
        self.find(body, ())

    def find(self, stmt: Stmt, loops: tuple[For, ...]) -> None:
        """Finds the reductions whose inits can move."""
        if isinstance(stmt, For):
            loops = (*loops, stmt)
        if isinstance(stmt, Block):
            if stmt.init is not None:
                self.place(stmt, stmt.init, loops)
            return
        for child in stmt_children(stmt):
            self.find(child, loops)

    def place(self, block: Block, init: Stmt, loops: tuple[For, ...]) -> None:
        """Hoists the ``init`` of ``block`` out of its reduction, where that is sound."""
        reduced = {v for i in block.reduce_iters for v in expr_vars(i.binding)}
        inside = [n for n, loop in enumerate(loops) if loop.var in reduced]
        if not inside:
            return
        path = loops[inside[0] :]
        spatial = {v for i in block.iters if i.kind == "spatial" for v in expr_vars(i.binding)}
        mixed = spatial & reduced & {loop.var for loop in path}
        if mixed or _reads_what_it_makes(init, path[0]):
            return
        self.hoisted.add(block)
        names = frozenset(loop.var for loop in path if loop.var in reduced)
        self.before.setdefault(path[0], []).append(_Hoisted(block, init, path, names))

    def visit(self, stmt: Stmt) -> Stmt:
        """A statement without blocks, with the inits that move before it."""
        if isinstance(stmt, Block):
            return self.block(stmt)
        new = map_stmt(stmt, self.visit)
        if isinstance(stmt, For) and stmt in self.before:
            return seq(*(_hoist(h, self.visit(h.init)) for h in self.before[stmt]), new)
        return new

    def block(self, block: Block) -> Stmt:
        """A block's body in loop variables, under its predicate."""
        body = self.visit(block.body)
        if block.init is not None and block not in self.hoisted:
            first = all_of(*(Binary("eq", i.var, ZERO) for i in block.reduce_iters))
            body = seq(_guard(first, self.visit(block.init)), body)
        return _guard(block.predicate, substitute(body, block.bindings))


def _reads_what_it_makes(init: Stmt, loop: For) -> bool:
    """Whether an init needs something computed inside ``loop``."""
    read = {x.buffer for x in stmt_loads(init)}
    written: set[Buffer] = {s.buffer for s in walk(loop) if isinstance(s, Alloc)}
    for inner in blocks(loop):
        written.update(region.buffer for region in inner.writes)
    written.update(s.buffer for s in stores(loop))
    return bool(read & written)


def _hoist(h: _Hoisted, init: Stmt) -> Stmt:
    """An init, without blocks, with the loops that it needs around it."""
    start: dict[Var, Expr] = dict.fromkeys(h.reduce_vars, ZERO)
    bindings = {v: substitute_expr(e, start) for v, e in h.block.bindings.items()}
    predicate = substitute_expr(h.block.predicate, start)
    body = _guard(predicate, substitute(substitute(init, bindings), start))
    fresh: dict[Var, Expr] = {}
    for loop in reversed(h.path):
        if loop.var not in h.reduce_vars:
            var = Var(loop.var.name)
            fresh[loop.var] = var
            body = For(var, loop.extent, loop.kind, body, loop.thread_tag)
    return substitute(body, fresh)


def _guard(cond: Expr, body: Stmt) -> Stmt:
    """A statement under a condition."""
    return body if cond == TRUE else If(cond, body)


def simplify_stmt(stmt: Stmt) -> Stmt:
    """Simplified expressions, decided conditions taken, plain loops of one step removed.

    Precondition: ``stmt`` contains no Block.
    """
    once: dict[Var, Expr] = {}
    shorter = _without_plain_steps(stmt, once)
    return _simplify(substitute(shorter, once), {})


def _without_plain_steps(stmt: Stmt, once: dict[Var, Expr]) -> Stmt:
    """A statement without plain loops of one step; ``once`` gets their variables, which are 0."""
    match stmt:
        case For(var, 1, "serial", body) if not stmt.annotations:
            once[var] = ZERO
            return _without_plain_steps(body, once)
    return map_stmt(stmt, lambda s: _without_plain_steps(s, once))


def _simplify(stmt: Stmt, known: Ranges) -> Stmt:
    """A simplified statement, in loops with the ranges ``known``."""
    match stmt:
        case For(var, extent, _, _):
            known = {**known, var: (0, extent - 1)}
        case If(cond, then, orelse):
            return _simplify_if(simplify(cond, known), then, orelse, known)
    new = map_stmt(stmt, lambda s: _simplify(s, known), lambda e: simplify(e, known))
    return _drop_empty(new) if isinstance(new, Seq) else new


def _simplify_if(cond: Expr, then: Stmt, orelse: Stmt | None, known: Ranges) -> Stmt:
    """A condition that is simplified: one side where it is decided, else both."""
    if cond == TRUE:
        return _simplify(then, known)
    if cond == FALSE:
        return Seq(()) if orelse is None else _simplify(orelse, known)
    other = None if orelse is None else _simplify(orelse, known)
    return If(cond, _simplify(then, known), other)


def _drop_empty(stmt: Seq) -> Stmt:
    """A sequence without statements that do nothing."""
    return seq(*(s for s in stmt.stmts if not (isinstance(s, Seq) and not s.stmts)))


def has_intrinsics(stmt: Stmt) -> bool:
    """Whether a statement has an intrinsic call in it."""
    return any(isinstance(s, Evaluate) for s in walk(stmt))


def written_buffers(stmt: Stmt) -> set[Buffer]:
    """The buffers that ``stmt`` stores into, intrinsic calls included."""
    result = {s.buffer for s in stores(stmt)}
    for inner in walk(stmt):
        if isinstance(inner, Evaluate):
            result.add(inner.call.operands[0].buffer)
    return result
