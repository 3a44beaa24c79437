"""Finding and replacing nodes of a function by what a schedule calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.tir.arith import Ranges, bounds
from vdla.compiler.tir.ir import (
    Alloc,
    Binary,
    Block,
    Buffer,
    Const,
    Expr,
    For,
    PrimFunc,
    Seq,
    Stmt,
    Var,
    all_of,
    seq,
)
from vdla.compiler.tir.region import block_regions
from vdla.compiler.tir.visitor import map_stmt, stmt_children

Path = tuple[Stmt, ...]


def _find_path(stmt: Stmt, wanted: Callable[[Stmt], bool]) -> Path | None:
    """The statements from ``stmt`` down to the first wanted one, both included."""
    if wanted(stmt):
        return (stmt,)
    for child in stmt_children(stmt):
        below = _find_path(child, wanted)
        if below is not None:
            return (stmt, *below)
    return None


def loop_path(func: PrimFunc, var: Var) -> Path:
    """The statements from the function's body down to the loop of ``var``, both included.

    Raises:
        ScheduleError: there is no such loop.
    """
    path = _find_path(func.body, lambda s: isinstance(s, For) and s.var is var)
    if path is None:
        raise ScheduleError(f"loop {var.name} isn't in {func.name}")
    return path


def get_loop(func: PrimFunc, var: Var) -> For:
    """The loop of ``var``.

    Raises:
        ScheduleError: there is no such loop.
    """
    loop = loop_path(func, var)[-1]
    assert isinstance(loop, For)
    return loop


def block_path(func: PrimFunc, name: str) -> Path:
    """The statements from the function's body down to the block of a stage, both included.

    Raises:
        ScheduleError: there is no such block.
    """
    path = _find_path(func.body, lambda s: isinstance(s, Block) and s.name == name)
    if path is None:
        raise ScheduleError(f"stage {name} isn't in {func.name}; was it inlined?")
    return path


def get_block(func: PrimFunc, name: str) -> Block:
    """The block of a stage.

    Raises:
        ScheduleError: there is no such block.
    """
    block = block_path(func, name)[-1]
    assert isinstance(block, Block)
    return block


def loops_of(path: Iterable[Stmt]) -> list[For]:
    """The loops among some statements, in order."""
    return [s for s in path if isinstance(s, For)]


def path_ranges(path: Sequence[Stmt]) -> dict[Var, tuple[int, int]]:
    """The inclusive bounds of the loops on a path."""
    return {loop.var: (0, loop.extent - 1) for loop in loops_of(path)}


def replaced(root: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """``root`` with the node ``old`` (by identity) exchanged."""
    if root is old:
        return new
    return map_stmt(root, lambda s: replaced(s, old, new))


def with_body(func: PrimFunc, old: Stmt, new: Stmt) -> PrimFunc:
    """The function with the statement ``old`` (by identity) exchanged."""
    return replace(func, body=replaced(func.body, old, new))


def map_blocks(stmt: Stmt, fn: Callable[[Block], Stmt]) -> Stmt:
    """``fn`` on every outermost block."""
    if isinstance(stmt, Block):
        return fn(stmt)
    return map_stmt(stmt, lambda s: map_blocks(s, fn))


def refresh_regions(block: Block) -> Block:
    """The block with regions inferred from its present body."""
    ranges = {i.var: (0, i.extent - 1) for i in block.iters}
    reads, writes = block_regions(block.body, block.init, ranges)
    return replace(block, reads=reads, writes=writes)


def in_domain(expr: Expr, extent: int, ranges: Ranges) -> Expr:
    """The condition that 0 <= expr < extent, without what is provable."""
    limits = bounds(expr, ranges)
    low = Binary("ge", expr, Const(0, expr.dtype))
    high = Binary("lt", expr, Const(extent, expr.dtype))
    parts = []
    if limits is None or limits[0] < 0:
        parts.append(low)
    if limits is None or limits[1] >= extent:
        parts.append(high)
    return all_of(*parts)


def conjunction(a: Expr, b: Expr) -> Expr:
    """a and b, without repeating what ``a`` already says."""
    known = set(terms(a))
    return all_of(a, *(t for t in terms(b) if t not in known))


def terms(cond: Expr) -> Iterator[Expr]:
    """The conditions that ``and`` joins in ``cond``."""
    if isinstance(cond, Binary) and cond.op == "and":
        yield from terms(cond.a)
        yield from terms(cond.b)
    else:
        yield cond


def peel_allocs(stmt: Stmt) -> tuple[list[Buffer], Stmt]:
    """The buffers allocated directly around a statement, and the statement."""
    buffers = []
    while isinstance(stmt, Alloc):
        buffers.append(stmt.buffer)
        stmt = stmt.body
    return buffers, stmt


def wrap_allocs(buffers: Sequence[Buffer], stmt: Stmt) -> Stmt:
    """A statement with buffers allocated around it, the first one outermost."""
    for buffer in reversed(buffers):
        stmt = Alloc(buffer, stmt)
    return stmt


def children(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence, or the one."""
    return list(stmt.stmts) if isinstance(stmt, Seq) else [stmt]


def home(func: PrimFunc, buffer: Buffer) -> Stmt:
    """The statement, Allocs around it included, in which ``buffer`` lives."""
    if buffer in func.params:
        return func.body
    path = _find_path(func.body, lambda s: isinstance(s, Alloc) and s.buffer is buffer)
    if path is None:
        raise ScheduleError(f"buffer {buffer.name} isn't in {func.name}")
    start = len(path) - 1
    while start and isinstance(path[start - 1], Alloc):
        start -= 1
    return path[start]


def contains(stmt: Stmt, wanted: Callable[[Stmt], bool]) -> bool:
    """Whether a statement, or one inside it, is wanted."""
    return _find_path(stmt, wanted) is not None


def insert_before(
    where: Stmt, wanted: Callable[[Stmt], bool], new: Sequence[Stmt], allocs: Sequence[Buffer]
) -> Stmt:
    """``where`` with statements before its first child that holds a wanted one, and more Allocs."""
    buffers, inner = peel_allocs(where)
    parts = children(inner)
    at = next(n for n, part in enumerate(parts) if contains(part, wanted))
    parts[at:at] = new
    return wrap_allocs([*buffers, *allocs], seq(*parts))
