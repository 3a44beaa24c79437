"""Instructions that work in place get their operand and their result in one buffer.

before                                     after
    q = alloc(vdla.acc)                        (acc alone)
    alu_rq(dst = q[…], x = acc[…])             alu_rq(dst = acc[…], x = acc[…])

Sound because the operand's stage has no other reader: the copy that ``te`` asks for is a name only.
"""

from __future__ import annotations

from vdla.compiler.tir.ir import Alloc, Buffer, Evaluate, PrimFunc, Stmt
from vdla.compiler.tir.visitor import replace_buffer, rewrite, walk


def unify_inplace(func: PrimFunc) -> PrimFunc:
    """Merges the buffers of every call whose intrinsic is marked ``inplace``."""
    body = func.body
    while (pair := _next_pair(body)) is not None:
        result, operand = pair
        body = _drop_alloc(body, result)
        body = replace_buffer(body, result, operand)
    return PrimFunc(func.name, func.params, body)


def _next_pair(body: Stmt) -> tuple[Buffer, Buffer] | None:
    for stmt in walk(body):
        if isinstance(stmt, Evaluate) and (name := stmt.call.intrin.attrs.get("inplace")):
            result, operand = stmt.call.operands[0].buffer, stmt.call.operand(str(name)).buffer
            if result is not operand and result.shape == operand.shape:
                return result, operand
    return None


def _drop_alloc(body: Stmt, buffer: Buffer) -> Stmt:
    return rewrite(body, lambda s: s.body if isinstance(s, Alloc) and s.buffer is buffer else s)
