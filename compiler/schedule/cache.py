"""Copies in other memories: cache_read, cache_write, set_scope; how they lie: storage_align."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.tree import (
    block_path,
    children,
    get_block,
    home,
    insert_before,
    map_blocks,
    peel_allocs,
    with_body,
    wrap_allocs,
)
from vdla.compiler.te.func import compute_nest
from vdla.compiler.te.tensor import ComputeOp, IterVar, Reduce, Tensor, outputs_of
from vdla.compiler.tir.ir import (
    GLOBAL,
    LOCAL,
    SHARED,
    Block,
    Buffer,
    Expr,
    For,
    Load,
    PrimFunc,
    Stmt,
    Var,
    seq,
)
from vdla.compiler.tir.visitor import (
    blocks,
    replace_buffer,
    rewrite,
    substitute,
    substitute_expr,
    walk,
)


def cache_read(
    func: PrimFunc, source: Buffer, scope: str, readers: Sequence[str], name: str
) -> tuple[PrimFunc, Tensor]:
    """A copy of ``source`` in the memory ``scope``, which the readers read instead.

    Before: ``for i: C[i] = A[i]``.  After: ``for i: A_s[i] = A[i]``, ``for i: C[i] = A_s[i]``.

    Returns:
        The function, and the copy, which is called ``name``.

    Raises:
        ScheduleError: a reader doesn't read ``source``, or ``source`` is made in the reader's
            loops.
    """
    for reader in readers:
        if not any(r.buffer is source for r in get_block(func, reader).reads):
            raise ScheduleError(
                f"cache_read {source.name}: expected readers of it, found "
                f"{reader}, which doesn't read it"
            )
    axis = tuple(IterVar(f"i{n}", "int32", size) for n, size in enumerate(source.shape))
    (copy,) = outputs_of(ComputeOp(name, axis, (Load(source, axis),)), source.shape, scope)

    def switched(block: Block) -> Stmt:
        return replace_buffer(block, source, copy) if block.name in readers else block

    place = home(func, source)
    _check_made_before(place, source, readers)
    known = {copy: copy, **({source: source} if isinstance(source, Tensor) else {})}
    stage = compute_nest(copy.compute_op, known, name)
    body = insert_before(
        place, lambda s: isinstance(s, Block) and s.name in readers, [stage], [copy]
    )
    parts = map_blocks(body, switched)
    return with_body(func, place, parts), copy


def _check_made_before(place: Stmt, source: Buffer, readers: Sequence[str]) -> None:
    """A copy stands before the loops of its readers; ``source`` must be made by then."""
    for part in children(peel_allocs(place)[1]):
        inside = list(blocks(part))
        if any(b.name in readers for b in inside):
            for block in inside:
                if any(r.buffer is source for r in block.writes):
                    raise ScheduleError(
                        f"cache_read {source.name}: expected it to be made before "
                        f"the loops that read it, found {block.name} in the same"
                    )


def cache_write(
    func: PrimFunc, stage: str, target: Buffer, op: ComputeOp, scope: str, name: str
) -> tuple[PrimFunc, Tensor]:
    """The stage computes into a buffer in the memory ``scope``, and a copy brings it to ``target``.

    Before: ``for i: C[i] = f(i)``.  After: ``for i: C_s[i] = f(i)``, ``for i: C[i] = C_s[i]``.

    Returns:
        The function, and the tensor that is computed, which is called ``name``.

    Raises:
        ScheduleError: the stage is attached, or its loops aren't those that te made.
    """
    path = block_path(func, stage)
    place = home(func, target)
    if any(isinstance(s, For) for s in path[: path.index(place)]):
        raise ScheduleError(
            f"cache_write {stage}: expected a stage of its own, found it "
            f"attached; call it before compute_at"
        )
    allocs, inner = peel_allocs(place)
    parts = children(inner)
    own = next(p for p in parts if p in path)
    fresh = _fresh_axes(stage, own, op)
    (new,) = outputs_of(_renamed_op(op, fresh, name), target.shape, scope)
    computing = _rename_stage(
        replace_buffer(_substitute_loops(own, fresh), target, new), stage, name
    )
    at = parts.index(own)
    parts[at : at + 1] = [computing, _copy_nest(target, new, op.axis)]
    body = wrap_allocs([*allocs, new], seq(*parts))
    return with_body(func, place, body), new


def _fresh_axes(stage: str, own: Stmt, op: ComputeOp) -> dict[Var, IterVar]:
    """New axes for the stage, whose loops must still be te's."""
    axes = op.axes
    loops = [s.var for s in walk(own) if isinstance(s, For)]
    if set(loops) != set(axes):
        raise ScheduleError(
            f"cache_write {stage}: expected the loops te made "
            f"({', '.join(a.name for a in axes)}), found "
            f"{', '.join(v.name for v in loops)}; call it before scheduling"
        )
    return {a: IterVar(a.name, "int32", a.extent, a.kind) for a in axes}


def _substitute_loops(stmt: Stmt, fresh: dict[Var, IterVar]) -> Stmt:
    """The nest with new variables for its loops."""

    def loop(s: Stmt) -> Stmt:
        return replace(s, var=fresh[s.var]) if isinstance(s, For) and s.var in fresh else s

    mapping: dict[Var, Expr] = dict(fresh)
    return rewrite(substitute(stmt, mapping), loop)


def _renamed_op(op: ComputeOp, fresh: dict[Var, IterVar], name: str) -> ComputeOp:
    """The operation under another name, on new axes."""
    mapping = dict[Var, Expr](fresh)
    (body,) = op.body
    if op.reduce is not None:
        source, init = (
            tuple(substitute_expr(e, mapping) for e in group)
            for group in (op.reduce.source, op.reduce.init)
        )
        axes = tuple(fresh[a] for a in op.reduce_axis)
        body = Reduce(op.reduce.reducer, source, axes, init)
    else:
        body = substitute_expr(body, mapping)
    return ComputeOp(name, tuple(fresh[a] for a in op.axis), (body,))


def _rename_stage(stmt: Stmt, old: str, new: str) -> Stmt:
    """The statement with one block called another name."""
    return map_blocks(stmt, lambda b: replace(b, name=new) if b.name == old else b)


def _copy_nest(target: Buffer, source: Tensor, axis: tuple[IterVar, ...]) -> Stmt:
    """``target[...] = source[...]`` on the axes that the stage had."""
    op = ComputeOp(target.name, axis, (Load(source, axis),))
    (shown,) = outputs_of(op, target.shape)
    stage = compute_nest(op, {shown: shown, source: source}, target.name)
    return replace_buffer(stage, shown, target)


def double_buffer(func: PrimFunc, stage: str, copies: int) -> tuple[PrimFunc, Buffer]:
    """The stage's buffer in several copies; the loop around its Alloc takes them in turn.

    Before: ``for i in 8: alloc B: B = …; C = B``.
    After:  ``for i in 8: alloc B x2: B = …; C = B``, where odd and even steps have a place each.

    Returns:
        The function, and the new buffer.

    Raises:
        ScheduleError: fewer than one copy, or the buffer is an output.
    """
    if copies < 1:
        raise ScheduleError(f"double_buffer {stage}: expected at least 1 copy, found {copies}")
    old = get_block(func, stage).writes[0].buffer
    if old in func.params:
        raise ScheduleError(
            f"double_buffer {stage}: expected an intermediate stage, found the output {old.name}"
        )
    new = replace(old, copies=copies)
    return replace(func, body=replace_buffer(func.body, old, new)), new


def set_scope(func: PrimFunc, stage: str, old: Buffer, scope: str) -> tuple[PrimFunc, Buffer]:
    """The stage's buffer in another memory.

    Before: ``alloc B: int32[10, 8]``.  After: ``alloc B: int32[10, 8] @"vdla.acc"``.

    Returns:
        The function, and the new buffer.

    Raises:
        ScheduleError: the buffer is an output, or its entries don't lie densely.
    """
    if old in func.params:
        raise ScheduleError(
            f"set_scope {stage}: expected an intermediate stage, found the "
            f"output {old.name}, which stays in scope {old.scope}"
        )
    if old.alignments and _on_chip(scope):
        raise ScheduleError(
            f"set_scope {stage}: expected scope global, shared or local of an aligned buffer, "
            f"found {scope}, where entries lie densely"
        )
    new = replace(old, scope=scope)
    return replace(func, body=replace_buffer(func.body, old, new)), new


def _on_chip(scope: str) -> bool:
    """Whether a scope is one of an accelerator's memories, whose entries are whole vectors."""
    return scope not in (GLOBAL, SHARED, LOCAL)


def storage_align(
    func: PrimFunc, stage: str, dim: int, factor: int, offset: int
) -> tuple[PrimFunc, Buffer]:
    """The stage's buffer with a wider stride of one dimension.

    Before: ``alloc B: int32[10, 8]``, whose rows lie 8 elements apart.
    After storage_align(y, 16, 1): ``alloc B: int32[10, 8] align(0, 16, 1)``, 17 elements apart.

    Returns:
        The function, and the new buffer.

    Raises:
        ScheduleError: factor or offset is out of range, or the buffer is an output or on chip.
    """
    if factor < 1 or not 0 <= offset < factor:
        raise ScheduleError(
            f"storage_align {stage}: expected factor >= 1 and offset in "
            f"0..factor-1, found {factor} and {offset}"
        )
    old = get_block(func, stage).writes[0].buffer
    if old in func.params:
        raise ScheduleError(
            f"storage_align {stage}: expected an intermediate stage, found the "
            f"output {old.name}, which lies as numpy has it"
        )
    if _on_chip(old.scope):
        raise ScheduleError(
            f"storage_align {stage}: expected a buffer in scope global, shared or local, found it "
            f"in {old.scope}, where entries lie densely"
        )
    others = tuple(a for a in old.alignments if a[0] != dim)
    new = replace(old, alignments=(*others, (dim, factor, offset)))
    return replace(func, body=replace_buffer(func.body, old, new)), new
