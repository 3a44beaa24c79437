"""Virtual threads become one sequence.

A loop whose steps are threads is interleaved, instruction by instruction:

before                                  after
    for v in 2 vthread:                     a0 = alloc; a1 = alloc
        a = alloc                           for k:
        for k:                                  load a0 (v = 0)
            load a (v)                          load a1 (v = 1)
            gemm a (v)                          gemm a0 (v = 0)
                                                gemm a1 (v = 1)

Each thread gets its own copy of every buffer allocated inside; leaves that load, that compute or
that store stay together where they stand side by side. With two copies, one thread computes while
the other loads: latency hiding.

A loop whose steps are dealt to threads stays a loop; the threads take turns, a step each:

before                                  after
    for t in 5 vthread @threads=2:          for t in 5:
        c = alloc(vdla.acc)                     c = alloc(vdla.acc) x2
        i = alloc(vdla.inp) x4                  i = alloc(vdla.inp) x4
        load i (t)                              load i (t)
        gemm c, i                               gemm c, i
        store c (t)                             store c (t)

A thread owns the accumulators it computes in, so each gets a copy of those per thread: one thread's
step is stored while the next one's is computed. What is read from INP and WGT streams by in step
order; the threads share those buffers, as deep as ``double_buffer`` made them.
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.targets.accelerator.description.lowering import lowering_of
from vdla.compiler.targets.accelerator.description.memory import ACC
from vdla.compiler.tir.interleave import Interleave
from vdla.compiler.tir.ir import (
    THREADS,
    ZERO,
    Alloc,
    Block,
    Evaluate,
    For,
    If,
    PrimFunc,
    Stmt,
)
from vdla.compiler.tir.visitor import map_stmt, replace_buffers, substitute, walk
from vdla.isa.instructions import Load, LoopNest, Store


def inject_virtual_threads(func: PrimFunc) -> PrimFunc:
    """Lowers every loop bound to a virtual thread, innermost first."""
    return PrimFunc(func.name, func.params, _lower(func.body))


def _lower(stmt: Stmt) -> Stmt:
    lowered = map_stmt(stmt, _lower)
    if isinstance(lowered, For) and lowered.kind == "vthread":
        threads = dict(lowered.annotations).get(THREADS)
        if threads is None:
            return Interleave(lowered.var, lowered.extent, work).run(lowered.body)
        lowered = For(lowered.var, lowered.extent, "serial", _own(lowered.body, int(threads)))
    if isinstance(lowered, For) and lowered.extent == 1:
        return substitute(lowered.body, {lowered.var: ZERO})
    return lowered


def _own(body: Stmt, threads: int) -> Stmt:
    """Gives every accumulator that a step allocates one copy for each thread."""
    buffers = (stmt.buffer for stmt in walk(body) if isinstance(stmt, Alloc))
    own = {b: replace(b, copies=b.copies * threads) for b in buffers if b.scope == ACC}
    return replace_buffers(body, own)


def work(stmt: Stmt) -> str | None:
    """Kind of a leaf's instructions: load, compute or store; None where a statement has more than
    one leaf."""
    while not isinstance(stmt, Evaluate):
        if isinstance(stmt, For | Block):
            stmt = stmt.body
        elif isinstance(stmt, If) and stmt.orelse is None:
            stmt = stmt.then
        else:
            return None
    instruction = lowering_of(stmt.call.intrin).emits[0].instruction
    kinds = {"load": Load, "compute": LoopNest, "store": Store}
    return next(name for name, cls in kinds.items() if issubclass(instruction, cls))
