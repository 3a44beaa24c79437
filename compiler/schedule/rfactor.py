"""rfactor: a reduction in parts that are computed apart and then combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.tree import (
    block_path,
    children,
    home,
    loops_of,
    peel_allocs,
    refresh_regions,
    terms,
    with_body,
    wrap_allocs,
)
from vdla.compiler.te.func import update
from vdla.compiler.te.tensor import ComputeOp, IterVar, Reduce, Tensor, outputs_of
from vdla.compiler.tir.arith import simplify
from vdla.compiler.tir.ir import (
    TRUE,
    Block,
    BlockIter,
    Buffer,
    Expr,
    For,
    If,
    Load,
    PrimFunc,
    Select,
    Stmt,
    Store,
    Var,
    all_of,
    seq,
)
from vdla.compiler.tir.lower import has_intrinsics
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.visitor import (
    blocks,
    expr_vars,
    replace_buffer,
    substitute,
    substitute_expr,
)


@dataclass(frozen=True, slots=True, eq=False)
class Factored:
    """Result of ``rfactor``.

    Attributes:
        func: the function with both stages.
        parts: the operation that computes the partial results.
        whole: the operation that combines them.
    """

    func: PrimFunc
    parts: ComputeOp
    whole: ComputeOp


def rfactor(
    func: PrimFunc,
    stage: str,
    op: ComputeOp,
    targets: Sequence[Buffer],
    var: Var,
    at: int,
    name: str,
) -> Factored:
    """The steps of a reduction's loop ``var`` as partial results of their own, in a new stage.

    Before: ``for y: for ko: for ki in 4: C[y] = C[y] + A[y, ko*4 + ki]``.
    After rfactor(C, ki)::

        for ki in 4: for y: for ko: C_rf[ki, y] = C_rf[ki, y] + A[y, ko*4 + ki]
        for y: for ki in 4: C[y] = C[y] + C_rf[ki, y]

    Both are in the loops that te would make.

    Args:
        func: the function.
        stage: the name of the reduction.
        op: its operation.
        targets: its buffers.
        var: the loop.
        at: which dimension of the partial results the loop is.
        name: of the new stage.

    Raises:
        ScheduleError: the stage isn't a reduction that stands by itself, or the loop isn't one of
            its reduction.
    """
    block, place, own = _find_reduction(func, stage, targets[0])
    loops = {loop.var: loop for loop in loops_of(block_path(func, stage))}
    reduced = {v for i in block.reduce_iters for v in expr_vars(i.binding)}
    if var not in reduced:
        names = ", ".join(v.name for v in loops if v in reduced) or "none"
        raise ScheduleError(
            f"rfactor {stage}: expected a loop of the reduction ({names}), found {var.name}"
        )
    if not 0 <= at <= len(op.axis):
        raise ScheduleError(
            f"rfactor {stage}: expected factor_axis in 0..{len(op.axis)}, found {at}"
        )
    kept = tuple(
        IterVar(v.name, "int32", loop.extent, "reduce")
        for v, loop in loops.items()
        if v in reduced and v is not var
    )
    inner = dict(zip((v for v in loops if v in reduced and v is not var), kept, strict=True))
    factor = IterVar(var.name, "int32", loops[var].extent)
    spatial = tuple(IterVar(a.name, "int32", a.extent) for a in op.axis)
    leaf: dict[Var, Expr] = {**inner, var: factor}
    guard = _reduce_guard(stage, block, set(loops) - reduced, leaf)
    parts = _part_op(
        op,
        block,
        name,
        (*spatial[:at], factor, *spatial[at:]),
        kept,
        {**dict(zip(op.axis, spatial, strict=True)), **leaf},
        guard,
    )
    partials = outputs_of(parts, tuple(a.extent for a in parts.axis))
    first = _part_nest(block, parts, targets, partials, at, leaf, guard)
    whole = _whole_op(op, partials, at, IterVar(var.name, "int32", factor.extent, "reduce"))
    rest = _whole_nest(block, stage, whole, targets, partials, at)
    allocs, inside = peel_allocs(place)
    stmts = children(inside)
    n = stmts.index(own)
    stmts[n : n + 1] = [first, rest]
    body = wrap_allocs([*allocs, *partials], seq(*stmts))
    return Factored(with_body(func, place, body), parts, whole)


def _find_reduction(func: PrimFunc, stage: str, target: Buffer) -> tuple[Block, Stmt, Stmt]:
    """(block, where its buffer lives, its nest there) of a reduction that stands by itself."""
    path = block_path(func, stage)
    block = path[-1]
    assert isinstance(block, Block)
    if has_intrinsics(block.body):
        raise ScheduleError(
            f"rfactor {stage}: expected a plain stage, found it tensorized; tensorize after rfactor"
        )
    if block.init is None:
        raise ScheduleError(f"rfactor {stage}: expected a reduction, found none")
    place = home(func, target)
    if loops_of(path[: path.index(place)]):
        raise ScheduleError(
            f"rfactor {stage}: expected a stage of its own, found it attached; "
            f"call it before compute_at"
        )
    own = next(p for p in children(peel_allocs(place)[1]) if p in path)
    others = [b.name for b in blocks(own) if b is not block]
    if others:
        raise ScheduleError(
            f"rfactor {stage}: expected loops of its own alone, found "
            f"{', '.join(others)} attached to them; call it before compute_at"
        )
    return block, place, own


def _reduce_guard(stage: str, block: Block, spatial: set[Var], leaf: Mapping[Var, Expr]) -> Expr:
    """Terms of the block's predicate about the reduction, over the new axes."""
    kept = []
    for term in terms(block.predicate):
        used = expr_vars(term)
        if used & spatial and used & set(leaf):
            raise ScheduleError(
                f"rfactor {stage}: expected conditions on the reduction alone, "
                f"found {show(term)}; call it before split"
            )
        if used & set(leaf):
            kept.append(substitute_expr(term, leaf))
    ranges: dict[Var, tuple[int, int]] = {
        a: (0, a.extent - 1) for a in leaf.values() if isinstance(a, IterVar)
    }
    return simplify(all_of(*kept), ranges)


def _part_op(
    op: ComputeOp,
    block: Block,
    name: str,
    axis: tuple[IterVar, ...],
    kept: tuple[IterVar, ...],
    fresh: Mapping[Var, Expr],
    guard: Expr,
) -> ComputeOp:
    """The recipe of the partial results, which start from the reducer's identity."""
    reduce = op.reduce
    assert reduce is not None
    mapping = dict(fresh)
    for a, i in zip(op.reduce_axis, block.reduce_iters, strict=True):
        mapping[a] = substitute_expr(i.binding, fresh)
    source = tuple(substitute_expr(e, mapping) for e in reduce.source)
    identity = reduce.reducer.identity
    if guard != TRUE:
        source = tuple(Select(guard, e, i) for e, i in zip(source, identity, strict=True))
    body = (Reduce(reduce.reducer, source, kept, identity, n) for n in range(len(source)))
    return ComputeOp(name, axis, tuple(body))


def _part_nest(
    block: Block,
    parts: ComputeOp,
    targets: Sequence[Buffer],
    partials: Sequence[Tensor],
    at: int,
    leaf: Mapping[Var, Expr],
    guard: Expr,
) -> Stmt:
    """The block's own body, as it stands, on the partial results."""
    inner: dict[Var, Expr] = {a: Var(f"v_{a.name}") for a in parts.axes}
    here = parts.axis[at]
    spatial = [a for a in parts.axis if a is not here]
    old = [i for i in block.iters if i.kind == "spatial"]
    mapping = {i.var: inner[a] for i, a in zip(old, spatial, strict=True)}
    for it in block.reduce_iters:
        mapping[it.var] = substitute_expr(substitute_expr(it.binding, leaf), inner)
    body = substitute(block.body, mapping)
    for target, part in zip(targets, partials, strict=True):
        body = replace_buffer(body, target, part, lambda i: (*i[:at], inner[here], *i[at:]))
    if guard != TRUE:
        body = If(substitute_expr(guard, inner), body)
    indices = tuple(inner[a] for a in parts.axis)
    assert parts.reduce is not None
    identity = parts.reduce.reducer.identity
    init = seq(*(Store(p, indices, i) for p, i in zip(partials, identity, strict=True)))
    return _nest_of(parts.name, parts.axes, inner, body, init)


def _whole_op(op: ComputeOp, partials: Sequence[Tensor], at: int, factor: IterVar) -> ComputeOp:
    """The recipe of the result, from the partial ones."""
    reduce = op.reduce
    assert reduce is not None
    source = tuple(t[(*op.axis[:at], factor, *op.axis[at:])] for t in partials)
    body = (Reduce(reduce.reducer, source, (factor,), reduce.init, n) for n in range(len(partials)))
    return ComputeOp(op.name, op.axis, tuple(body), op.outputs)


def _whole_nest(
    block: Block,
    stage: str,
    whole: ComputeOp,
    targets: Sequence[Buffer],
    partials: Sequence[Tensor],
    at: int,
) -> Stmt:
    """The partial results combined, from the block's own init on."""
    assert whole.reduce is not None
    assert block.init is not None
    inner: dict[Var, Expr] = {a: Var(f"v_{a.name}") for a in whole.axes}
    old = [i for i in block.iters if i.kind == "spatial"]
    mapping = {i.var: inner[a] for i, a in zip(old, whole.axis, strict=True)}
    indices = tuple(inner[a] for a in whole.axis)
    factor = inner[whole.reduce_axis[0]]
    partial = [Load(t, (*indices[:at], factor, *indices[at:])) for t in partials]
    values = whole.reduce.reducer.combine([Load(t, indices) for t in targets], partial)
    init = substitute(block.init, mapping)
    return _nest_of(stage, whole.axes, inner, update(targets, indices, values), init)


def _nest_of(
    name: str, axes: Sequence[IterVar], inner: Mapping[Var, Expr], body: Stmt, init: Stmt
) -> Stmt:
    """One loop per axis around a block."""
    iters = []
    for a in axes:
        var = inner[a]
        assert isinstance(var, Var)
        iters.append(BlockIter(var, a.extent, a.kind, a))
    stmt: Stmt = refresh_regions(Block(name, tuple(iters), (), (), body, init))
    for a in reversed(axes):
        stmt = For(a, a.extent, "serial", stmt)
    return stmt
