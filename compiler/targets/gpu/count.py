"""Counts of kernels' accesses to global memory, which is what tiles are for."""

from __future__ import annotations

from vdla.compiler.tir.ir import GLOBAL, For, PrimFunc, Stmt
from vdla.compiler.tir.visitor import direct_exprs, loads, stmt_children


def global_loads(func: PrimFunc) -> int:
    """Number of elements that a function's kernels load from global memory, all threads together.

    Conditions count as if they held.

    Args:
        func: kernels, as ``passes.to_kernels`` gives them.
    """
    return _loads(func.body, 1)


def _loads(stmt: Stmt, times: int) -> int:
    """The loads of a statement that runs so many times."""
    if isinstance(stmt, For):
        times *= stmt.extent
    own = sum(x.buffer.scope == GLOBAL for e in direct_exprs(stmt) for x in loads(e))
    return own * times + sum(_loads(child, times) for child in stmt_children(stmt))
