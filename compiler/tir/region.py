"""Access regions: the boxes of a buffer that statements touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from vdla.compiler.tir.arith import Linear, Ranges, bounds, difference, linear, rebuild, simplify
from vdla.compiler.tir.ir import (
    ZERO,
    Alloc,
    Binary,
    Block,
    Buffer,
    BufferRegion,
    Const,
    Evaluate,
    Expr,
    For,
    Stmt,
    Store,
    Var,
)
from vdla.compiler.tir.visitor import (
    direct_exprs,
    loads,
    stmt_children,
    substitute_expr,
    uses,
)

Interval = tuple[Expr, int]
Extents = Mapping[Var, int]


def interval(expr: Expr, inner: Extents, ranges: Ranges) -> Interval | None:
    """(low, extent) of ``expr`` while the ``inner`` variables run from 0 to their extents.

    ``low`` is over the other variables; None where the extent isn't a constant.
    """
    if not uses(expr, inner):
        return simplify(expr, ranges), 1
    form = linear(expr, {**ranges, **{v: (0, n - 1) for v, n in inner.items()}})
    low, high, rest = 0, 0, Linear(form.constant, {})
    for atom, k in form.terms.items():
        if not uses(atom, inner):
            rest = rest.plus(Linear(0, {atom: k}))
            continue
        limits = _atom_interval(atom, inner, ranges)
        if limits is None:
            return _fixed_interval(expr, inner, ranges)
        rest = rest.plus(linear(limits[0], ranges), k)
        low += min(0, k * (limits[1] - 1))
        high += max(0, k * (limits[1] - 1))
    return rebuild(rest.plus(Linear(low, {})), expr.dtype), high - low + 1


def _atom_interval(atom: Expr, inner: Extents, ranges: Ranges) -> Interval | None:
    """The interval of a variable, or of a quotient or remainder by a constant."""
    if isinstance(atom, Var):
        return ZERO, inner[atom]
    if not (isinstance(atom, Binary) and isinstance(atom.b, Const)):
        return None
    base = interval(atom.a, inner, ranges)
    if base is None or atom.op not in ("floordiv", "floormod"):
        return None
    c, (low, extent) = int(atom.b.value), base
    aligned = not linear(Binary("floormod", low, Const(c, low.dtype)), ranges).terms
    offset = linear(Binary("floormod", low, Const(c, low.dtype)), ranges).constant
    if atom.op == "floordiv":
        slack = offset if aligned else c - 1
        quotient = simplify(Binary("floordiv", low, Const(c, low.dtype)), ranges)
        return quotient, (extent - 1 + slack) // c + 1
    if aligned and offset + extent <= c:
        return Const(offset, low.dtype), extent
    return Const(0, low.dtype), c


def _fixed_interval(expr: Expr, inner: Extents, ranges: Ranges) -> Interval | None:
    """Constant bounds over every variable, the outer ones too."""
    full = {**ranges, **{v: (0, n - 1) for v, n in inner.items()}}
    limits = bounds(expr, full)
    return None if limits is None else (Const(limits[0], expr.dtype), limits[1] - limits[0] + 1)


def _join(a: Interval, b: Interval, ranges: Ranges) -> Interval | None:
    """The smallest interval around both, where their distance is constant."""
    delta = difference(b[0], a[0], ranges)
    if delta is None:
        return None
    low = min(0, delta)
    high = max(a[1], delta + b[1])
    return (a[0] if delta >= 0 else b[0]), high - low


def _box(
    buffer: Buffer, accesses: Sequence[Sequence[Interval]], inner: Extents, ranges: Ranges
) -> list[Interval]:
    """The region of ``buffer`` around all accesses; a dimension that can't be told is whole."""
    result: list[Interval] = []
    for dim, size in enumerate(buffer.shape):
        whole: Interval = (ZERO, size)
        values: Interval | None = None
        for access in accesses:
            low, extent = access[dim]
            here = interval(low, inner, ranges)
            if here is None:
                values = whole
                break
            here = (here[0], here[1] + extent - 1)
            merged = here if values is None else _join(values, here, ranges)
            values = whole if merged is None else merged
            if merged is None:
                break
        assert values is not None
        result.append(whole if values[1] >= size else values)
    return result


def _point_ranges(indices: Iterable[Expr]) -> tuple[Interval, ...]:
    """The region of one element."""
    return tuple((i, 1) for i in indices)


Access = tuple[Buffer, tuple[Interval, ...]]


def _own_accesses(stmt: Stmt) -> tuple[list[Access], list[Access]]:
    """(reads, writes) of one statement, its children left out."""
    reads = [(x.buffer, _point_ranges(x.indices)) for e in direct_exprs(stmt) for x in loads(e)]
    writes: list[Access] = []
    if isinstance(stmt, Store):
        writes.append((stmt.buffer, _point_ranges(stmt.indices)))
    if isinstance(stmt, Evaluate):
        for region, wrote in stmt.call.regions():
            (writes if wrote else reads).append((region.buffer, region.ranges))
    return reads, writes


def scoped(
    stmt: Stmt, extents: Extents, env: Mapping[Var, Expr]
) -> Iterator[tuple[Stmt, Extents, Mapping[Var, Expr]]]:
    """Each statement with the loops inside ``stmt`` around it and the blocks' bindings."""
    if isinstance(stmt, Block):
        inner = {i.var: substitute_expr(i.binding, env) for i in stmt.iters}
        env = {**env, **inner}
    yield stmt, extents, env
    if isinstance(stmt, For):
        extents = {**extents, stmt.var: stmt.extent}
    for child in stmt_children(stmt):
        yield from scoped(child, extents, env)


def accesses(
    stmt: Stmt, only: Buffer | None = None
) -> Iterator[tuple[bool, Buffer, tuple[Interval, ...], Extents]]:
    """(is a write, buffer, ranges over loop variables, loops inside ``stmt``) of every access, or
    of those of one buffer."""
    for inner, extents, env in scoped(stmt, {}, {}):
        reads, writes = _own_accesses(inner)
        for wrote, each in ((False, reads), (True, writes)):
            for buffer, ranges in each:
                if only is not None and buffer is not only:
                    continue
                bound = tuple((substitute_expr(low, env), n) for low, n in ranges)
                yield wrote, buffer, bound, extents


def touched(
    stmt: Stmt,
    buffer: Buffer,
    ranges: Ranges,
    *,
    writes: bool,
    together: Extents = MappingProxyType({}),
) -> list[Interval] | None:
    """The box of ``buffer`` that ``stmt`` reads (or writes), over the variables around ``stmt``.

    It is that of all steps of the loops ``together``, which are around ``stmt``.
    """
    result: list[tuple[Interval, ...]] = []
    inner: dict[Var, int] = dict(together)
    for wrote, _, access, extents in accesses(stmt, buffer):
        if wrote == writes:
            result.append(access)
            inner.update(extents)
    return _box(buffer, result, inner, ranges) if result else None


def block_regions(
    body: Stmt, init: Stmt | None, ranges: Ranges
) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """(reads, writes) for a block of this body and init, one region per buffer.

    A reduction's reading of what it accumulates isn't counted as a read.
    """
    parts = [body] if init is None else [init, body]
    local = {s.buffer for p in parts for s, _, _ in scoped(p, {}, {}) if isinstance(s, Alloc)}
    result: dict[bool, dict[Buffer, list[tuple[Interval, ...]]]] = {False: {}, True: {}}
    inner: dict[Var, int] = {}
    for part in parts:
        for wrote, buffer, access, extents in accesses(part):
            if buffer not in local:
                result[wrote].setdefault(buffer, []).append(access)
                inner.update(extents)
    if init is not None:
        for buffer, written in result[True].items():
            others = [r for r in result[False].pop(buffer, []) if r not in written]
            if others:
                result[False][buffer] = others
    reads, writes = (
        tuple(
            BufferRegion(buffer, tuple(_box(buffer, group, inner, ranges)))
            for buffer, group in result[wrote].items()
        )
        for wrote in (False, True)
    )
    return reads, writes
