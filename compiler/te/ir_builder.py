"""Statements piece by piece, for ``te.extern``; under TVM's names::

ib = te.ir_builder.create()
out = ib.buffer_ptr(outs[0])
with ib.for_range(0, n, "i") as i, ib.if_scope(i > 0):
    out[i] = out[i - 1] + ins[0][i]
return ib.get()
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from vdla.compiler.te.math import as_condition
from vdla.compiler.te.tensor import TEError
from vdla.compiler.tir.ir import (
    LOOP_KINDS,
    Alloc,
    Buffer,
    Expr,
    ExprLike,
    For,
    If,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    seq,
)

Indices = ExprLike | tuple[ExprLike, ...]


class BufferVar:
    """A buffer inside a statement: ``p[i, j]`` reads an element, ``p[i, j] = value`` writes one.

    There is one index per dimension. A write is appended to the builder's statement at once.
    """

    def __init__(self, builder: IRBuilder, buffer: Buffer) -> None:
        self.builder = builder
        self.buffer = buffer

    def __getitem__(self, indices: Indices) -> Load:
        return Load(self.buffer, self._indices(indices))

    def __setitem__(self, indices: Indices, value: ExprLike) -> None:
        stored = as_expr(value, self.buffer.dtype)
        self.builder.emit(Store(self.buffer, self._indices(indices), stored))

    def _indices(self, indices: Indices) -> tuple[Expr, ...]:
        group = indices if isinstance(indices, tuple) else (indices,)
        if len(group) != len(self.buffer.shape):
            raise TEError(
                f"{self.buffer.name}: expected {len(self.buffer.shape)} indices, found {len(group)}"
            )
        return tuple(as_expr(i, "int32") for i in group)


class IRBuilder:
    """Collects statements in order; those made inside a ``with`` go into its loop or condition."""

    def __init__(self) -> None:
        self._open: list[list[Stmt]] = [[]]
        self._allocated: list[Buffer] = []

    def emit(self, stmt: Stmt) -> None:
        """Appends a statement to the innermost open loop or condition."""
        self._open[-1].append(stmt)

    def buffer_ptr(self, buffer: Buffer) -> BufferVar:
        """A handle on a buffer or tensor, through which elements are read and written."""
        return BufferVar(self, buffer)

    def allocate(self, dtype: str, shape: int | Sequence[int], name: str = "buf") -> BufferVar:
        """A temporary buffer of ``shape``, which lives as long as the whole statement."""
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        self._allocated.append(Buffer(name, dims, dtype))
        return BufferVar(self, self._allocated[-1])

    @contextmanager
    def for_range(
        self, begin: int, end: int, name: str = "i", dtype: str = "int32", for_type: str = "serial"
    ) -> Iterator[Expr]:
        """A loop around what is made inside the ``with``; gives the loop's index.

        Args:
            begin: the first index.
            end: the index after the last one.
            name: of the loop's variable.
            dtype: int32, as of all loops.
            for_type: ``"serial"``, ``"parallel"``, ``"vectorized"``, ``"unrolled"`` …

        Raises:
            TEError: the range is empty, the dtype isn't int32, or ``for_type`` is no kind of loop.
        """
        if dtype != "int32" or for_type not in LOOP_KINDS:
            raise TEError(
                f"for_range {name}: expected int32 and a kind of {', '.join(LOOP_KINDS)}, "
                f"found {dtype} and {for_type}"
            )
        if end <= begin:
            raise TEError(f"for_range {name}: expected end > begin, found {begin} to {end}")
        var = Var(name)
        self._open.append([])
        yield var + begin if begin else var
        self.emit(For(var, end - begin, for_type, self._close()))

    @contextmanager
    def if_scope(self, cond: Expr) -> Iterator[None]:
        """Has what is made inside the ``with`` done where ``cond``, a bool, holds."""
        cond = as_condition("if_scope", cond)
        self._open.append([])
        yield
        self.emit(If(cond, self._close()))

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Has what is made inside the ``with`` done where the condition just before doesn't hold.

        Raises:
            TEError: no ``if_scope`` stands directly before.
        """
        last = self._open[-1][-1] if self._open[-1] else None
        if not isinstance(last, If) or last.orelse is not None:
            raise TEError("else_scope: expected an if_scope directly before, found none")
        self._open.append([])
        yield
        orelse = self._close()
        self._open[-1][-1] = If(last.cond, last.then, orelse)

    def get(self) -> Stmt:
        """Everything that was made, as one statement.

        Raises:
            TEError: a loop or a condition is still open.
        """
        if len(self._open) != 1:
            raise TEError("get: expected every scope to be closed, found an open one")
        body: Stmt = seq(*self._open[0]) if self._open[0] else Seq(())
        for buffer in reversed(self._allocated):
            body = Alloc(buffer, body)
        return body

    def _close(self) -> Stmt:
        stmts = self._open.pop()
        return seq(*stmts) if stmts else Seq(())


def create() -> IRBuilder:
    """An empty builder."""
    return IRBuilder()
