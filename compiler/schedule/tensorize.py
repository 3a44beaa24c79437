"""tensorize: a loop nest as one call of an intrinsic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.match import Binding, LoopInfo, Mismatch, Region, match_intrinsic
from vdla.compiler.schedule.operations import foreign_operation
from vdla.compiler.schedule.tree import Path, loop_path, loops_of, path_ranges, with_body
from vdla.compiler.tir.arith import simplify
from vdla.compiler.tir.ir import (
    ZERO,
    Binary,
    Block,
    BlockIter,
    BufferRegion,
    Call,
    Cast,
    Const,
    Evaluate,
    Expr,
    For,
    IntrinCall,
    PrimFunc,
    Stmt,
    Store,
    Var,
    all_of,
)
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.values import Known
from vdla.compiler.tir.visitor import expr_vars, loads, substitute_expr, uses, walk_expr

STORED_BYTES = (
    "; int8 is stored by te.requantize(x, s).astype('int8'), which saturates: for x as it is, s is "
    "te.const(te.scale_word(1, 0)) in every lane of a stage in vdla.ACC"
)


def tensorize(
    func: PrimFunc, where: str, var: Var, intrins: Sequence[TensorIntrin], values: Known
) -> tuple[PrimFunc, TensorIntrin]:
    """The loop of ``var`` and all inside it become one call; (function, the intrinsic called).

    Of several intrinsics the cheapest is taken that does the same for all ``values`` that buffers
    may hold, the first of equally cheap ones.

    Before: ``for l in 16: acc[y, l] = max(acc[y, l], 0)``.   After: ``relu(dst=acc[y, 0])``.
    """
    path = loop_path(func, var)
    loops, block = _perfect_nest(where, path[-1])
    inner = {loop.var for loop in loops}
    block = replace(block, predicate=simplify(block.predicate, path_ranges([*path, *loops])))
    if uses(block.predicate, inner):
        raise ScheduleError(
            f"tensorize {where}: expected a predicate outside of the intrinsic's "
            f"loops, found {show(block.predicate)}; split evenly"
        )
    region = replace(_region_of(where, path, loops, block), values=values)
    intrin, result = _cheapest(where, intrins, region)
    outer = loops_of(path[:-1])
    return with_body(func, path[-1], _call_block(block, intrin, result, inner, outer)), intrin


def _cheapest(
    where: str, intrins: Sequence[TensorIntrin], region: Region
) -> tuple[TensorIntrin, Binding]:
    """The first intrinsic in order of cost that matches, or what kept the closest from it."""
    closest: tuple[tuple[int, int], str] | None = None
    for intrin in sorted(intrins, key=lambda each: each.cost):
        try:
            return intrin, match_intrinsic(intrin, region)
        except Mismatch as error:
            if closest is None or error.progress > closest[0]:
                closest = error.progress, f"{intrin.name} {error}"
    if closest is None:
        raise ScheduleError(f"tensorize {where}: expected an intrinsic, found none")
    if isinstance(region.value, Cast) and region.value.dtype == "int8" and _plain(region.value):
        raise ScheduleError(f"tensorize {where}: {closest[1]}{STORED_BYTES}")
    if len(intrins) == 1:
        raise ScheduleError(f"tensorize {where}: {closest[1]}")
    if unknown := foreign_operation(intrins, region):
        raise ScheduleError(
            f"tensorize {where}: expected what one of {len(intrins)} intrinsics does, "
            f"found {unknown}"
        )
    raise ScheduleError(
        f"tensorize {where}: expected what one of {len(intrins)} intrinsics does; "
        f"the closest, {closest[1]}"
    )


def _plain(value: Expr) -> bool:
    """Whether a value is requantized nowhere."""
    return not any(isinstance(e, Call) and e.op == "rq" for e in walk_expr(value))


def _perfect_nest(where: str, stmt: Stmt) -> tuple[list[For], Block]:
    """The loops from ``stmt`` inwards, and the one block in them."""
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    if not isinstance(stmt, Block):
        raise ScheduleError(
            f"tensorize {where}: expected one stage inside the loop, found {type(stmt).__name__}"
        )
    return loops, stmt


def _region_of(where: str, path: Path, loops: list[For], block: Block) -> Region:
    """The block's effect in terms of loop variables, one-step loops left out."""
    store, init = block.body, block.init
    if not isinstance(store, Store) or not isinstance(init, Store | None):
        raise ScheduleError(f"tensorize {where}: expected a stage not yet tensorized")
    ranges = path_ranges([*path, *loops])
    single: dict[Var, Expr] = {loop.var: ZERO for loop in loops if loop.extent == 1}
    bindings = {v: substitute_expr(b, single) for v, b in block.bindings.items()}

    def flat(expr: Expr) -> Expr:
        return simplify(substitute_expr(substitute_expr(expr, bindings), single), ranges)

    reduced = {v for i in block.reduce_iters for v in expr_vars(i.binding)}
    infos = tuple(
        LoopInfo(loop.var, loop.extent, "reduce" if loop.var in reduced else "spatial")
        for loop in loops
        if loop.extent > 1
    )
    return Region(
        store.buffer,
        tuple(flat(i) for i in store.indices),
        flat(store.value),
        None if init is None else flat(init.value),
        infos,
        ranges,
    )


def _call_block(
    block: Block, intrin: TensorIntrin, matched: Binding, inner: set[Var], outer: list[For]
) -> Block:
    """The block around the call; its iterators are those still bound to loops outside."""
    start: dict[Var, Expr] = dict.fromkeys(inner, ZERO)
    ranges = path_ranges(outer)
    iters: list[BlockIter] = []
    for it in block.iters:
        binding = simplify(substitute_expr(it.binding, start), ranges)
        if not isinstance(binding, Const):
            iters.append(replace(it, var=Var(it.var.name), binding=binding))
    first = _first_step(block, inner, outer) if intrin.is_reduction else None
    operands = tuple(matched.operands[b] for b in intrin.operands)
    params = {p.name: matched.params[p] for p in intrin.params}
    call = IntrinCall(intrin, operands, params, first)
    reads: list[BufferRegion] = []
    writes: list[BufferRegion] = []
    for region, wrote in call.regions():
        (writes if wrote else reads).append(region)
    reads += _tables(call)
    return Block(
        block.name, tuple(iters), tuple(reads), tuple(writes), Evaluate(call), None, block.predicate
    )


def _tables(call: IntrinCall) -> list[BufferRegion]:
    """Elements in the indices of a call's operands, which it reads, too."""
    regions = {
        x.buffer: BufferRegion(x.buffer, tuple((i, 1) for i in x.indices))
        for operand in call.operands
        for index in operand.indices
        for x in loads(index)
    }
    return list(regions.values())


def _first_step(block: Block, inner: set[Var], outer: list[For]) -> Expr:
    """That every reduce loop outside the intrinsic is at 0."""
    reduced = {v for i in block.reduce_iters for v in expr_vars(i.binding)} - inner
    return all_of(
        *(Binary("eq", loop.var, ZERO) for loop in outer if loop.var in reduced and loop.extent > 1)
    )
