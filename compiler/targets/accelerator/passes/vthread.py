"""Virtual threads become one sequence.

A loop whose steps are threads is interleaved, instruction by instruction:

before                                  after
    for v in 2 vthread:                     a0 = alloc; a1 = alloc
        a = alloc                           for k:
        for k:                                  load a0 (v = 0)
            load a (v)                          load a1 (v = 1)
            gemm a (v)                          gemm a0 (v = 0)
                                                gemm a1 (v = 1)

Each thread gets its own copy of every buffer allocated inside; leaves of one engine that stand side
by side stay together. With two copies, one thread computes while the other loads: latency hiding.

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

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

from vdla.compiler.targets.accelerator.description.lowering import lowering_of
from vdla.compiler.targets.accelerator.description.memory import ACC
from vdla.compiler.tir.ir import (
    THREADS,
    ZERO,
    Alloc,
    Block,
    Evaluate,
    Expr,
    For,
    If,
    PrimFunc,
    Seq,
    Stmt,
    Var,
    const,
    seq,
)
from vdla.compiler.tir.visitor import map_stmt, replace_buffer, rewrite, substitute, walk
from vdla.isa.instructions import Engine


def inject_virtual_threads(func: PrimFunc) -> PrimFunc:
    """Lowers every loop bound to a virtual thread, innermost first."""
    return PrimFunc(func.name, func.params, _lower(func.body))


def _lower(stmt: Stmt) -> Stmt:
    lowered = map_stmt(stmt, _lower)
    if isinstance(lowered, For) and lowered.kind == "vthread":
        threads = dict(lowered.annotations).get(THREADS)
        if threads is None:
            return _Interleave(lowered.var, lowered.extent).run(lowered.body)
        lowered = For(lowered.var, lowered.extent, "serial", _own(lowered.body, int(threads)))
    if isinstance(lowered, For) and lowered.extent == 1:
        return substitute(lowered.body, {lowered.var: ZERO})
    return lowered


def _own(body: Stmt, threads: int) -> Stmt:
    """As many copies of every accumulator allocated in a step as there are threads."""
    for stmt in list(walk(body)):
        if isinstance(stmt, Alloc) and stmt.buffer.scope == ACC:
            new = replace(stmt.buffer, copies=stmt.buffer.copies * threads)
            body = replace_buffer(body, stmt.buffer, new)
    return body


class _Interleave:
    """Pushes one thread loop down to the leaves."""

    def __init__(self, var: Var, extent: int) -> None:
        self.var, self.extent = var, extent

    def run(self, body: Stmt) -> Stmt:
        """The interleaved body."""
        return self.visit([body] * self.extent)

    def visit(self, copies: list[Stmt]) -> Stmt:
        """One statement, given each thread's version of it."""
        stmt = copies[0]
        if engine(stmt) is not None:
            return seq(*(self.instance(t, s) for t, s in enumerate(copies)))
        if isinstance(stmt, Alloc):
            return self.allocations(copies)
        if isinstance(stmt, Seq):
            parts = list(zip(*(s.stmts for s in copies if isinstance(s, Seq)), strict=True))
            groups = groupby(parts, key=lambda part: _group(part[0]))
            return seq(*(self.group([list(p) for p in parts]) for _, parts in groups))
        if isinstance(stmt, For):
            return replace(stmt, body=self.visit([s.body for s in copies if isinstance(s, For)]))
        return seq(*(self.instance(t, s) for t, s in enumerate(copies)))

    def group(self, parts: list[list[Stmt]]) -> Stmt:
        """Neighbouring leaves of one engine: thread by thread, each thread's in order."""
        if len(parts) == 1:
            return self.visit(parts[0])
        return seq(*(self.instance(t, p[t]) for t in range(self.extent) for p in parts))

    def allocations(self, copies: list[Stmt]) -> Stmt:
        """One allocation per thread."""
        buffers, bodies = [], []
        for thread, stmt in enumerate(copies):
            assert isinstance(stmt, Alloc)
            old = stmt.buffer
            new = replace(old, name=f"{old.name}.{thread}")
            buffers.append(new)
            bodies.append(replace_buffer(stmt.body, old, new))
        body = self.visit(bodies)
        for buffer in reversed(buffers):
            body = Alloc(buffer, body)
        return body

    def instance(self, thread: int, stmt: Stmt) -> Stmt:
        """A statement of one thread, with loop variables of its own."""
        loops = [each for each in walk(stmt) if isinstance(each, For)]
        fresh: dict[Var, Expr] = {each.var: Var(each.var.name) for each in loops}
        return rewrite(
            substitute(stmt, {**fresh, self.var: const(thread)}),
            lambda s: _with_var(s, fresh),
        )


def _with_var(stmt: Stmt, fresh: Mapping[Var, Expr]) -> Stmt:
    if not isinstance(stmt, For):
        return stmt
    var = fresh[stmt.var]
    assert isinstance(var, Var)
    return replace(stmt, var=var)


def engine(stmt: Stmt) -> Engine | None:
    """The engine that runs a leaf's instructions; None where a statement has more than one leaf."""
    while not isinstance(stmt, Evaluate):
        if isinstance(stmt, For | Block):
            stmt = stmt.body
        elif isinstance(stmt, If) and stmt.orelse is None:
            stmt = stmt.then
        else:
            return None
    return lowering_of(stmt.call.intrin).emits[0].instruction.engine


def _group(stmt: Stmt) -> tuple[Engine | None, int]:
    """What neighbours must share to stay together: the engine; what has none stands alone."""
    found = engine(stmt)
    return found, 0 if found is not None else id(stmt)
