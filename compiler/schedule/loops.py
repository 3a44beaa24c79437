"""Loop shape: split, fuse, reorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.tree import (
    conjunction,
    get_loop,
    loop_path,
    map_blocks,
    with_body,
)
from vdla.compiler.tir.ir import Binary, Block, Const, Expr, For, PrimFunc, Stmt, Var
from vdla.compiler.tir.visitor import blocks, substitute, uses
from vdla.support.numbers import ceil_div


def split(
    func: PrimFunc, where: str, var: Var, factor: int | None, nparts: int | None
) -> tuple[PrimFunc, Var, Var]:
    """One loop as two; a factor that doesn't divide guards the blocks inside.

    Before: ``for y in 10: B(y)``.
    After:  ``for y_o in 3: for y_i in 4: if y_o * 4 + y_i < 10: B(y_o * 4 + y_i)``.
    """
    loop = get_loop(func, var)
    inner_extent = _split_factor(where, loop, factor, nparts)
    outer_extent = ceil_div(loop.extent, inner_extent)
    outer, inner = Var(f"{var.name}_o"), Var(f"{var.name}_i")
    index = outer * inner_extent + inner
    body = loop.body
    if outer_extent * inner_extent != loop.extent:
        body = _guard_blocks(body, Binary("lt", var, Const(loop.extent, var.dtype)))
    body = For(inner, inner_extent, "serial", substitute(body, {var: index}))
    new = replace(loop, var=outer, extent=outer_extent, body=body)
    return with_body(func, loop, new), outer, inner


def _split_factor(where: str, loop: For, factor: int | None, nparts: int | None) -> int:
    """The extent of the inner loop."""
    if (factor is None) == (nparts is None):
        raise ScheduleError(f"split {where}: expected one of factor and nparts")
    name, value = ("factor", factor) if factor is not None else ("nparts", nparts)
    if not isinstance(value, int) or not 1 <= value <= loop.extent:
        raise ScheduleError(
            f"split {where}: expected {name} in 1..{loop.extent} (the loop's extent), found {value}"
        )
    return value if factor is not None else ceil_div(loop.extent, value)


def _guard_blocks(stmt: Stmt, cond: Expr) -> Stmt:
    """The statement with one more condition on every block."""

    def guarded(block: Block) -> Block:
        return replace(block, predicate=conjunction(block.predicate, cond))

    return map_blocks(stmt, guarded)


def fuse(func: PrimFunc, where: str, outer: Var, inner: Var) -> tuple[PrimFunc, Var]:
    """Two loops, one directly inside the other, as one.

    Before: ``for y in 4: for x in 8: B(y, x)``.
    After:  ``for y_x in 32: B(y_x // 8, y_x % 8)``.
    """
    a, b = get_loop(func, outer), get_loop(func, inner)
    if a.body is not b:
        result = f"loop {a.body.var.name}" if isinstance(a.body, For) else type(a.body).__name__
        raise ScheduleError(
            f"fuse {where}: expected {inner.name} (0..{b.extent}) directly inside "
            f"{outer.name} (0..{a.extent}), found {result}"
        )
    _check_kinds(where, a, b)
    fused = Var(f"{outer.name}_{inner.name}")
    mapping: dict[Var, Expr] = {outer: fused // b.extent, inner: fused % b.extent}
    new = For(
        fused,
        a.extent * b.extent,
        a.kind,
        substitute(b.body, mapping),
        a.thread_tag,
        a.annotations + b.annotations,
    )
    return with_body(func, a, new), fused


def _check_kinds(where: str, a: For, b: For) -> None:
    """A loop over both spatial and reduce axes could run a reduction's first step late."""
    for block in blocks(b):
        for it in block.iters:
            for other in block.iters:
                if (
                    it.kind != other.kind
                    and uses(it.binding, {a.var})
                    and uses(other.binding, {b.var})
                ):
                    raise ScheduleError(
                        f"fuse {where}: expected loops of one kind, found {a.var.name} "
                        f"(0..{a.extent}, {it.kind}) and {b.var.name} (0..{b.extent}, "
                        f"{other.kind}) in {block.name}"
                    )


def reorder(func: PrimFunc, where: str, order: Sequence[Var]) -> PrimFunc:
    """Loops of one stage's perfect nest in another order; those not named keep their place.

    Before: ``for y: for x: for k: B``.  After reorder(k, y): ``for k: for x: for y: B``.
    """
    if len(set(order)) != len(order):
        raise ScheduleError(f"reorder {where}: a loop is named twice")
    paths = [loop_path(func, var) for var in order]
    top = min(paths, key=len)[-1]
    bottom = max(paths, key=len)
    chain = bottom[bottom.index(top) :]
    named = {path[-1] for path in paths}
    for stmt in chain:
        if not isinstance(stmt, For):
            raise ScheduleError(
                f"reorder {where}: expected a perfect nest from {_name_of(top)} to "
                f"{_name_of(chain[-1])}, found {type(stmt).__name__} in between (a stage is "
                f"attached there: reorder before compute_at)"
            )
    fors = [s for s in chain if isinstance(s, For)]
    wanted = iter(get_loop(func, var) for var in order)
    arranged = [next(wanted) if loop in named else loop for loop in fors]
    body = fors[-1].body
    for loop in reversed(arranged):
        body = replace(loop, body=body)
    return with_body(func, top, body)


def _name_of(stmt: Stmt) -> str:
    """A loop's variable and extent, for messages."""
    return f"{stmt.var.name} (0..{stmt.extent})" if isinstance(stmt, For) else type(stmt).__name__
