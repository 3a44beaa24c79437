"""From a lowered function to a list of instructions in program order, not yet linked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vdla.compiler.targets.accelerator.codegen.axes import Bases, Unroll
from vdla.compiler.targets.accelerator.codegen.bound import check_length, steps
from vdla.compiler.targets.accelerator.codegen.fills import repeated_fills
from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError, Env, Leaf, find_leaf
from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.compiler.targets.accelerator.codegen.pipeline import (
    Mark,
    by_engine,
    cuts_by_engine,
    is_pipelined,
    pipelined,
)
from vdla.compiler.targets.accelerator.codegen.select import Site
from vdla.compiler.targets.accelerator.description.memory import entries
from vdla.compiler.tir.ir import (
    Alloc,
    Buffer,
    Evaluate,
    For,
    If,
    Prefetch,
    PrimFunc,
    Seq,
    Stmt,
    Store,
)
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.visitor import stores, walk
from vdla.isa.config import Config
from vdla.isa.instructions import Store as Output
from vdla.isa.registers import most_instructions
from vdla.isa.ring import Ring, ring_of

__all__ = ["Access", "Kernel", "Op", "generate"]


@dataclass(frozen=True)
class Kernel:
    """One function's instructions, before tokens, micro-op placement and DRAM addresses.

    ``tensors`` are the bytes of what lies in DRAM, by name: the parameters, then intermediates.
    With ``streams`` its micro-ops needn't all be on chip at once.
    """

    name: str
    ops: tuple[Op, ...]
    tensors: Mapping[str, int]
    streams: bool = False


def generate(func: PrimFunc, bases: Bases, config: Config) -> Kernel:
    """Unrolls the outer loops and selects the instructions of each leaf.

    Args:
        func: every leaf tensorized, no virtual threads left.
        bases: the first entry of every on-chip buffer.
        config: the accelerator.

    Raises:
        CodegenError: no instruction expresses a leaf, or there would be more instructions than a
            program holds; that is known before any is made.
    """
    tensors = _in_dram(func)
    if steps(func.body) > most_instructions(config) - 1:  # loops may still fold into few
        check_length(func, _Generator(bases, config).estimate(func.body, {}), config)
    stream = list(_Generator(bases, config).walk(func.body, {}))
    repeated = {id(op) for op in repeated_fills([each for each in stream if isinstance(each, Op)])}
    ops = tuple(pipelined(each for each in stream if id(each) not in repeated))
    return Kernel(func.name, ops, tensors)


def _in_dram(func: PrimFunc) -> dict[str, int]:
    """The bytes of every buffer in DRAM, by name."""
    inner = (s.buffer for s in walk(func.body) if isinstance(s, Alloc))
    buffers = [b for b in (*func.params, *inner) if b.scope == "global"]
    for b in buffers:
        if b.alignments:
            raise CodegenError(
                f"{b.name}: expected elements that lie densely, as DMA moves them, found "
                "storage_align; it is for the CPU"
            )
    return {b.name: b.copies * b.size * np.dtype(b.dtype).itemsize for b in buffers}


def _not_an_instruction(stmt: Stmt) -> str:
    """Description, for an error, of a statement that no instruction does."""
    if isinstance(stmt, Prefetch):
        return (
            f"{stmt.region.buffer.name}: expected no prefetch, which is for the CPU, found one; "
            "double_buffer the stage that loads it on chip"
        )
    if isinstance(stmt, If):
        result = f"a condition on part of it, {show(stmt.cond)}; split its loops evenly"
    elif isinstance(stmt, Store):
        result = (
            "plain stores; make an instruction of its inner loop with "
            f's["{stmt.buffer.name}"].tensorize(axis, vdla.intrinsics(config))'
        )
    else:
        result = type(stmt).__name__
    stage = next((s.buffer.name for s in stores(stmt)), "program")
    return f"{stage}: expected a tensorized stage, found {result}"


class _Generator:
    """Walks a function in program order and gives the instructions of every leaf."""

    def __init__(self, bases: Bases, config: Config) -> None:
        self.first, self.bases, self.config = bases, dict(bases), config
        self.reached: Counter[Buffer] = Counter()  # how often each buffer's Alloc was reached
        self.sizes: dict[Buffer, int] = {}  # of one copy
        self.leaves: dict[int, tuple[Stmt, Leaf | None]] = {}
        self.depth: dict[int, int] = {}  # how many of its loops each leaf needs unrolled, by now
        self.sites: dict[tuple[int, int], Site] = {}  # per leaf and loops unrolled

    @cached_property
    def ring(self) -> Ring:
        """The config's engines, where a loop's steps are cut by them."""
        return ring_of(self.config)

    def walk(self, stmt: Stmt, env: Env) -> Iterator[Op | Mark]:
        """The instructions of a statement, with the outer loops at the values in ``env``; between
        them, where steps of pipelined loops and their parts begin and end."""
        leaf = self._leaf(stmt)
        if leaf is not None:
            yield from self._emit(leaf, dict(env), 0)
        elif isinstance(stmt, For) and is_pipelined(stmt):
            for i in range(stmt.extent):
                yield Mark.BEGIN
                yield from self._walk_step(stmt, {**env, stmt.var: i})
                yield Mark.END
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
            raise CodegenError(_not_an_instruction(stmt))

    def _walk_step(self, loop: For, env: Env) -> Iterator[Op | Mark]:
        """One step of a pipelined loop, cut into its parts."""
        if cuts_by_engine(loop):
            return by_engine(self.walk(loop.body, env), self.ring)
        return self._walk_parts(loop.body, env)

    def _walk_parts(self, stmt: Stmt, env: Env) -> Iterator[Op | Mark]:
        """One step of a pipelined loop, cut behind each statement that stores."""
        while isinstance(stmt, Alloc):
            self._next_copy(stmt.buffer)
            stmt = stmt.body
        for each in stmt.stmts if isinstance(stmt, Seq) else (stmt,):
            stored = False
            for op in self.walk(each, env):
                stored |= isinstance(op, Op) and isinstance(op.instruction, Output)
                yield op
            if stored:
                yield Mark.CUT

    def estimate(self, stmt: Stmt, env: Env) -> int:
        """The instructions of a statement, if every step of a loop has as many as its first, and
        one where a guard leaves that nothing."""
        leaf = self._leaf(stmt)
        if leaf is not None:
            return self._estimate_leaf(leaf, env, 0)
        if isinstance(stmt, For):
            return stmt.extent * self.estimate(stmt.body, {**env, stmt.var: 0})
        if isinstance(stmt, Seq):
            return sum(self.estimate(each, env) for each in stmt.stmts)
        if isinstance(stmt, Alloc):
            self._next_copy(stmt.buffer)
            return self.estimate(stmt.body, env)
        raise CodegenError(_not_an_instruction(stmt))

    def _estimate_leaf(self, leaf: Leaf, env: Env, unrolled: int) -> int:
        try:
            return max(len(self._site(leaf, unrolled).ops(env, self.bases)), 1)
        except Unroll:
            if unrolled == len(leaf.loops):
                raise self._unfit(leaf) from None
            var, extent = leaf.loops[unrolled]
            return extent * self._estimate_leaf(leaf, {**env, var: 0}, unrolled + 1)

    def _next_copy(self, buffer: Buffer) -> None:
        """Moves a buffer to its next copy; they take turns, one each time the Alloc is reached."""
        copy = self.reached[buffer] % buffer.copies
        if buffer not in self.sizes:
            in_dram = buffer not in self.first
            self.sizes[buffer] = buffer.size if in_dram else entries(buffer, self.config)
        self.bases[buffer] = self.first.get(buffer, 0) + copy * self.sizes[buffer]
        self.reached[buffer] += 1

    def _leaf(self, stmt: Stmt) -> Leaf | None:
        if id(stmt) not in self.leaves:
            self.leaves[id(stmt)] = (stmt, find_leaf(stmt))
        return self.leaves[id(stmt)][1]

    def _emit(self, leaf: Leaf, env: Env, unrolled: int) -> Iterator[Op]:
        if unrolled >= self.depth.get(id(leaf), 0):
            try:
                ops = self._site(leaf, unrolled).ops(env, self.bases)
            except Unroll:
                self.depth[id(leaf)] = unrolled + 1
            else:
                yield from ops
                return
        if unrolled == len(leaf.loops):
            raise self._unfit(leaf)
        var, extent = leaf.loops[unrolled]
        for i in range(extent):
            yield from self._emit(leaf, {**env, var: i}, unrolled + 1)

    def _unfit(self, leaf: Leaf) -> CodegenError:
        return CodegenError(
            f"{leaf.name}: expected an access whose steps and sizes {leaf.call.intrin.name}'s "
            f"fields hold (config {self.config.name}), found {show(Evaluate(leaf.call))}"
        )

    def _site(self, leaf: Leaf, unrolled: int) -> Site:
        key = id(leaf), unrolled
        if key not in self.sites:
            self.sites[key] = Site(leaf, unrolled, self.config)
        return self.sites[key]
