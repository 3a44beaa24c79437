"""Virtual threads of one thread become one sequence, statement by statement.

before                                  after
    for v in 2 vthread:                     alloc a.0; alloc a.1
        alloc a                             for k:
        for k:                                  a.0[0] = f(0, k)
            a[0] = f(v, k)                      a.1[0] = f(1, k)
            g(a[0], v)                          g(a.0[0], 0)
                                                g(a.1[0], 1)

Each virtual thread gets its own copy of every buffer that is made inside. A target says which
statements are leaves, and which of them stay together where they stand side by side. It also says
whether a statement that is the same for all virtual threads, and whose doing it again changes
nothing, is done once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from vdla.compiler.tir.ir import (
    Alloc,
    For,
    If,
    Seq,
    Stmt,
    Store,
    Var,
    const,
    seq,
)
from vdla.compiler.tir.visitor import (
    direct_exprs,
    replace_buffers,
    stmt_loads,
    substitute,
    uses,
    walk,
    with_own_loops,
)

Group = Callable[[Stmt], Hashable | None]  # of a leaf; None for what has more than one


@dataclass(frozen=True)
class Interleave:
    """Pushes one loop over virtual threads down to the leaves.

    Attributes:
        var: the loop's variable.
        extent: how many virtual threads there are.
        group: what neighbouring leaves must share to stay together; None for what is no leaf.
        once: whether what is the same for all is done once.
    """

    var: Var
    extent: int
    group: Group = lambda stmt: None
    once: bool = False

    def run(self, body: Stmt) -> Stmt:
        """The interleaved body."""
        return self.visit([body] * self.extent)

    def visit(self, copies: list[Stmt]) -> Stmt:
        """One statement, given each thread's version of it."""
        stmt = copies[0]
        if self.once and all(copy is stmt for copy in copies) and self._is_shared(stmt):
            return stmt
        if self.group(stmt) is not None:
            return seq(*(self.instance(t, s) for t, s in enumerate(copies)))
        if isinstance(stmt, Alloc):
            return self.allocations(copies)
        if isinstance(stmt, Seq):
            parts = list(zip(*(s.stmts for s in copies if isinstance(s, Seq)), strict=True))
            groups = groupby(parts, key=lambda part: self._together(part[0]))
            return seq(*(self.neighbours([list(p) for p in parts]) for _, parts in groups))
        if isinstance(stmt, For):
            return replace(stmt, body=self.visit([s.body for s in copies if isinstance(s, For)]))
        return seq(*(self.instance(t, s) for t, s in enumerate(copies)))

    def neighbours(self, parts: list[list[Stmt]]) -> Stmt:
        """Neighbouring leaves of one group: thread by thread, each thread's in order."""
        if len(parts) == 1:
            return self.visit(parts[0])
        return seq(*(self.instance(t, p[t]) for t in range(self.extent) for p in parts))

    def allocations(self, copies: list[Stmt]) -> Stmt:
        """One allocation per thread of each buffer that is allocated here, one directly inside the
        other."""
        runs = [list(self._run(stmt)) for stmt in copies]
        new = [
            {a.buffer: replace(a.buffer, name=f"{a.buffer.name}.{thread}") for a in run}
            for thread, run in enumerate(runs)
        ]
        body = self.visit(
            [replace_buffers(r[-1].body, own) for r, own in zip(runs, new, strict=True)]
        )
        for allocs in reversed(list(zip(*runs, strict=True))):
            for alloc, own in reversed(list(zip(allocs, new, strict=True))):
                body = Alloc(own[alloc.buffer], body)
        return body

    def _run(self, stmt: Stmt) -> Iterator[Alloc]:
        """Allocations, one directly inside the other, that have no group."""
        while isinstance(stmt, Alloc) and self.group(stmt) is None:
            yield stmt
            stmt = stmt.body

    def instance(self, thread: int, stmt: Stmt) -> Stmt:
        """A statement of one thread, with loop variables of its own."""
        return substitute(with_own_loops(stmt), {self.var: const(thread)})

    def _together(self, stmt: Stmt) -> tuple[Hashable | None, int]:
        """Key that neighbours must share to stay together; what has no group stands alone."""
        result = self.group(stmt)
        return result, 0 if result is not None else id(stmt)

    def _is_shared(self, stmt: Stmt) -> bool:
        """Whether a statement is the same for all threads, and doing it again changes nothing."""
        parts = list(walk(stmt))
        if not all(isinstance(part, For | If | Seq | Store) for part in parts):
            return False
        written = {part.buffer for part in parts if isinstance(part, Store)}
        if any(load.buffer in written for load in stmt_loads(stmt)):
            return False
        return not any(uses(e, {self.var}) for part in parts for e in direct_exprs(part))
