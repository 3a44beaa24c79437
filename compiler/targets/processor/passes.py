"""A tensorized function for a processor: behaviours for instructions, ordinary memory for buffers.

before                                     after
    acc = alloc(vdla.acc)                      acc = alloc
    alu_add(dst = acc[…], x = …, y = …)        for l: acc[…, l] = …[l] + …[l]
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.targets.processor.description.intrinsics import Tiles, own_lowering
from vdla.compiler.tir.expand import expand, initial
from vdla.compiler.tir.ir import FALSE, Alloc, Block, Evaluate, PrimFunc, Stmt
from vdla.compiler.tir.lower import has_intrinsics
from vdla.compiler.tir.region import block_regions
from vdla.compiler.tir.visitor import replace_buffers, rewrite, walk


def with_inits(func: PrimFunc) -> PrimFunc:
    """A function tensorized with a processor's own instructions, which add to what is there.

    before: block: dot4x16(acc, x, w, start, first=k == 0)
    after:  block init: for l: acc[l] = start[l]; dot4x16(acc, x, w, start, first=False)

    The init then moves before the reduction, as that of every other block does.
    """

    def split(stmt: Stmt) -> Stmt:
        match stmt:
            case Block(body=Evaluate(call)) if own_lowering(call.intrin):
                later = Evaluate(replace(call, first=FALSE))
                return replace(stmt, init=initial(call), body=later)
        return stmt

    return replace(func, body=rewrite(func.body, split))


def to_processor(func: PrimFunc) -> PrimFunc:
    """A tensorized function as a processor can run it: without on-chip memories, and without calls
    but those of a processor's own instructions."""
    body = with_inits(func).body
    if has_intrinsics(body):
        body = rewrite(rewrite(body, _expanded), _with_regions)
    buffers = (stmt.buffer for stmt in walk(body) if isinstance(stmt, Alloc))
    own = {b: replace(b, scope="global", copies=1) for b in buffers if b.scope != "global"}
    return PrimFunc(func.name, func.params, replace_buffers(body, own))


def without_tiles(func: PrimFunc) -> PrimFunc:
    """A processor's function whose products in tile registers are loops, for one without them."""

    def looped(stmt: Stmt) -> Stmt:
        match stmt:
            case Evaluate(call) if isinstance(call.intrin.lowering, Tiles):
                return expand(call)
        return stmt

    return replace(func, body=rewrite(rewrite(func.body, looped), _with_regions))


def _expanded(stmt: Stmt) -> Stmt:
    """A call as its behaviour, unless it is one of a processor's instructions."""
    if isinstance(stmt, Evaluate) and not own_lowering(stmt.call.intrin):
        return expand(stmt.call)
    return stmt


def _with_regions(stmt: Stmt) -> Stmt:
    """A block with the regions of its present body, which an expanded call reads and writes."""
    if not isinstance(stmt, Block):
        return stmt
    ranges = {i.var: (0, i.extent - 1) for i in stmt.iters}
    reads, writes = block_regions(stmt.body, stmt.init, ranges)
    return replace(stmt, reads=reads, writes=writes)
