"""Virtual threads of a GPU's thread become one sequence in it.

before                                       after
    for v in 2 vthread:                          alloc L.0: float32[1]; alloc L.1: float32[1]
        alloc L: float32[1]                      for k in 4:
        for k in 4:                                  S[tx] = A[k, tx]
            S[tx] = A[k, tx]                         L.0[0] = L.0[0] + S[tx]
            L[0] = L[0] + S[v * 8 + tx]              L.1[0] = L.1[0] + S[8 + tx]

A thread with several of them computes elements that lie apart: neighbouring threads then load and
store neighbouring elements, and read different banks of shared memory. What the group loads into
shared memory is loaded once for all of them.
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.tir.interleave import Interleave
from vdla.compiler.tir.ir import THREADS, For, PrimFunc, Stmt
from vdla.compiler.tir.lower import simplify_stmt
from vdla.compiler.tir.visitor import map_stmt


def inject_virtual_threads(func: PrimFunc) -> PrimFunc:
    """The function without loops over virtual threads.

    Args:
        func: what ``deal_threads`` gives.

    Raises:
        NoCodeError: a loop's steps are dealt to some virtual threads, which take turns on an
            accelerator alone.
    """

    def visit(stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, visit)
        if not isinstance(new, For) or new.kind != "vthread":
            return new
        if THREADS in dict(new.annotations):
            raise NoCodeError(
                f"{func.name}: expected a virtual thread for each step of {new.var.name}, found "
                "threads that take turns, which a GPU hasn't"
            )
        return Interleave(new.var, new.extent, once=True).run(new.body)

    return replace(func, body=simplify_stmt(visit(func.body)))
