"""Loops whose guards hold but for the last steps, as two loops: all lanes at once, then the rest.

before: for k in 0..3: for l in 0..16 vectorized: if k*16 + l < 37: y[l] = y[l] + x[k*16 + l]
after:  for k in 0..2: for l in 0..16 vectorized: y[l] = y[l] + x[k*16 + l]
        for l in 0..5 vectorized: y[l] = y[l] + x[32 + l]

On most processors vectors have no lanes that stand still, so a guard of lanes makes a vector's loop
one of single steps. Where they have, by masks, the rest stays a vector with its guard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from vdla.compiler.tir.arith import affine
from vdla.compiler.tir.ir import Alloc, Binary, Const, Expr, For, If, PrimFunc, Seq, Stmt, Var
from vdla.compiler.tir.lower import simplify_stmt
from vdla.compiler.tir.visitor import rewrite, substitute, walk, with_own_loops


def partition_loops(func: PrimFunc, *, masks: bool = False) -> PrimFunc:
    """A function without blocks whose vectors have guards in their last steps alone; with ``masks``
    these keep them."""
    return replace(func, body=rewrite(func.body, partial(_partitioned, masks=masks)))


def _partitioned(stmt: Stmt, masks: bool) -> Stmt:
    """A loop, after those inside it."""
    if not isinstance(stmt, For) or stmt.kind not in ("serial", "unrolled") or stmt.annotations:
        return stmt
    if any(isinstance(s, Alloc) for s in walk(stmt.body)):
        return stmt
    inner = {loop.var: loop for loop in walk(stmt.body) if isinstance(loop, For)}
    guards = [s.cond for s in walk(stmt.body) if isinstance(s, If) and s.orelse is None]
    steps = {_free_steps(cond, stmt, inner) for guard in guards for cond in conjuncts(guard)}
    most = max((n for n in steps if 0 < n < stmt.extent), default=0)
    if not most:
        return stmt
    first = simplify_stmt(replace(stmt, extent=most))
    var = Var(stmt.var.name)
    body = substitute(with_own_loops(stmt.body), {stmt.var: most + var})
    rest = simplify_stmt(For(var, stmt.extent - most, "serial", body))
    return Seq((first, rest if masks else rewrite(rest, _shortened)))


def conjuncts(cond: Expr) -> Iterator[Expr]:
    """The conditions that a conjunction is of."""
    match cond:
        case Binary("and", a, b):
            yield from conjuncts(a)
            yield from conjuncts(b)
        case _:
            yield cond


def _free_steps(cond: Expr, loop: For, inner: dict[Var, For]) -> int:
    """Number of a loop's steps in which a condition holds, whatever the loops inside do; 0 where it
    is no condition of a vector's lanes."""
    match cond:
        case Binary("lt", index, Const(limit)):
            form = affine(index)
        case _:
            return 0
    if form is None:
        return 0
    constant, terms = form
    stride = terms.pop(loop.var, 0)
    known = all(var in inner and k > 0 for var, k in terms.items())
    vectors = any(inner[var].kind == "vectorized" for var in terms if var in inner)
    if stride <= 0 or not known or not vectors:
        return 0
    most = constant + sum(k * (inner[var].extent - 1) for var, k in terms.items())
    return (int(limit) - 1 - most) // stride + 1


def _shortened(stmt: Stmt) -> Stmt:
    """A vector's loop without the lanes that its guard shuts out."""
    match stmt:
        case For(var, extent, "vectorized", If(Binary("lt", index, Const(limit)), then, None)):
            form = affine(index)
            if form is not None and form[1] == {var: 1} and 0 < int(limit) - form[0] < extent:
                return replace(stmt, extent=int(limit) - form[0], body=then)
    return stmt
