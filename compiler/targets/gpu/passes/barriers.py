"""Barriers where one thread touches what another one wrote, or writes what another one read.

before                              after
    for k in 4:                         for k in 4:
        S[tx] = A[k, tx]                    barrier          S[tx + 1] of the step before was read
        L[0] = L[0] + S[tx + 1]             S[tx] = A[k, tx]
                                            barrier          S[tx + 1] is another thread's
                                            L[0] = L[0] + S[tx + 1]

Rules:

- Statements run in order, and so do the steps of loops. Between two barriers, threads of a group
  run in no order: what one of them writes there, no other may touch.
- Which thread touches which element is computed, for all threads and all steps of inner loops, for
  the first steps of outer ones, and for one group. These stand for the others where an index holds
  the loop's variable in a term that all accesses to the buffer share, or by its remainder. Where it
  is held otherwise, all groups are computed, and the access in an outer loop, or one that can't be
  computed, counts as one to every element by every thread.
- A barrier that could be left out is left out.
- A barrier never stands under a condition that differs from thread to thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.tir.arith import Linear, linear
from vdla.compiler.tir.injective import offset
from vdla.compiler.tir.interp import Interpreter
from vdla.compiler.tir.ir import (
    BLOCK_TAGS,
    LOCAL,
    THREAD_TAGS,
    Alloc,
    Barrier,
    Binary,
    Buffer,
    Call,
    Const,
    Expr,
    For,
    If,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)
from vdla.compiler.tir.nest import nest_of
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.visitor import (
    direct_exprs,
    expr_vars,
    loads,
    map_stmt,
    stmt_children,
    stmt_loads,
    uses,
    walk,
    walk_expr,
)

Array = NDArray[Any]
STEPS = 4  # of an outer loop that are looked at: a double buffer's places take turns after two
LARGEST = 1 << 22  # accesses of a statement that are computed one by one


def insert_barriers(func: PrimFunc) -> PrimFunc:
    """The function with barriers in its kernels.

    Args:
        func: what ``deal_threads`` gives.

    Raises:
        NoCodeError: threads write one element in one statement, or what they do under a condition
            of their own would have to be ordered by a barrier.
    """

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.kind == "thread":
            return _Kernel.of(func.name, stmt).with_barriers(stmt)
        return map_stmt(stmt, visit)

    return replace(func, body=visit(func.body))


@dataclass(frozen=True)
class _Access:
    """Element of a buffer that a statement reads or writes: ``place``, an element's number, in
    loops and under conditions."""

    buffer: Buffer
    place: Expr
    loops: Mapping[Var, int]
    conds: tuple[Expr, ...]
    writes: bool


@dataclass(frozen=True)
class _Elements:
    """Elements of a buffer, ascending, with the least and the greatest thread that touches each;
    ``every`` stands for all elements, by all threads."""

    every: bool
    places: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    least: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    greatest: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(cls, places: Array, threads: Array) -> _Elements:
        """From pairs of an element and a thread, in any order."""
        order = np.lexsort((threads, places))
        places, threads = places[order], threads[order]
        first = np.flatnonzero(np.diff(places, prepend=-1)) if places.size else places
        last = np.append(first[1:], places.size) - 1 if places.size else places
        return cls(False, places[first], threads[first], threads[last])

    def meets(self, other: _Elements) -> bool:
        """Whether two threads touch one element, one of them by each side."""
        if self.every or other.every:
            return (self.every or bool(self.places.size)) and (
                other.every or bool(other.places.size)
            )
        _, a, b = np.intersect1d(self.places, other.places, True, return_indices=True)
        least = np.minimum(self.least[a], other.least[b])
        return bool(np.any(least != np.maximum(self.greatest[a], other.greatest[b])))


@dataclass(frozen=True)
class _Footprint:
    """Elements that a statement writes, and those that it touches at all, by buffer."""

    written: Mapping[Buffer, _Elements]
    touched: Mapping[Buffer, _Elements]

    def meets(self, other: _Footprint) -> Buffer | None:
        """A buffer of which one side writes, in one thread, what the other touches in another."""
        for buffer, elements in self.written.items():
            if buffer in other.touched and elements.meets(other.touched[buffer]):
                return buffer
        for buffer, elements in other.written.items():
            if buffer in self.touched and elements.meets(self.touched[buffer]):
                return buffer
        return None


@dataclass
class _Kernel:
    """One kernel: ``grid`` are its loops over groups, ``threads`` those over threads."""

    name: str
    grid: Sequence[For]
    threads: Sequence[For]
    body: Stmt
    footprints: dict[tuple[int, tuple[int, ...]], _Footprint] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, nest: Stmt) -> _Kernel:
        """The kernel of a nest."""
        result = nest_of(nest, (*BLOCK_TAGS, *THREAD_TAGS))
        grid = [loop for loop in result.loops if loop.thread_tag in BLOCK_TAGS]
        threads = [loop for loop in result.loops if loop.thread_tag not in BLOCK_TAGS]
        return cls(name, grid, threads, result.body)

    def __post_init__(self) -> None:
        sizes = [loop.extent for loop in self.threads]
        self.count = prod(sizes)
        numbers = np.unravel_index(np.arange(self.count), sizes) if sizes else ()
        pairs = zip(self.threads, numbers, strict=True)
        self.coordinates = {loop.var: n.astype(np.int32)[:, None] for loop, n in pairs}
        self.tracked = _tracked(self.body)
        self.long = {s.var for s in walk(self.body) if isinstance(s, For) and s.extent > STEPS}
        self.alike_in_groups: dict[Buffer, bool] = {}
        self.places: dict[Buffer, list[Linear]] = {}
        for access in self.accesses(self.body, {}, ()):
            self.places.setdefault(access.buffer, []).append(linear(access.place))

    def with_barriers(self, nest: Stmt) -> Stmt:
        """The nest with barriers in its body."""
        if self.count == 1:
            return nest
        places = self.necessary()

        def visit(stmt: Stmt) -> Stmt:
            new = map_stmt(stmt, visit)
            return seq(Barrier(), new) if id(stmt) in places else new

        return visit(nest)

    def necessary(self) -> set[int]:
        """The statements before which a barrier stands, by their ``id``."""
        order = _Order(self)
        order.run()
        for each in list(order.barriers):
            fewer = _Order(self, order.barriers - {each})
            if fewer.run():
                order = fewer
        return set(order.barriers)

    # --- what statements touch ---

    def is_alike(self, buffer: Buffer) -> bool:
        """Whether one group stands for all."""
        if buffer not in self.alike_in_groups:
            alike = all(self.alike(buffer, loop.var) for loop in self.grid)
            self.alike_in_groups[buffer] = alike
        return self.alike_in_groups[buffer]

    def alike(self, buffer: Buffer, var: Var) -> bool:
        """Whether some values of an outer variable stand for all: all accesses to a buffer hold it
        in the same term, or by its remainder by 2."""
        factors = set()
        for form in self.places[buffer]:
            factors.add(form.terms.get(var, 0))
            others = [atom for atom in form.terms if atom is not var and uses(atom, {var})]
            if any(not _alternates(atom) for atom in others):
                return False
        return len(factors) == 1

    def accesses(
        self, stmt: Stmt, loops: Mapping[Var, int], conds: tuple[Expr, ...]
    ) -> Iterator[_Access]:
        """Every access of tracked buffers in a statement."""
        if isinstance(stmt, For):
            loops = {**loops, stmt.var: stmt.extent}
        for expr in direct_exprs(stmt):
            for load in loads(expr):
                if load.buffer in self.tracked:
                    place = offset(load.buffer.shape, load.indices)
                    yield _Access(load.buffer, place, loops, conds, False)
        if isinstance(stmt, Store) and stmt.buffer in self.tracked:
            place = offset(stmt.buffer.shape, stmt.indices)
            yield _Access(stmt.buffer, place, loops, conds, True)
        for n, child in enumerate(stmt_children(stmt)):
            inner = (*conds, stmt.cond) if isinstance(stmt, If) and n == 0 else conds
            yield from self.accesses(child, loops, inner)

    def footprint(self, stmt: Stmt, env: Mapping[Var, int]) -> _Footprint:
        """Elements that a statement touches, for values of the variables of the loops around it."""
        key = (id(stmt), tuple(env.values()))
        if key not in self.footprints:
            written: dict[Buffer, list[_Elements]] = {}
            touched: dict[Buffer, list[_Elements]] = {}
            for access in self.accesses(stmt, {}, ()):
                elements = self.elements(access, env)
                touched.setdefault(access.buffer, []).append(elements)
                if access.writes:
                    written.setdefault(access.buffer, []).append(elements)
            self.footprints[key] = _Footprint(_joined(written), _joined(touched))
        return self.footprints[key]

    def elements(self, access: _Access, env: Mapping[Var, int]) -> _Elements:
        """The elements of an access, with their threads."""
        groups = {} if self.is_alike(access.buffer) else {v.var: v.extent for v in self.grid}
        loops = groups | {v: n for v, n in access.loops.items() if _mentions(access, v)}
        shape = (self.count, prod(loops.values()))
        known = _computable(access.place) and prod(shape) <= LARGEST
        if not known or not all(self.alike(access.buffer, v) for v in env if v in self.long):
            return _Elements(True)
        values: dict[Var, Any] = dict.fromkeys((loop.var for loop in self.grid), np.int32(0))
        values |= {var: np.int32(value) for var, value in env.items()} | self.coordinates
        numbers = np.unravel_index(np.arange(shape[1]), list(loops.values()) or [1])
        for var, number in zip(loops, numbers, strict=False):
            values[var] = number.astype(np.int32)[None, :]
        inside = np.ones(shape, bool)
        for cond in access.conds:
            inside &= self.holds(cond, values)
        places = np.broadcast_to(Interpreter().eval(access.place, values, None), shape)
        threads = np.broadcast_to(np.arange(self.count)[:, None], shape)
        group = np.arange(shape[1]) // (shape[1] // prod(groups.values()))
        places = places.astype(np.int64) + group * access.buffer.span  # each group's by itself
        return _Elements.of(places[inside], threads[inside])

    def holds(self, cond: Expr, values: Mapping[Var, Any]) -> Any:
        """Mask of the places where a condition may hold: everywhere if that can't be computed, or
        depends on outer loops."""
        match cond:
            case Binary("and", a, b):
                return self.holds(a, values) & self.holds(b, values)
        if not _computable(cond) or any(np.ndim(values[var]) == 0 for var in expr_vars(cond)):
            return True
        return Interpreter().eval(cond, dict(values), None)


@dataclass
class _Order:
    """Statements in the order in which threads come to them, with barriers before some.

    ``pending`` is what was touched since the last barrier; ``missing`` says that one was added.
    """

    kernel: _Kernel
    barriers: frozenset[int] = frozenset()
    missing: bool = False
    pending: list[_Footprint] = field(default_factory=list)

    def run(self) -> bool:
        """Goes through the kernel; whether the barriers that it began with are enough."""
        self.scan(self.kernel.body, {})
        return not self.missing

    def scan(self, stmt: Stmt, env: dict[Var, int]) -> None:
        """One statement, for values of the variables of the loops around it."""
        match stmt:
            case Seq(stmts):
                for inner in stmts:
                    self.scan(inner, env)
                return
            case Alloc(_, body):
                self.scan(body, env)
                return
        footprint = self.kernel.footprint(stmt, env)
        alone = footprint.meets(footprint)
        if alone is None:
            self.step(stmt, footprint)
            return
        match stmt:
            case For(var, extent, _, body):
                for value in range(min(extent, STEPS)):
                    self.scan(body, {**env, var: value})
            case If(cond, then, orelse) if self.is_uniform(cond):
                self.scan(then, env)
                if orelse is not None:
                    self.scan(orelse, env)
            case Store() if footprint.written[alone].every:
                self.step(stmt, footprint)
            case Store():
                raise NoCodeError(
                    f"{self.kernel.name}: expected each element of {alone.name} to be written by "
                    f"one thread, found that several write one by {show(stmt)}"
                )
            case _:
                raise NoCodeError(
                    f"{self.kernel.name}: expected threads to need no barrier under a condition of "
                    f"their own, found that they share {alone.name} in {show(stmt)}"
                )

    def step(self, stmt: Stmt, footprint: _Footprint) -> None:
        """A statement that needs no barrier inside."""
        if id(stmt) in self.barriers:
            self.pending.clear()
        if any(before.meets(footprint) for before in self.pending):
            self.missing = True
            self.barriers |= {id(stmt)}
            self.pending.clear()
        if footprint.touched:
            self.pending.append(footprint)

    def is_uniform(self, cond: Expr) -> bool:
        """Whether a condition is the same for all threads of a group."""
        return _computable(cond) and not expr_vars(cond) & set(self.kernel.coordinates)


def _tracked(body: Stmt) -> set[Buffer]:
    """The buffers that several threads see, of which one statement may touch what another wrote."""
    written = Counter(s.buffer for s in walk(body) if isinstance(s, Store))
    read = {load.buffer for load in stmt_loads(body)}
    return {
        buffer for buffer, count in written.items()
        if buffer.scope != LOCAL and (count > 1 or buffer in read)
    }  # fmt: skip


def _mentions(access: _Access, var: Var) -> bool:
    """Whether which elements an access goes to depends on a variable."""
    return any(uses(expr, {var}) for expr in (access.place, *access.conds))


def _computable(expr: Expr) -> bool:
    """Whether an expression's value depends on variables alone."""
    return not any(isinstance(e, Load | Call) for e in walk_expr(expr))


def _alternates(atom: Expr) -> bool:
    """Whether it is a remainder by 2."""
    return isinstance(atom, Binary) and atom.op == "floormod" and atom.b == Const(2, "int32")


def _joined(parts_of: Mapping[Buffer, list[_Elements]]) -> dict[Buffer, _Elements]:
    """One set of elements for each buffer."""
    joined = {}
    for buffer, parts in parts_of.items():
        if len(parts) == 1 or any(part.every for part in parts):
            joined[buffer] = next((part for part in parts if part.every), parts[0])
            continue
        places = np.concatenate([part.places for part in parts] * 2)
        threads = [part.least for part in parts] + [part.greatest for part in parts]
        joined[buffer] = _Elements.of(places, np.concatenate(threads))
    return joined
