"""Memory that functions take from ``malloc`` for temporaries: what an arena for them has to hold.

A function gives each temporary back before those around it, so that an arena may be a stack.
"""

from __future__ import annotations

from vdla.compiler.targets.processor.codegen.emit_memory import STACK_BYTES, temporary_bytes
from vdla.compiler.targets.processor.codegen.emit_parallel import shares
from vdla.compiler.targets.processor.codegen.flat import flat_function
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.tir.ir import Alloc, For, If, PrimFunc, Seq, Stmt
from vdla.support.numbers import ceil_div

ALIGNMENT_BYTES = 16  # of what malloc gives: no type of C needs more


def scratch_bytes(func: PrimFunc, processor: Processor) -> int:
    """The most bytes that one call of a function has from ``malloc`` at once, each temporary's
    rounded up to ALIGNMENT_BYTES; 0 where it never calls it.

    With threads each task of a parallel loop may have its own at the same time.

    Raises:
        IRError: it isn't a function that code can be emitted for.
    """
    return _most(flat_function(func, processor).body, processor.threads)


def _most(stmt: Stmt, threads: bool) -> int:
    """The most that a statement has at once; ``threads`` share the outermost parallel loops."""
    match stmt:
        case Alloc(buffer):
            size = temporary_bytes(buffer)
            own = ceil_div(size, ALIGNMENT_BYTES) * ALIGNMENT_BYTES if size > STACK_BYTES else 0
            return own + _most(stmt.body, threads)
        case For() if stmt.kind == "parallel" and threads:
            return shares(stmt.extent)[1] * _most(stmt.body, threads=False)
        case For():
            return _most(stmt.body, threads)
        case Seq(stmts):
            return max((_most(inner, threads) for inner in stmts), default=0)
        case If():
            sides = [stmt.then, *([] if stmt.orelse is None else [stmt.orelse])]
            return max(_most(side, threads) for side in sides)
    return 0
