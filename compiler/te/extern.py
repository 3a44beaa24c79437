"""``extern``: tensors given by a statement rather than by an expression of their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import overload

from vdla.compiler.te.tensor import Operation, Shape, TEError, Tensor, as_shape
from vdla.compiler.tir.ir import Alloc, IRError, PrimFunc, Stmt
from vdla.compiler.tir.lower import written_buffers
from vdla.compiler.tir.verify import verify
from vdla.compiler.tir.visitor import blocks

Statement = Callable[[Sequence[Tensor], Sequence[Tensor]], Stmt]


@dataclass(frozen=True, slots=True, eq=False)
class ExternOp(Operation):
    """The operation of ``te.extern``: a statement that computes all of its outputs at once.

    A schedule can say where it runs (``compute_at``) and give its inputs copies, but it can't
    change the loops inside.

    Attributes:
        name: the stage's name.
        reads: the tensors that the statement reads.
        formals: buffers that stand for the outputs inside ``body``.
        body: the statement, on ``reads`` and ``formals``.
        outputs: the tensors that users of the operation read; same shapes and dtypes as
            ``formals``.
    """

    kind = "extern"
    name: str
    reads: tuple[Tensor, ...]
    formals: tuple[Tensor, ...]
    body: Stmt
    outputs: list[Tensor] = field(default_factory=list, repr=False)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the statement reads, as they were given to ``te.extern``."""
        return self.reads


@overload
def extern(
    shape: int | tuple[int, ...],
    inputs: Sequence[Tensor],
    fcompute: Statement,
    name: str = "extern",
    dtype: str | None = None,
) -> Tensor: ...


@overload
def extern(
    shape: list[tuple[int, ...]],
    inputs: Sequence[Tensor],
    fcompute: Statement,
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
) -> tuple[Tensor, ...]: ...


def extern(
    shape: Shape | list[tuple[int, ...]],
    inputs: Sequence[Tensor],
    fcompute: Statement,
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Tensors that a statement computes; a stage whose own loops schedules leave as they are.

    ::

        def reverse(ins, outs):
            ib = te.ir_builder.create()
            with ib.for_range(0, 8, "i") as i:
                ib.buffer_ptr(outs[0])[7 - i] = ins[0][i]
            return ib.get()

        B = te.extern((8,), [A], reverse, "B")

    Args:
        shape: the output's; or a list of shapes, of several outputs.
        inputs: the tensors that the statement reads.
        fcompute: called once with the inputs and the outputs; returns the statement.
        name: the stage's; several outputs are ``name_v0``, ``name_v1`` …
        dtype: the outputs', one or a list; by default that which all inputs have.

    Returns:
        The output; of a list of shapes, a tuple of outputs.

    Raises:
        TEError: the statement isn't well formed, writes to an input, leaves an output unwritten or
            touches other tensors; or the dtypes can't be told from the inputs.
    """
    several = isinstance(shape, list)
    shapes = [as_shape(s, name) for s in (shape if isinstance(shape, list) else [shape])]
    dtypes = _output_dtypes(name, inputs, len(shapes), dtype)
    names = [f"{name}_v{n}" for n in range(len(shapes))] if several else [name]
    formals = tuple(Tensor(*of) for of in zip(names, shapes, dtypes, strict=True))
    body = _checked(name, tuple(inputs), formals, fcompute(tuple(inputs), formals))
    op = ExternOp(name, tuple(inputs), formals, body)
    for n, formal in enumerate(formals):
        op.outputs.append(Tensor(formal.name, formal.shape, formal.dtype, op=op, value_index=n))
    return tuple(op.outputs) if several else op.outputs[0]


def _output_dtypes(
    name: str, inputs: Sequence[Tensor], count: int, dtype: str | Sequence[str] | None
) -> list[str]:
    """The dtype of each output: as given, or the one that all inputs share."""
    if dtype is None:
        result = sorted({t.dtype for t in inputs})
        if len(result) != 1:
            raise TEError(
                f"{name}: expected a dtype, as its inputs don't have one in common, "
                f"found none ({', '.join(result) or 'no inputs'})"
            )
        return result * count
    dtypes = [dtype] * count if isinstance(dtype, str) else list(dtype)
    if len(dtypes) != count:
        raise TEError(f"{name}: expected {count} dtypes, one for each output, found {len(dtypes)}")
    return dtypes


def _checked(name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], stmt: object) -> Stmt:
    """The statement, if it is one that reads the inputs and writes the outputs alone."""
    if not isinstance(stmt, Stmt):
        raise TEError(
            f"{name}: expected fcompute to return a statement, found "
            f"{type(stmt).__name__}; te.ir_builder makes one"
        )
    if any(blocks(stmt)):
        raise TEError(f"{name}: expected loops, conditions and stores, found a block")
    whole = stmt
    for buffer in dict.fromkeys((*inputs, *outputs)):
        whole = Alloc(buffer, whole)
    try:
        verify(PrimFunc(name, (), whole))
    except IRError as error:
        raise TEError(str(error)) from error
    written = written_buffers(stmt)
    for tensor in inputs:
        if tensor in written:
            raise TEError(
                f"{name}: expected stores to its outputs alone, found one to the input "
                f"{tensor.name}"
            )
    for tensor in outputs:
        if tensor not in written:
            raise TEError(f"{name}: expected stores to {tensor.name}, found none")
    return stmt
