"""Which kinds of statements and loops may exist after each pass over loops.

A schedule leaves all of them. From then on every pass takes some away, so code generators have
fewer to know; ``verify(func, spec)`` checks that, beside the rules of meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vdla.compiler.tir.ir import (
    LOOP_KINDS,
    Block,
    For,
    IRError,
    PrimFunc,
    Stmt,
)
from vdla.compiler.tir.visitor import walk


@dataclass(frozen=True)
class LoopSpec:
    """Kinds of statements and of loops that a function may not hold any more after the pass called
    ``name``."""

    name: str
    ended: frozenset[type[Stmt]] = frozenset()
    ended_loops: frozenset[str] = frozenset()

    def after(self, name: str, *, loops: frozenset[str] = frozenset()) -> LoopSpec:
        """Specification after one more pass, which leaves no loops of some kinds."""
        return replace(self, name=name, ended_loops=self.ended_loops | loops)

    def check(self, func: PrimFunc) -> None:
        """Raises IRError where a function holds what it may not hold."""
        for stmt in walk(func.body):
            if type(stmt) in self.ended:
                raise IRError(
                    f"{func.name}: after {self.name}: expected no {type(stmt).__name__}, found one"
                )
            if isinstance(stmt, For) and stmt.kind in self.ended_loops:
                known = ", ".join(k for k in LOOP_KINDS if k not in self.ended_loops)
                raise IRError(
                    f"{func.name}: after {self.name}: expected loops of kind {known}, "
                    f"found {stmt.var.name} of kind {stmt.kind}"
                )


FLAT = LoopSpec("flatten_blocks", ended=frozenset((Block,)))
