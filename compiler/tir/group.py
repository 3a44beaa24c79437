"""Runs kernels with all threads of a group side by side, and says what is wrong with them.

Where the loops of a kernel's grid and of its threads stand around everything else, as the GPU's
passes leave them, ``run_groups`` is to kernels what ``interp.run`` is to other functions:

- Groups run one after the other. All threads of a group do one statement before any does the next.
- A buffer whose Alloc is inside the loops over threads is each thread's own; one whose Alloc is
  inside the loops over groups is its group's; others are everybody's.
- Threads for which a condition doesn't hold wait at its end.

Wrong is:

    race                 an element that one thread writes, and another one of its group reads or
                         writes with no barrier in between, of one value or of another; or that one
                         group writes and another one reads or writes, in one kernel
    divergent barrier    one that some threads of a group come to, and others don't
    uninitialized read   of an element of a buffer that nothing was written to since its Alloc
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vdla.compiler.tir.expand import expand_intrinsics
from vdla.compiler.tir.interp import Env, Interpreter, Mask, check_arrays
from vdla.compiler.tir.ir import (
    BLOCK_TAGS,
    Alloc,
    Barrier,
    Buffer,
    Expr,
    For,
    If,
    Load,
    Prefetch,
    PrimFunc,
    Seq,
    Stmt,
    Store,
)
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.trail import Coordinates, Finding, Trail

Array = npt.NDArray[Any]


def run_groups(
    func: PrimFunc, arrays: Sequence[Array], checked: bool = True
) -> tuple[Finding, ...]:
    """Runs kernels on one array per parameter, in place.

    Args:
        func: without blocks; its kernels one behind the other.
        arrays: C-contiguous, of the parameters' shapes and dtypes, in their order.
        checked: whether to look for what is wrong.

    Returns:
        What is wrong, each pair of statements once.

    Raises:
        InterpError: an array doesn't fit its parameter, or an access is out of bounds.
    """
    check_arrays(func, arrays)
    machine = _Groups(checked)
    machine.memory.update(zip(func.params, arrays, strict=True))
    with np.errstate(all="ignore"):
        machine.run(expand_intrinsics(func.body), {}, None)
    return tuple(machine.findings.values())


@dataclass
class _Group:
    """The group that runs: its ``number``, its threads' coordinates, and how many barriers they
    have passed; ``own`` are the buffers that each thread has for itself."""

    number: int
    block: Coordinates
    sizes: Coordinates
    own: set[Buffer] = field(default_factory=set)

    @property
    def count(self) -> int:
        """How many threads it has."""
        return prod(self.sizes)

    def thread(self, number: int) -> Coordinates:
        """A thread's coordinates."""
        return tuple(int(n) for n in np.unravel_index(number, self.sizes or (1,)))


class _Groups(Interpreter):
    """The state of one run; inside a kernel, values are one for each thread."""

    def __init__(self, checked: bool) -> None:
        super().__init__()
        self.checked = checked
        self.findings: dict[tuple[Any, ...], Finding] = {}
        self.group: _Group | None = None
        self.kernel, self.epoch = 0, 0
        self.unset: dict[Buffer, Array] = {}  # elements that nothing was written to
        self.threads: dict[Buffer, Trail] = {}
        self.groups: dict[Buffer, Trail] = {}
        self.blocks: list[Coordinates] = []
        self.statements: list[Stmt] = []
        self.numbers: dict[int, int] = {}
        self.statement: Stmt | None = None

    # --- statements ---

    def run(self, stmt: Stmt, env: Env, mask: Mask) -> None:
        """Runs one statement, for the threads of the mask."""
        if self.group is None:
            if isinstance(stmt, For) and stmt.kind == "thread":
                self.grid_of_groups(stmt, env)
                return
            if isinstance(stmt, Alloc):
                self.allocate(stmt.buffer, stmt.buffer.span)
                self.run(stmt.body, env, mask)
                return
            if isinstance(stmt, Seq):
                for inner in stmt.stmts:
                    self.run(inner, env, mask)
                return
            self.one_group(stmt, env, (), 0, [], [])
            return
        match stmt:
            case For(var, extent, _, body):
                for i in range(extent):
                    env[var] = np.int32(i)  # type: ignore[assignment]
                    self.run(body, env, mask)
            case Seq(stmts):
                for inner in stmts:
                    self.run(inner, env, mask)
            case Alloc(buffer, body):
                self.group.own.add(buffer)
                self.allocate(buffer, buffer.span * self.group.count)
                self.run(body, env, mask)
            case If():
                self.branch(stmt, env, mask)
            case Store():
                self.store_all(stmt, env, mask)
            case Barrier():
                self.barrier(stmt, mask)
            case Prefetch():
                pass
            case _:
                super().run(stmt, env, mask)

    def allocate(self, buffer: Buffer, size: int) -> None:
        """A buffer of so many elements."""
        self.memory[buffer] = np.zeros(size, buffer.dtype)
        self.unset[buffer] = np.ones(size, bool)
        self.threads.pop(buffer, None)

    def grid_of_groups(self, nest: Stmt, env: Env) -> None:
        """A kernel: its groups, one after the other."""
        grid: list[For] = []
        threads: list[For] = []
        shared: list[Buffer] = []
        own: list[Buffer] = []
        inner = nest
        while isinstance(inner, Alloc) or (isinstance(inner, For) and inner.kind == "thread"):
            if isinstance(inner, For):
                (grid if inner.thread_tag in BLOCK_TAGS else threads).append(inner)
            else:
                (own if threads else shared).append(inner.buffer)
            inner = inner.body
        self.kernel += 1
        self.groups.clear()
        self.blocks = list(product(*(range(loop.extent) for loop in grid)))
        for number, block in enumerate(self.blocks):
            for loop, value in zip(grid, block, strict=True):
                env[loop.var] = np.int32(value)  # type: ignore[assignment]
            for buffer in shared:
                self.allocate(buffer, buffer.span)
            self.one_group(inner, env, block, number, threads, own)

    def one_group(
        self,
        body: Stmt,
        env: Env,
        block: Coordinates,
        number: int,
        threads: Sequence[For],
        own: Sequence[Buffer],
    ) -> None:
        """What one group does."""
        sizes = tuple(loop.extent for loop in threads)
        self.group = group = _Group(number, block, sizes, set(own))
        self.epoch += 1
        lanes = np.unravel_index(np.arange(group.count), sizes or (1,))
        for loop, values in zip(threads, lanes, strict=False):
            env[loop.var] = values.astype(np.int32)
        for buffer in own:
            self.allocate(buffer, buffer.span * group.count)
        self.run(body, env, np.ones(group.count, bool))
        self.group = None

    def branch(self, stmt: If, env: Env, mask: Mask) -> None:
        """A condition, with the threads for which it holds."""
        assert self.group is not None
        assert mask is not None
        self.statement = stmt
        cond = np.broadcast_to(self.eval(stmt.cond, env, mask), mask.shape)
        sides = [(stmt.then, mask & cond)]
        if stmt.orelse is not None:
            sides.append((stmt.orelse, mask & ~cond))
        for side, those in sides:
            if those.any():
                self.run(side, env, those)

    def barrier(self, stmt: Stmt, mask: Mask) -> None:
        """Begins an epoch, if all threads are here."""
        assert self.group is not None
        assert mask is not None
        self.epoch += 1
        if self.checked and not mask.all():
            absent = self.group.thread(int(np.flatnonzero(~mask)[0]))
            finding = Finding("divergent barrier", "", 0, ("absent",), (absent,))
            self.findings.setdefault(("barrier", id(stmt)), finding)

    def store_all(self, store: Store, env: Env, mask: Mask) -> None:
        """A store by all threads of the mask."""
        assert mask is not None
        self.statement = store
        value = np.broadcast_to(self.eval(store.value, env, mask), mask.shape)
        at = np.broadcast_to(self.flat_index(store.buffer, store.indices, env, mask), mask.shape)
        self.statement = store
        if self.checked:
            self.note(store.buffer, at[mask], np.flatnonzero(mask), True)
        self.memory[store.buffer].reshape(-1)[at[mask]] = value[mask]

    # --- expressions ---

    def eval(self, expr: Expr, env: Env, mask: Mask) -> Array:
        """The value of an expression for each thread; loads are checked."""
        if not isinstance(expr, Load) or self.group is None or mask is None:
            return super().eval(expr, env, mask)
        flat = self.flat_index(expr.buffer, expr.indices, env, mask)
        at = np.broadcast_to(flat, mask.shape)
        if self.checked:
            self.note(expr.buffer, at[mask], np.flatnonzero(mask), False)
        found: Array = self.memory[expr.buffer].reshape(-1)[at]
        return found

    def select(self, cond: Expr, a: Expr, b: Expr, env: Env, mask: Mask) -> Array:
        """Each side is evaluated by the threads that choose it."""
        if mask is None:
            return super().select(cond, a, b, env, mask)
        chosen = np.broadcast_to(self.eval(cond, env, mask), mask.shape)
        return np.where(chosen, self.eval(a, env, mask & chosen), self.eval(b, env, mask & ~chosen))

    def flat_index(self, buffer: Buffer, indices: Sequence[Expr], env: Env, mask: Mask) -> Array:
        """Positions in a buffer's memory; each thread's own behind those of the one before."""
        flat = super().flat_index(buffer, indices, env, mask)
        if self.group is not None and buffer in self.group.own:
            flat = flat + np.arange(self.group.count) * buffer.span
        return flat

    # --- what is wrong ---

    def note(self, buffer: Buffer, at: Array, who: Array, writes: bool) -> None:
        """Looks at accesses of elements by threads, and remembers them."""
        assert self.group is not None
        assert self.statement is not None
        if not at.size:
            return
        if buffer in self.unset:
            self.check_set(buffer, at, who, writes)
        if buffer in self.group.own:
            return
        trail = self.threads.setdefault(buffer, Trail(self.memory[buffer].size))
        self.check(buffer, trail, at, who, self.epoch, writes, "thread")
        if writes:
            self.check_together(buffer, at, who)
        if self.is_global(buffer):
            groups = self.groups.setdefault(buffer, Trail(self.memory[buffer].size))
            number = np.full(at.shape, self.group.number)
            self.check(buffer, groups, at, number, self.kernel, writes, "group")

    def is_global(self, buffer: Buffer) -> bool:
        """Whether all groups see a buffer."""
        return buffer.scope == "global"

    def check_set(self, buffer: Buffer, at: Array, who: Array, writes: bool) -> None:
        """Whether elements that are read were written."""
        if writes:
            self.unset[buffer][at] = False
            return
        wrong = np.flatnonzero(self.unset[buffer][at])
        if wrong.size:
            first = wrong[0]
            side = self.side(int(who[first]), "thread")
            self.report("uninitialized read", buffer, int(at[first]), (self.statement,), (side,))

    def check(
        self,
        buffer: Buffer,
        trail: Trail,
        at: Array,
        who: Array,
        epoch: int,
        writes: bool,
        level: str,
    ) -> None:
        """Whether threads, or groups, touch what others touched, one of them to write."""
        after_write, after_read = trail.clashes(at, who, epoch, writes)
        for wrong, others, statements in (
            (after_write, trail.writer, trail.writing),
            (after_read, trail.reader, trail.reading),
        ):
            for first in np.flatnonzero(wrong)[:1]:
                element = int(at[first])
                before = self.statements[statements[element]]
                sides = (
                    self.side(int(others[element]), level), self.side(int(who[first]), level)
                )  # fmt: skip
                pair = (before, self.statement)
                self.report("race", buffer, element, pair, sides, level)
        trail.note(at, who, epoch, self.number_of(self.statement), writes)

    def check_together(self, buffer: Buffer, at: Array, who: Array) -> None:
        """Whether two threads write one element at once."""
        order = np.argsort(at, kind="stable")
        same = np.flatnonzero(np.diff(at[order]) == 0)
        if same.size:
            one, other = order[same[0]], order[same[0] + 1]
            sides = (self.side(int(who[one]), "thread"), self.side(int(who[other]), "thread"))
            pair = (self.statement, self.statement)
            self.report("race", buffer, int(at[one]), pair, sides)

    def side(self, number: int, level: str) -> Coordinates:
        """The coordinates of a thread or of a group."""
        assert self.group is not None
        return self.group.thread(number) if level == "thread" else self.blocks[number]

    def number_of(self, stmt: Stmt | None) -> int:
        """A statement's number."""
        assert stmt is not None
        if id(stmt) not in self.numbers:
            self.numbers[id(stmt)] = len(self.statements)
            self.statements.append(stmt)
        return self.numbers[id(stmt)]

    def report(
        self,
        kind: str,
        buffer: Buffer,
        element: int,
        statements: tuple[Stmt | None, ...],
        sides: tuple[Coordinates, ...],
        level: str = "thread",
    ) -> None:
        """Keeps what is wrong, once for the statements and the buffer."""
        key = (kind, level, buffer, *(self.number_of(s) for s in statements))
        if key not in self.findings:
            texts = tuple(show(s).splitlines()[0] for s in statements if s is not None)
            self.findings[key] = Finding(kind, buffer.name, element, texts, sides, level)
