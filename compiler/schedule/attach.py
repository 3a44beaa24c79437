"""compute_at: a stage computed inside its reader's loops, as much as one step needs; and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.tree import (
    Path,
    block_path,
    children,
    conjunction,
    get_loop,
    home,
    in_domain,
    loop_path,
    loops_of,
    path_ranges,
    peel_allocs,
    with_body,
    wrap_allocs,
)
from vdla.compiler.te.tensor import IterVar
from vdla.compiler.tir.arith import Ranges, simplify
from vdla.compiler.tir.ir import (
    SHARED,
    THREAD_TAGS,
    TRUE,
    ZERO,
    Binary,
    Block,
    Buffer,
    Expr,
    For,
    If,
    PrimFunc,
    Stmt,
    Store,
    Var,
    seq,
)
from vdla.compiler.tir.lower import has_intrinsics
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.region import Interval, touched
from vdla.compiler.tir.visitor import blocks, map_stmt, replace_buffer, substitute, walk


@dataclass(frozen=True, slots=True, eq=False)
class _Producer:
    """A stage that still stands by itself: its nest, and the loop of each dimension."""

    name: str
    buffer: Buffer
    place: Stmt
    nest: Stmt
    loops: tuple[Var, ...]

    @property
    def whole(self) -> bool:
        """Whether it is a statement that can't be shrunk to a part."""
        return not self.loops and bool(self.buffer.shape)


def compute_at(func: PrimFunc, name: str, consumer: str, at: Var) -> tuple[PrimFunc, Buffer]:
    """The stage, shrunk to what one step of the loop ``at`` reads, at the start of that step.

    Before: ``for i in 64: B[i] = f(i)``, ``for io in 8: for ii in 8: C[io*8 + ii] = B[io*8 + ii]``.
    After:  ``for io in 8: alloc B[8]; for i in 8: B[i] = f(io*8 + i); for ii in 8: C[..] = B[ii]``.

    A stage in shared memory gets what all threads of a group read in that step.
    """
    producer = _find_producer(func, name)
    path = loop_path(func, at)
    where = f"compute_at {name} at {consumer}'s loop {at.name} (0..{get_loop(func, at).extent})"
    _check_readers(where, func, producer, path)
    loop = path[-1]
    assert isinstance(loop, For)
    ranges = path_ranges(path)
    group = _group(path) if producer.buffer.scope == SHARED else {}
    box = touched(loop.body, producer.buffer, ranges, writes=False, together=group)
    if box is None:
        raise ScheduleError(f"{where}: expected a reader of {name} inside, found none")
    if producer.whole:
        box = [(ZERO, size) for size in producer.buffer.shape]
    moved = _move_nest(producer, box, ranges)
    body, buffer = _shrink(producer.buffer, box, moved, loop.body, ranges)
    moved_in = with_body(func, loop, replace(loop, body=body))
    return replace(func, body=_remove(moved_in.body, producer)), buffer


def _group(path: Path) -> dict[Var, int]:
    """The loops on a path whose steps are threads of one group, or virtual threads of a thread."""
    return {
        loop.var: loop.extent
        for loop in loops_of(path)
        if loop.kind == "vthread" or loop.thread_tag in THREAD_TAGS
    }


def _find_producer(func: PrimFunc, name: str) -> _Producer:
    """The stage that is to move, if it can."""
    path = block_path(func, name)
    block = path[-1]
    assert isinstance(block, Block)
    where = f"compute_at {name}"
    if has_intrinsics(block.body):
        raise ScheduleError(
            f"{where}: expected a plain stage, found it tensorized; tensorize after compute_at"
        )
    if len(block.writes) != 1:
        raise ScheduleError(
            f"{where}: expected a stage of one tensor, found "
            f"{', '.join(r.buffer.name for r in block.writes)}"
        )
    buffer = block.writes[0].buffer
    if buffer in func.params:
        raise ScheduleError(f"{where}: expected an intermediate stage, found an output")
    place = home(func, buffer)
    parts = children(peel_allocs(place)[1])
    if any(isinstance(s, For) for s in path[: path.index(place)]):
        raise ScheduleError(f"{where}: expected a stage of its own, found it already attached")
    nest = next(p for p in parts if p in path)
    return _Producer(name, buffer, place, nest, _spatial_loops(where, block, buffer, nest))


def _spatial_loops(where: str, block: Block, buffer: Buffer, nest: Stmt) -> tuple[Var, ...]:
    """The loop of each dimension of the stage, which must be unsplit."""
    store = _only_store(block)
    if store is None:
        return ()
    extents = {s.var: s.extent for s in walk(nest) if isinstance(s, For)}
    bindings = block.bindings
    loops: list[Var] = []
    for index, size in zip(store.indices, buffer.shape, strict=True):
        binding = bindings.get(index) if isinstance(index, Var) else None
        if not isinstance(binding, Var) or extents.get(binding) != size:
            result = show(index) if binding is None else show(binding)
            raise ScheduleError(
                f"{where}: expected its spatial loops as te made them (one of 0..{size}), found "
                f"{result}; split or fuse the stage after compute_at"
            )
        loops.append(binding)
    return tuple(loops)


def _only_store(block: Block) -> Store | None:
    """The store that a block's body is, under a condition or not; None for other bodies."""
    body = block.body
    if isinstance(body, If) and body.orelse is None:
        body = body.then
    return body if isinstance(body, Store) else None


def _check_readers(where: str, func: PrimFunc, producer: _Producer, path: Path) -> None:
    """Raises where a reader of the stage isn't inside the loop that it is to move to."""
    loop = path[-1]
    if producer.nest in path:
        raise ScheduleError(f"{where}: expected a loop of a reader, found one of its own")
    inside = set(blocks(loop))
    own = set(blocks(producer.nest))
    for block in blocks(func.body):
        reads = any(r.buffer is producer.buffer for r in block.reads)
        if reads and block not in inside and block not in own:
            raise ScheduleError(
                f"{where}: expected all its readers inside that loop, found {block.name} outside"
            )


def _move_nest(producer: _Producer, box: Sequence[Interval], ranges: Ranges) -> Stmt:
    """The stage's nest over the box alone, guarded where the box may leave the tensor."""
    if producer.whole:
        return producer.nest
    extents = {v: n for v, (_, n) in zip(producer.loops, box, strict=True)}
    shifts: dict[Var, Expr] = {
        v: simplify(low + v) for v, (low, _) in zip(producer.loops, box, strict=True)
    }
    moved = substitute(producer.nest, shifts)
    return _resize(moved, extents, dict(ranges))


def _resize(stmt: Stmt, extents: dict[Var, int], ranges: dict[Var, tuple[int, int]]) -> Stmt:
    """New extents for the loops, and predicates where a block may now leave its domain."""
    if isinstance(stmt, Block):
        return _guard_domain(stmt, ranges)
    if isinstance(stmt, For):
        extent = extents.get(stmt.var, stmt.extent)
        inner = {**ranges, stmt.var: (0, extent - 1)}
        return replace(stmt, extent=extent, body=_resize(stmt.body, extents, inner))
    return map_stmt(stmt, lambda s: _resize(s, extents, ranges))


def _guard_domain(block: Block, ranges: Ranges) -> Block:
    """A block with conditions for those of its iterators that may now leave their domain."""
    predicate = block.predicate
    for it in block.iters:
        predicate = conjunction(predicate, in_domain(it.binding, it.extent, ranges))
    return replace(block, predicate=predicate)


def _shrink(
    buffer: Buffer, box: Sequence[Interval], producer: Stmt, readers: Stmt, ranges: Ranges
) -> tuple[Stmt, Buffer]:
    """(loop body, new buffer): the producer before the readers, on a buffer of the box's size."""
    small = replace(buffer, shape=tuple(extent for _, extent in box))
    lows = [low for low, _ in box]

    def rebased(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(simplify(i - low, ranges) for i, low in zip(indices, lows, strict=True))

    allocs, inner = peel_allocs(readers)
    body = replace_buffer(seq(producer, inner), buffer, small, rebased)
    return wrap_allocs([*allocs, small], body), small


def _remove(root: Stmt, producer: _Producer) -> Stmt:
    """Without the stage's old nest and the old buffer's Alloc."""

    def visit(stmt: Stmt) -> Stmt:
        allocs, inner = peel_allocs(stmt)
        if producer.buffer in allocs:
            parts = [p for p in children(inner) if p is not producer.nest]
            return wrap_allocs([b for b in allocs if b is not producer.buffer], seq(*parts))
        return map_stmt(stmt, visit)

    return visit(root)


def compute_root(func: PrimFunc, name: str, axes: Sequence[IterVar]) -> tuple[PrimFunc, Buffer]:
    """The stage whole again, in the loops te made, before all loops it was attached to.

    Before: ``for io in 8: alloc B[8]; for i in 8: B[i] = f(io*8 + i); for ii in 8: C[..] = B[ii]``.
    After:  ``for i in 64: B[i] = f(i)``, ``for io in 8: for ii in 8: C[io*8 + ii] = B[io*8 + ii]``.
    """
    path = block_path(func, name)
    block = path[-1]
    assert isinstance(block, Block)
    buffer = block.writes[0].buffer
    place = home(func, buffer)
    if not loops_of(path[: path.index(place)]):
        return func, buffer
    nest = next(p for p in children(peel_allocs(place)[1]) if p in path)
    _check_root(func, block, nest)
    lows = _offsets(block)
    shape = tuple(i.extent for i in block.iters[: len(lows)]) if lows else buffer.shape
    whole = replace(buffer, shape=shape)

    def moved(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        if not lows:
            return indices
        return tuple(simplify(i + low) for i, low in zip(indices, lows, strict=True))

    alone = replace(
        block,
        iters=tuple(replace(i, binding=a) for i, a in zip(block.iters, axes, strict=True)),
        predicate=TRUE,
    )
    stage: Stmt = replace_buffer(alone, buffer, whole, moved)
    for axis in reversed(axes):
        stage = For(axis, axis.extent, "serial", stage)
    allocs, inner = peel_allocs(func.body)
    parts = children(inner)
    at = next(n for n, p in enumerate(parts) if p in path)
    rest = _remove(parts[at], _Producer(name, buffer, place, nest, ()))
    parts[at : at + 1] = [stage, replace_buffer(rest, buffer, whole, moved)]
    return replace(func, body=wrap_allocs([*allocs, whole], seq(*parts))), whole


def _check_root(func: PrimFunc, block: Block, nest: Stmt) -> None:
    """Raises where a stage can't leave the loops that it is attached to."""
    where = f"compute_root {block.name}"
    if has_intrinsics(block.body):
        raise ScheduleError(
            f"{where}: expected a plain stage, found it tensorized; tensorize after compute_root"
        )
    others = [b.name for b in blocks(nest) if b is not block]
    if others:
        raise ScheduleError(
            f"{where}: expected a stage with none attached to it, found "
            f"{', '.join(others)}; call compute_root on it first"
        )
    outside = {*func.params, *peel_allocs(func.body)[0]}
    for region in block.reads:
        if region.buffer not in outside:
            raise ScheduleError(
                f"{where}: expected to read what is computed outside of loops, "
                f"found {region.buffer.name} inside; call compute_root on it first"
            )


def _offsets(block: Block) -> list[Expr]:
    """Indices in the whole tensor at which the stage's buffer begins; none for a statement."""
    store = _only_store(block)
    if store is None:
        return []
    return [
        simplify(Binary("sub", i.var, index))
        for i, index in zip(block.iters, store.indices, strict=False)
    ]
