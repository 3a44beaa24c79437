"""Interpreter of statements on numpy arrays, one after the other; ``interp`` and ``group`` use it.

``Interpreter`` follows the tree statement by statement. A loop nest that ends in a single store is
evaluated as one numpy grid, up to GRID elements at a time, when its iterations can be told apart
from plain sequence only in reductions by ``dst = op(dst, src)``; everything else is a Python loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vdla.compiler.tir.ir import (
    Alloc,
    Barrier,
    Binary,
    Block,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    Not,
    Prefetch,
    PrimFunc,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
)
from vdla.compiler.tir.ops import CALL_FUNCS, UFUNCS
from vdla.compiler.tir.visitor import loads, walk

Array = npt.NDArray[Any]
Env = dict[Var, Array]
Mask = Array | None

GRID = 1 << 20
REDUCERS: dict[str, Any] = {
    op: UFUNCS[op] for op in ("add", "mul", "min", "max", "and", "or", "bitand", "bitor", "bitxor")
}


class InterpError(Exception):
    """An array doesn't fit, or the program did something undefined, as loading out of bounds."""


def has_barrier(stmt: Stmt) -> bool:
    """Whether there is a barrier in a statement: it then needs threads that run side by side."""
    return any(isinstance(s, Barrier) for s in walk(stmt))


def check_arrays(func: PrimFunc, arrays: Sequence[Array]) -> None:
    """Raises InterpError unless there is one array that fits for each parameter."""
    if len(arrays) != len(func.params):
        raise InterpError(f"{func.name}: expected {len(func.params)} arrays, found {len(arrays)}")
    for param, array in zip(func.params, arrays, strict=True):
        _check_array(func, param, array)


def _check_array(func: PrimFunc, param: Buffer, array: Array) -> None:
    """Raises where an array isn't what a parameter takes."""
    if array.shape != param.shape or array.dtype != np.dtype(param.dtype):
        raise InterpError(
            f"{func.name}: {param.name}: expected {param.dtype}{list(param.shape)}, "
            f"found {array.dtype}{list(array.shape)}"
        )
    if not array.flags.c_contiguous:
        raise InterpError(f"{func.name}: {param.name}: expected a C-contiguous array")


@dataclass(frozen=True, slots=True)
class Leaf:
    """The one store at the end of a loop nest, and how it accumulates."""

    size: int
    store: Store
    reducer: str | None
    source: Expr


def _accumulation(store: Store) -> tuple[str | None, Expr] | None:
    """(operator, source) of ``dst = op(dst, source)``; (None, value) without self-reading."""
    own = [x for x in loads(store.value) if x.buffer is store.buffer]
    if not own:
        return None, store.value
    value = store.value
    if len(own) == 1 and isinstance(value, Binary) and value.op in REDUCERS:
        target = Load(store.buffer, store.indices)
        if value.a == target:
            return value.op, value.b
        if value.b == target:
            return value.op, value.a
    return None


def _reads_itself(stmt: Stmt, buffer: Buffer) -> bool:
    """Whether an init is anything else than one store to ``buffer`` that doesn't read it."""
    if not isinstance(stmt, Store) or stmt.buffer is not buffer:
        return True
    return any(x.buffer is buffer for x in loads(stmt.value))


class Interpreter:
    """The state of one run: what the buffers hold; ``env`` holds the variables' values.

    A value is a numpy scalar, or, inside a grid, an array with one axis per loop of the grid.
    ``mask`` says at which points of the grid a statement is run; None is at all of them.
    """

    def __init__(self) -> None:
        self.memory: dict[Buffer, Array] = {}
        self.leaves: dict[Stmt, Leaf | None] = {}

    # --- which nests are one grid ---

    def leaf(self, stmt: Stmt) -> Leaf | None:
        """The store at the end of a nest that can be run as one grid; None where it can't be."""
        if stmt not in self.leaves:
            self.leaves[stmt] = self.find_leaf(stmt)
        return self.leaves[stmt]

    def find_leaf(self, stmt: Stmt) -> Leaf | None:
        """Looks for the one store of a nest; ``leaf`` remembers the result."""
        match stmt:
            case For(_, extent, _, body):
                below = self.leaf(body)
                if below is None:
                    return None
                return Leaf(extent * below.size, below.store, below.reducer, below.source)
            case Block():
                below = self.leaf(stmt.body)
                if below is None:
                    return None
                if stmt.init is not None and _reads_itself(stmt.init, below.store.buffer):
                    return None
                return below
            case If(_, then, None):
                return self.leaf(then)
            case Store():
                result = _accumulation(stmt)
                return None if result is None else Leaf(1, stmt, *result)
        return None

    # --- statements ---

    def run(self, stmt: Stmt, env: Env, mask: Mask) -> None:
        """Runs one statement."""
        match stmt:
            case For():
                leaf = self.leaf(stmt)
                if leaf is not None and leaf.size <= GRID:
                    self.grid(stmt, env)
                    return
                for i in range(stmt.extent):
                    env[stmt.var] = np.int32(i)  # type: ignore[assignment]
                    self.run(stmt.body, env, mask)
            case Block():
                self.block(stmt, env, mask)
            case Alloc(buffer, body):
                self.memory[buffer] = np.zeros(buffer.span, buffer.dtype)
                self.run(body, env, mask)
                del self.memory[buffer]
            case Store():
                self.store(stmt, env, mask, ())
            case If(cond, then, orelse):
                if self.scalar(cond, env):
                    self.run(then, env, mask)
                elif orelse is not None:
                    self.run(orelse, env, mask)
            case Seq(stmts):
                for inner in stmts:
                    self.run(inner, env, mask)
            case Prefetch():
                pass
            case Barrier():
                raise InterpError("a barrier outside of threads that run side by side")
            case _:
                raise InterpError(f"cannot run {type(stmt).__name__}")

    def scalar(self, cond: Expr, env: Env) -> bool:
        """A condition outside of grids."""
        return bool(self.eval(cond, env, None))

    def block(self, block: Block, env: Env, mask: Mask) -> None:
        """Runs a block for the present values of the loops around it."""
        if not self.scalar(block.predicate, env):
            return
        for it in block.iters:
            env[it.var] = self.eval(it.binding, env, None)
        if block.init is not None and not any(env[i.var] for i in block.reduce_iters):
            self.run(block.init, env, mask)
        self.run(block.body, env, mask)

    # --- grids ---

    def grid(self, stmt: For, env: Env) -> None:
        """The whole nest at once, one array axis per loop."""
        loops: list[For] = []
        inner: Stmt = stmt
        while not isinstance(inner, Store):
            if isinstance(inner, For):
                loops.append(inner)
            inner = inner.then if isinstance(inner, If) else inner.body  # type: ignore[attr-defined]
        rank = len(loops)
        for n, loop in enumerate(loops):
            shape = (1,) * n + (loop.extent,) + (1,) * (rank - n - 1)
            env[loop.var] = np.arange(loop.extent, dtype=np.int32).reshape(shape)
        self.masked(stmt, env, None, tuple(loop.extent for loop in loops))

    def masked(self, stmt: Stmt, env: Env, mask: Mask, shape: tuple[int, ...]) -> None:
        """Runs a statement of a grid of ``shape``, where ``mask`` holds."""
        match stmt:
            case For(_, _, _, body):
                self.masked(body, env, mask, shape)
            case If(cond, then, _):
                self.masked(then, env, _both(mask, self.eval(cond, env, mask)), shape)
            case Block():
                if not _is_true(stmt.predicate):
                    mask = _both(mask, self.eval(stmt.predicate, env, mask))
                for it in stmt.iters:
                    env[it.var] = self.eval(it.binding, env, mask)
                if stmt.init is not None:
                    self.grid_init(stmt, env, mask, shape)
                self.masked(stmt.body, env, mask, shape)
            case Store():
                self.store(stmt, env, mask, shape)

    def grid_init(self, block: Block, env: Env, mask: Mask, shape: tuple[int, ...]) -> None:
        """Runs a block's init at those points of the grid at which every reduce iterator is 0."""
        first = mask
        for it in block.reduce_iters:
            first = _both(first, env[it.var] == 0)
        if first is None or np.any(first):
            assert block.init is not None
            self.masked(block.init, env, first, shape)

    def store(self, store: Store, env: Env, mask: Mask, shape: tuple[int, ...]) -> None:
        """Runs a store, at one point or over a grid."""
        result = _accumulation(store)
        reducer, source = result if result is not None else (None, store.value)
        flat = self.flat_index(store.buffer, store.indices, env, mask)
        value = np.asarray(self.eval(source, env, mask))
        target = self.memory[store.buffer].reshape(-1)
        if reducer is not None:
            self.accumulate(target, flat, value, reducer, mask, shape)
            return
        flat, value, where = np.broadcast_arrays(flat, value, True if mask is None else mask)
        if mask is not None:
            flat, value = flat[where], value[where]
        target[flat] = value

    def accumulate(
        self,
        target: Array,
        flat: Array,
        value: Array,
        op: str,
        mask: Mask,
        shape: tuple[int, ...],
    ) -> None:
        """target[flat] op= value over the grid, in loop order where rounding makes that matter."""
        ufunc = REDUCERS[op]
        value = np.broadcast_to(value, shape)
        if mask is None and shape and target.dtype.kind in "iu":
            flat = np.reshape(flat, (1,) * (len(shape) - np.ndim(flat)) + np.shape(flat))
            axes = tuple(n for n, size in enumerate(flat.shape) if size == 1 and shape[n] > 1)
            value = ufunc.reduce(value, axis=axes, keepdims=True, dtype=target.dtype)
            flat = np.broadcast_to(flat, value.shape)
        else:
            flat = np.broadcast_to(flat, shape)
        if mask is not None:
            where = np.broadcast_to(mask, shape)
            flat, value = flat[where], value[where]
        ufunc.at(target, flat, value)

    def flat_index(self, buffer: Buffer, indices: Sequence[Expr], env: Env, mask: Mask) -> Array:
        """Positions in a buffer's flat memory, checked against its shape wherever ``mask`` holds.

        Raises:
            InterpError: an index is out of bounds, or the buffer isn't allocated.
        """
        if buffer not in self.memory:
            raise InterpError(f"{buffer.name}: used outside its Alloc")
        flat: Array = np.int64(0)  # type: ignore[assignment]
        strides = buffer.strides
        for dim, (expr, size) in enumerate(zip(indices, buffer.shape, strict=True)):
            index = np.asarray(self.eval(expr, env, mask)).astype(np.int64)
            bad = (index < 0) | (index >= size)
            if np.any(bad):
                wrong = bad if mask is None else np.logical_and(bad, mask)
                if np.any(wrong):
                    worst = np.broadcast_to(index, np.shape(wrong))[wrong].flat[0]
                    raise InterpError(
                        f"{buffer.name}: dimension {dim}: expected an index in "
                        f"0..{size - 1}, found {worst}"
                    )
                index = np.clip(index, 0, size - 1)
            flat = flat + index * strides[dim]
        return flat

    # --- expressions ---

    def eval(self, expr: Expr, env: Env, mask: Mask) -> Array:
        """The value of an expression.

        Raises:
            InterpError: a variable has no value, or a load is out of bounds.
        """
        match expr:
            case Const(value, dtype):
                return np.dtype(dtype).type(value)  # type: ignore[no-any-return]
            case Var():
                if expr not in env:
                    raise InterpError(f"{expr.name}: variable without a value")
                return env[expr]
            case Binary(op, a, b):
                return UFUNCS[op](self.eval(a, env, mask), self.eval(b, env, mask))  # type: ignore[no-any-return]
            case Not(a):
                return np.logical_not(self.eval(a, env, mask))
            case Select(cond, a, b):
                return self.select(cond, a, b, env, mask)
            case Cast(a, dtype):
                return np.asarray(self.eval(a, env, mask)).astype(dtype)
            case Load(buffer, indices):
                flat = self.flat_index(buffer, indices, env, mask)
                return self.memory[buffer].reshape(-1)[flat]
            case Call(op, args, _):
                return CALL_FUNCS[op](*(self.eval(a, env, mask) for a in args))  # type: ignore[no-any-return]
        raise InterpError(f"cannot evaluate {type(expr).__name__}")

    def select(self, cond: Expr, a: Expr, b: Expr, env: Env, mask: Mask) -> Array:
        """Each side is evaluated only where it is chosen, so the other may be out of bounds."""
        chosen = np.asarray(self.eval(cond, env, mask))
        if chosen.ndim == 0:
            return self.eval(a if chosen else b, env, mask)
        left = self.eval(a, env, _both(mask, chosen))
        right = self.eval(b, env, _both(mask, ~chosen))
        return np.where(chosen, left, right)


def _both(mask: Mask, cond: Array) -> Mask:
    """The points of a mask at which a condition holds, too."""
    return cond if mask is None else np.logical_and(mask, cond)


def _is_true(expr: Expr) -> bool:
    return isinstance(expr, Const) and bool(expr.value)
