"""Fused loops become nested ones again where an index takes them apart.

before                                      after
    for f in 6:                                 for f_o in 3:
        load a (x = f // 2, y = f % 2)              for f_i in 2:
                                                        load a (x = f_o, y = f_i)

An instruction's addresses are linear in its loops, which a quotient and a remainder aren't.
Threads, and loops whose extent the divisor doesn't divide, stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vdla.compiler.tir.arith import simplify
from vdla.compiler.tir.ir import Binary, Const, Expr, For, PrimFunc, Stmt, Var
from vdla.compiler.tir.visitor import direct_exprs, map_stmt, rewrite, substitute, walk, walk_expr

Ranges = dict[Var, tuple[int, int]]
KINDS = ("serial", "unrolled")


def split_fused(func: PrimFunc) -> PrimFunc:
    """Splits every loop of which an index is the quotient or the remainder."""
    return replace(func, body=_split(func.body, {}))


def _split(stmt: Stmt, ranges: Ranges) -> Stmt:
    if not isinstance(stmt, For):
        return map_stmt(stmt, lambda child: _split(child, ranges))
    divisor = _divisor(stmt) if stmt.kind in KINDS else None
    if divisor is None:
        inside = {**ranges, stmt.var: (0, stmt.extent - 1)}
        return replace(stmt, body=_split(stmt.body, inside))
    outer, inner = Var(f"{stmt.var.name}_o"), Var(f"{stmt.var.name}_i")
    parts = {outer: (0, stmt.extent // divisor - 1), inner: (0, divisor - 1)}
    known = {**ranges, **parts}
    body = substitute(stmt.body, {stmt.var: outer * divisor + inner})
    body = rewrite(body, fe=lambda e: simplify(e, known))
    nest = replace(stmt, var=inner, extent=divisor, body=body)
    return _split(replace(stmt, var=outer, extent=stmt.extent // divisor, body=nest), ranges)


def _divisor(loop: For) -> int | None:
    """The largest number that some index divides the loop's variable by, and that divides its
    steps evenly."""
    result = {
        part.b.value
        for stmt in walk(loop.body)
        for expr in direct_exprs(stmt)
        for part in _quotients(expr, loop.var)
        if isinstance(part.b, Const)
    }
    even = [int(n) for n in result if 1 < n < loop.extent and loop.extent % int(n) == 0]
    return max(even, default=None)


def _quotients(expr: Expr, var: Var) -> Iterator[Binary]:
    for part in walk_expr(expr):
        if isinstance(part, Binary) and part.op in ("floordiv", "floormod") and part.a is var:
            yield part
