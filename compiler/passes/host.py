"""A tensorized function for a processor: behaviours for instructions, ordinary memory for buffers.

before                                     after
    acc = alloc(vdla.acc)                      acc = alloc
    alu_add(dst = acc[…], x = …, y = …)        for l: acc[…, l] = …[l] + …[l]
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.tir.intrin import expand_intrinsics
from vdla.compiler.tir.ir import Alloc, PrimFunc
from vdla.compiler.tir.visitor import replace_buffer, walk


def to_host(func: PrimFunc) -> PrimFunc:
    """The function without intrinsic calls and on-chip scopes."""
    body = expand_intrinsics(func.body)
    for stmt in list(walk(body)):
        if isinstance(stmt, Alloc) and stmt.buffer.scope != "global":
            new = replace(stmt.buffer, scope="global", copies=1)
            body = replace_buffer(body, stmt.buffer, new)
    return PrimFunc(func.name, func.params, body)
