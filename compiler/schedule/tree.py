"""Finding and replacing nodes of a function by what a schedule calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

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
from vdla.compiler.tir.visitor import map_stmt, stmt_children, walk

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


@dataclass(frozen=True)
class _Places:
    """Places of a function's statements: the one around each, the loops by their variables, and the
    blocks by their names."""

    around: Mapping[Stmt, Stmt | None]
    named: Mapping[Var | str, Stmt]

    def path(self, stmt: Stmt) -> Path:
        """The statements from the function's body down to one, both included."""
        result = [stmt]
        while (outer := self.around[result[-1]]) is not None:
            result.append(outer)
        return tuple(reversed(result))


@lru_cache(maxsize=4)
def _places(func: PrimFunc) -> _Places:
    """Places of all statements: a primitive asks for several."""
    around: dict[Stmt, Stmt | None] = {func.body: None}
    named: dict[Var | str, Stmt] = {}
    for stmt in walk(func.body):
        if isinstance(stmt, For | Block):
            named.setdefault(stmt.var if isinstance(stmt, For) else stmt.name, stmt)
        around.update(dict.fromkeys(stmt_children(stmt), stmt))
    return _Places(around, named)


def loop_path(func: PrimFunc, var: Var) -> Path:
    """The statements from the function's body down to the loop of ``var``, both included.

    Raises:
        ScheduleError: there is no such loop.
    """
    loop = _places(func).named.get(var)
    if loop is None:
        raise ScheduleError(f"loop {var.name} isn't in {func.name}")
    return _places(func).path(loop)


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
    block = _places(func).named.get(name)
    if block is None:
        raise ScheduleError(f"stage {name} isn't in {func.name}; was it inlined?")
    return _places(func).path(block)


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


def with_body(func: PrimFunc, old: Stmt, new: Stmt) -> PrimFunc:
    """The function with the statement ``old`` (by identity) exchanged."""
    path = _places(func).path(old)
    for outer, inner in zip(path[-2::-1], path[:0:-1], strict=True):
        new = _with_child(outer, inner, new)
    return replace(func, body=new)


def _with_child(stmt: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """A statement with one directly inside it exchanged."""
    return map_stmt(stmt, lambda s: new if s is old else s)


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
