"""From a lowered function to a list of instructions in program order, not yet linked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from vdla.compiler.codegen.vdla.fold import Bases, Op, Touch, Unroll, fold
from vdla.compiler.codegen.vdla.leaf import CodegenError, Env, Leaf, find_leaf
from vdla.compiler.target.memory import entries
from vdla.compiler.tir.ir import Alloc, Block, Buffer, For, If, PrimFunc, Seq, Stmt
from vdla.isa.config import Config

__all__ = ["Kernel", "Op", "Touch", "generate"]


@dataclass(frozen=True)
class Kernel:
    """One operator's instructions, before tokens, micro-op placement and DRAM addresses."""

    name: str
    ops: tuple[Op, ...]


def generate(func: PrimFunc, bases: Bases, config: Config) -> Kernel:
    """Unrolls the outer loops and folds each leaf.

    Args:
        func: every leaf tensorized, no virtual threads left.
        bases: the first entry of every on-chip buffer.
        config: the accelerator.
    """
    return Kernel(func.name, tuple(_Generator(bases, config).walk(func.body, {})))


class _Generator:
    def __init__(self, bases: Bases, config: Config) -> None:
        self.first, self.bases, self.config = bases, dict(bases), config
        self.reached: Counter[Buffer] = Counter()  # how often an Alloc was
        self.leaves: dict[int, tuple[Stmt, Leaf | None]] = {}
        self.depth: dict[int, int] = {}  # loops a leaf was found to need unrolled

    def walk(self, stmt: Stmt, env: Env) -> Iterator[Op]:
        leaf = self._leaf(stmt)
        if leaf is not None:
            yield from self._emit(leaf, dict(env), 0)
        elif isinstance(stmt, For):
            for i in range(stmt.extent):
                yield from self.walk(stmt.body, {**env, stmt.var: i})
        elif isinstance(stmt, Seq):
            for each in stmt.stmts:
                yield from self.walk(each, env)
        elif isinstance(stmt, Alloc):
            self._next_copy(stmt.buffer)
            yield from self.walk(stmt.body, env)
        else:
            kind = type(stmt).__name__
            name = stmt.name if isinstance(stmt, Block) else kind
            raise CodegenError(f"{name}: expected a tensorized stage, found {kind}")

    def _next_copy(self, buffer: Buffer) -> None:
        """The copies of a buffer take turns."""
        copy = self.reached[buffer] % buffer.copies
        self.bases[buffer] = self.first[buffer] + copy * entries(buffer, self.config)
        self.reached[buffer] += 1

    def _leaf(self, stmt: Stmt) -> Leaf | None:
        if not isinstance(stmt, For | Block | If):
            return find_leaf(stmt)
        if id(stmt) not in self.leaves:
            self.leaves[id(stmt)] = (stmt, find_leaf(stmt))
        return self.leaves[id(stmt)][1]

    def _emit(self, leaf: Leaf, env: Env, unrolled: int) -> Iterator[Op]:
        if unrolled >= self.depth.get(id(leaf), 0):
            try:
                ops = fold(leaf, env, self.bases, self.config)
            except Unroll:
                self.depth[id(leaf)] = unrolled + 1
            else:
                yield from ops
                return
        if unrolled == len(leaf.loops):
            raise CodegenError(f"{leaf.name}: expected an access that {leaf.call.intrin.name} has")
        var, extent = leaf.loops[unrolled]
        for i in range(extent):
            yield from self._emit(leaf, {**env, var: i}, unrolled + 1)
