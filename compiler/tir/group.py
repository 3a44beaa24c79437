"""Runs kernels with all threads of a group side by side, and says what is wrong with them.

``run_groups`` is to kernels what ``interp.run`` is to other functions:

- An outermost loop over groups or threads is a kernel. Its groups run one after the other.
- The threads of a group are the steps of loops of different tags directly inside one another. All
  of them do one statement before any does the next. Several such nests inside the loops over groups
  run one behind the other, as if there was a barrier in between.
- Each thread does all steps of a loop over threads that stands further inside.
- A buffer whose Alloc is inside all loops over threads is each thread's own; one whose Alloc is
  inside some of them belongs to the threads that share their steps; one whose Alloc is inside the
  loops over groups is its group's; others are everybody's.
- Threads for which a condition doesn't hold wait at its end.
- Unchecked, a kernel without barriers runs as ``interp.run`` runs it, step by step.

Wrong is:

    race                 an element that one thread writes, and another one of its group reads or
                         writes with no barrier in between, of one value or of another; or that one
                         group writes and another one reads or writes, in one kernel
    divergent barrier    one that some threads of a group come to, and others don't
    uninitialized read   of an element of a buffer that nothing was written to since its Alloc
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from math import prod
from typing import Any

import numpy as np

from vdla.compiler.tir.expand import expand_intrinsics
from vdla.compiler.tir.interpreter import (
    Env,
    InterpError,
    Interpreter,
    Leaf,
    Mask,
    check_arrays,
    has_barrier,
)
from vdla.compiler.tir.ir import (
    BLOCK_TAGS,
    THREAD_TAGS,
    Alloc,
    Barrier,
    Block,
    Buffer,
    Expr,
    For,
    If,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
)
from vdla.compiler.tir.nest import Group, is_over, nest_of
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.trail import Array, Coordinates, Finding, Trail

TAGS = (*BLOCK_TAGS, *THREAD_TAGS)


def run_groups(func: PrimFunc, arrays: Sequence[Array], checks: bool = True) -> tuple[Finding, ...]:
    """Runs kernels on one array per parameter, in place.

    Args:
        func: its kernels, and what else there is, one behind the other.
        arrays: C-contiguous, of the parameters' shapes and dtypes, in their order.
        checks: whether to look for what is wrong.

    Returns:
        What is wrong, each pair of statements once for a buffer.

    Raises:
        InterpError: an array doesn't fit its parameter, an access is out of bounds, or a barrier is
            where threads don't run side by side.
    """
    check_arrays(func, arrays)
    machine = _Groups(checks)
    machine.memory.update(zip(func.params, arrays, strict=True))
    with np.errstate(all="ignore"):
        machine.run(expand_intrinsics(func.body), {}, None)
    return tuple(machine.findings.values())


class _Groups(Interpreter):
    """The state of one run: outside of kernels; in a group, between its nests of loops over
    threads; or in its threads, where a value is one for each of them, and a mask says which act."""

    def __init__(self, checked: bool) -> None:
        super().__init__()
        self.checked = checked
        self.findings: dict[tuple[Any, ...], Finding] = {}
        self.group: Group | None = None
        self.side_by_side = False
        self.epoch = 0
        self.unset: dict[Buffer, Array] = {}  # elements that nothing was written to
        self.threads: dict[Buffer, Trail] = {}
        self.groups: dict[Buffer, Trail] = {}
        self.blocks: list[Coordinates] = []
        self.statements: list[Stmt] = []
        self.numbers: dict[Stmt, int] = {}
        self.with_barrier: dict[Stmt, bool] = {}
        self.statement: Stmt | None = None
        self.conditions: list[tuple[Stmt, Array]] = []  # around it, and the threads they hold for

    # --- outside of threads ---

    def run(self, stmt: Stmt, env: Env, mask: Mask) -> None:
        """Runs one statement, for the threads of the mask where they run side by side."""
        self.statement = stmt
        if self.side_by_side:
            assert mask is not None
            self.run_threads(stmt, env, mask)
        elif not self.checked and not self.has_barrier(stmt):
            super().run(stmt, env, mask)
        elif self.group is None and is_over(stmt, TAGS):
            self.kernel(stmt, env)
        elif self.group is not None and is_over(stmt, THREAD_TAGS):
            self.nest(self.group, stmt, env)
        elif isinstance(stmt, Alloc):
            self.allocate(stmt.buffer)
            self.run(stmt.body, env, mask)
            self.free(stmt.buffer)
        elif isinstance(stmt, Store):
            with self.one_thread() as all_of_it:
                self.run(stmt, env, all_of_it)
        else:
            super().run(stmt, env, mask)

    def find_leaf(self, stmt: Stmt) -> Leaf | None:
        """No leaf for a function that is checked, which runs statement by statement."""
        return None if self.checked else super().find_leaf(stmt)

    def has_barrier(self, stmt: Stmt) -> bool:
        """Whether there is a barrier in a statement."""
        if stmt not in self.with_barrier:
            self.with_barrier[stmt] = has_barrier(stmt)
        return self.with_barrier[stmt]

    def scalar(self, cond: Expr, env: Env) -> bool:
        """A condition outside of threads, whose loads are checked."""
        if not self.checked:
            return super().scalar(cond, env)
        with self.one_thread() as mask:
            return bool(np.all(self.eval(cond, env, mask)))

    @contextmanager
    def one_thread(self) -> Iterator[Array]:
        """Runs what is outside of loops over threads as one thread; yields its mask."""
        outside = self.group
        self.group = outside or Group(None)
        self.side_by_side = True
        self.epoch += 1
        yield np.ones(1, bool)
        self.side_by_side = False
        self.group = outside

    def kernel(self, stmt: Stmt, env: Env) -> None:
        """A kernel: its groups, one after the other."""
        nest = nest_of(stmt, BLOCK_TAGS)
        self.groups.clear()
        self.blocks = list(product(*(range(loop.extent) for loop in nest.loops)))
        buffers = [buffer for buffer, _ in nest.buffers]
        for number, block in enumerate(self.blocks):
            for loop, value in zip(nest.loops, block, strict=True):
                env[loop.var] = np.int32(value)  # type: ignore[assignment]
            self.group = Group(number)
            for buffer in buffers:
                self.allocate(buffer)
            self.run(nest.body, env, None)
            for buffer in buffers:
                self.free(buffer)
        self.group = None

    def nest(self, group: Group, stmt: Stmt, env: Env) -> None:
        """A nest of loops over threads, side by side."""
        nest = nest_of(stmt, THREAD_TAGS)
        group.sizes = sizes = tuple(loop.extent for loop in nest.loops)
        numbers = np.arange(group.count)
        for loop, values in zip(nest.loops, np.unravel_index(numbers, sizes), strict=True):
            env[loop.var] = values.astype(np.int32)
        for buffer, around in nest.buffers:
            self.allocate(buffer, numbers // prod(sizes[around:]))
        self.side_by_side = True
        self.epoch += 1
        self.run(nest.body, env, np.ones(group.count, bool))
        self.side_by_side = False
        for buffer, _ in nest.buffers:
            self.free(buffer)
        group.sizes = ()

    # --- buffers ---

    def allocate(self, buffer: Buffer, owners: Array | None = None) -> None:
        """A buffer; several of it where ``owners`` says which one each thread has."""
        if owners is not None:
            assert self.group is not None
            self.group.owners[buffer] = owners
        elif self.group is not None:
            self.group.buffers.add(buffer)
        size = buffer.span * (1 if owners is None else int(owners[-1]) + 1)
        self.memory[buffer] = np.zeros(size, buffer.dtype)
        if self.checked:
            self.unset[buffer] = np.ones(size, bool)

    def free(self, buffer: Buffer) -> None:
        """Forgets a buffer."""
        del self.memory[buffer]
        for trails in (self.unset, self.threads, self.groups):
            trails.pop(buffer, None)
        if self.group is not None:
            self.group.owners.pop(buffer, None)
            self.group.buffers.discard(buffer)

    # --- in threads ---

    def run_threads(self, stmt: Stmt, env: Env, mask: Array) -> None:
        """Runs one statement for the threads of the mask."""
        match stmt:
            case For(var, extent, _, body):
                if is_over(stmt, TAGS) and self.has_barrier(body):
                    raise InterpError(
                        f"for {var.name}: a barrier inside loops over threads that aren't "
                        "directly inside one another"
                    )
                for i in range(extent):
                    env[var] = np.int32(i)  # type: ignore[assignment]
                    self.run(body, env, mask)
            case Seq(stmts):
                for inner in stmts:
                    self.run(inner, env, mask)
            case Alloc(buffer, body):
                self.allocate(buffer, np.arange(mask.size))
                self.run(body, env, mask)
                self.free(buffer)
            case Block():
                self.block_of_threads(stmt, env, mask)
            case If():
                self.branch(stmt, env, mask)
            case Store():
                self.store_all(stmt, env, mask)
            case Barrier():
                self.barrier(stmt, mask)
            case _:
                super().run(stmt, env, mask)

    def block_of_threads(self, block: Block, env: Env, mask: Array) -> None:
        """A block, with the threads for which its predicate holds."""
        mask = mask & self.values(block.predicate, env, mask)
        if not mask.any():
            return
        for it in block.iters:
            env[it.var] = self.eval(it.binding, env, mask)
        if block.init is not None:
            first = mask
            for it in block.reduce_iters:
                first = first & (env[it.var] == 0)
            if first.any():
                self.run_some(block, block.init, env, first)
        self.run_some(block, block.body, env, mask)

    def branch(self, stmt: If, env: Env, mask: Array) -> None:
        """A condition, with the threads for which it holds, and then the others."""
        cond = self.values(stmt.cond, env, mask)
        for side, chosen in ((stmt.then, mask & cond), (stmt.orelse, mask & ~cond)):
            if side is not None and chosen.any():
                self.run_some(stmt, side, env, chosen)

    def run_some(self, condition: Stmt, inner: Stmt, env: Env, mask: Array) -> None:
        """Runs what is inside a condition, for the threads for which it holds."""
        self.conditions.append((condition, mask))
        self.run(inner, env, mask)
        self.conditions.pop()

    def barrier(self, stmt: Stmt, mask: Array) -> None:
        """Begins an epoch, if all threads are here."""
        assert self.group is not None
        self.epoch += 1
        if self.checked and not mask.all():
            here, absent = int(np.argmax(mask)), int(np.argmin(mask))
            condition = next(c for c, holds in self.conditions if not holds[absent])
            sides = (self.group.thread(here), self.group.thread(absent))
            finding = Finding("divergent barrier", "", (), (_first_line(condition),), sides)
            self.findings.setdefault(("divergent barrier", stmt), finding)

    def store_all(self, store: Store, env: Env, mask: Array) -> None:
        """A store by all threads of the mask."""
        value = self.values(store.value, env, mask)
        at = np.broadcast_to(self.flat_index(store.buffer, store.indices, env, mask), mask.shape)
        self.note(store.buffer, at, mask, True)
        self.memory[store.buffer].reshape(-1)[at[mask]] = value[mask]

    # --- expressions ---

    def values(self, expr: Expr, env: Env, mask: Array) -> Array:
        """The value of an expression, one for each thread."""
        return np.broadcast_to(self.eval(expr, env, mask), mask.shape)

    def eval(self, expr: Expr, env: Env, mask: Mask) -> Array:
        """The value of an expression; its loads are checked."""
        if not isinstance(expr, Load) or not self.side_by_side or mask is None:
            return super().eval(expr, env, mask)
        flat = self.flat_index(expr.buffer, expr.indices, env, mask)
        at = np.broadcast_to(flat, mask.shape)
        self.note(expr.buffer, at, mask, False)
        result: Array = self.memory[expr.buffer].reshape(-1)[at]
        return result

    def select(self, cond: Expr, a: Expr, b: Expr, env: Env, mask: Mask) -> Array:
        """Each side is evaluated by the threads that choose it."""
        if not self.side_by_side or mask is None:
            return super().select(cond, a, b, env, mask)
        chosen = self.values(cond, env, mask)
        return np.where(chosen, self.eval(a, env, mask & chosen), self.eval(b, env, mask & ~chosen))

    def flat_index(self, buffer: Buffer, indices: Sequence[Expr], env: Env, mask: Mask) -> Array:
        """Positions in a buffer's memory; where there are several, one lies behind the other."""
        flat = super().flat_index(buffer, indices, env, mask)
        owners = self.group.owners.get(buffer) if self.group is not None else None
        return flat if owners is None else flat + owners * buffer.span

    # --- what is wrong ---

    def note(self, buffer: Buffer, at: Array, mask: Array, writes: bool) -> None:
        """Looks at accesses of elements by the threads of the mask, and remembers them."""
        if not self.checked or not mask.any():
            return
        assert self.group is not None
        at, who = at[mask], np.flatnonzero(mask)
        if buffer in self.unset:
            self.check_set(buffer, at, who, writes)
        if self.group.owns(buffer):
            return
        self.check(self.threads, buffer, at, who, writes, "thread")
        if writes:
            self.check_together(buffer, at, who)
        if self.group.number is not None and self.is_everybodys(buffer):
            self.check(
                self.groups, buffer, at, np.full(at.shape, self.group.number), writes, "group"
            )

    def is_everybodys(self, buffer: Buffer) -> bool:
        """Whether all groups have a buffer together."""
        assert self.group is not None
        return buffer not in self.group.buffers and buffer not in self.group.owners

    def check_set(self, buffer: Buffer, at: Array, who: Array, writes: bool) -> None:
        """Whether elements that are read were written."""
        if writes:
            self.unset[buffer][at] = False
            return
        wrong = np.flatnonzero(self.unset[buffer][at])
        if wrong.size:
            first = wrong[0]
            side = self.side(int(who[first]), "thread")
            self.report(
                "uninitialized read", buffer, int(at[first]), (self.statement,), (side,), (False,)
            )

    def check(
        self,
        trails: dict[Buffer, Trail],
        buffer: Buffer,
        at: Array,
        who: Array,
        writes: bool,
        level: str,
    ) -> None:
        """Whether threads, or groups, touch what others touched, one of them to write."""
        if buffer not in trails:
            trails[buffer] = Trail(self.memory[buffer].size)
        trail = trails[buffer]
        epoch = self.epoch if level == "thread" else 0
        for earlier, place in trail.clashes(at, who, epoch, writes):
            element = int(at[place])
            before = self.statements[earlier.statement[element]]
            sides = (int(earlier.who[element]), int(who[place]))
            places = (self.side(sides[0], level), self.side(sides[1], level))
            wrote = (earlier is trail.writer, writes)
            self.report("race", buffer, element, (before, self.statement), places, wrote, level)
        trail.note(at, who, epoch, self.number_of(self.statement), writes)

    def check_together(self, buffer: Buffer, at: Array, who: Array) -> None:
        """Whether two threads write one element at once."""
        order = np.argsort(at, kind="stable")
        same = np.flatnonzero(np.diff(at[order]) == 0)
        if same.size:
            one, other = order[same[0]], order[same[0] + 1]
            sides = (self.side(int(who[one]), "thread"), self.side(int(who[other]), "thread"))
            pair = (self.statement, self.statement)
            self.report("race", buffer, int(at[one]), pair, sides, (True, True))

    def side(self, number: int, level: str) -> Coordinates:
        """The coordinates of a thread or of a group."""
        assert self.group is not None
        return self.group.thread(number) if level == "thread" else self.blocks[number]

    def number_of(self, stmt: Stmt | None) -> int:
        """A statement's number."""
        assert stmt is not None
        if stmt not in self.numbers:
            self.numbers[stmt] = len(self.statements)
            self.statements.append(stmt)
        return self.numbers[stmt]

    def report(
        self,
        kind: str,
        buffer: Buffer,
        element: int,
        statements: tuple[Stmt | None, ...],
        sides: tuple[Coordinates, ...],
        writes: tuple[bool, ...],
        level: str = "thread",
    ) -> None:
        """Keeps what is wrong, once for the statements and the buffer."""
        assert self.group is not None
        key = (kind, level, buffer, *(self.number_of(s) for s in statements))
        if key not in self.findings:
            texts = tuple(_first_line(s) for s in statements if s is not None)
            own = element % buffer.span if buffer in self.group.owners else element
            indices = _indices(buffer, own)
            self.findings[key] = Finding(kind, buffer.name, indices, texts, sides, writes, level)


def _first_line(stmt: Stmt) -> str:
    """The first line of a statement's text."""
    return show(stmt).splitlines()[0]


def _indices(buffer: Buffer, position: int) -> tuple[int, ...]:
    """The indices of the element at a position in a buffer's memory."""
    indices = []
    for stride in buffer.strides:
        indices.append(position // stride)
        position %= stride
    return tuple(indices)
