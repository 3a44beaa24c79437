"""Sizes that are given when a schedule is built: ``te.var``, under TVM's name.

Until then a size is ``STAND_IN``, a number that many tiles divide, so that tensors, schedules
and primitives work on numbers as ever. It is an integer that remembers how it came about::

    Size ::= var(name) | Size op Size        op ::= + - * // %

``at_sizes`` makes tensors anew with the sizes that they are to have.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from vdla.compiler.te.tensor import (
    ComputeOp,
    IterVar,
    Reduce,
    TEError,
    Tensor,
    outputs_of,
    producers,
)
from vdla.compiler.tir.ir import Const, Expr, Load, Var
from vdla.compiler.tir.visitor import rewrite_expr, walk_expr

STAND_IN = 40_320  # 8!: tiles of 1 to 10 and powers of two up to 128 divide it
Sizes = Mapping[str, int]
Arithmetic = Callable[[int, int], int]


def _both_ways(operate: Arithmetic) -> tuple[Any, Any]:
    """The methods of an operator for a size on its left, and for one on its right."""
    return lambda a, b: _made(operate, a, b), lambda a, b: _made(operate, b, a)


class Size(int):
    """An integer at its stand-in, made of sizes that are given later.

    Attributes:
        name: of a size itself; empty for what arithmetic made.
        operate: the arithmetic, of ``parts``.
        parts: the two operands.
    """

    name: str
    operate: Arithmetic | None
    parts: tuple[int, ...]

    def at(self, sizes: Sizes) -> int:
        """The integer for given sizes."""
        if self.operate is None:
            return sizes[self.name]
        a, b = (at(part, sizes) for part in self.parts)
        return self.operate(a, b)

    @property
    def names(self) -> set[str]:
        """The sizes that it is made of."""
        if self.operate is None:
            return {self.name}
        return {name for part in self.parts if isinstance(part, Size) for name in part.names}

    def __float__(self) -> float:
        raise TEError(
            "size: expected an integer in an expression, found it as a float, which would not "
            'follow the size; write te.const(n, "int32").astype("float32")'
        )

    def __truediv__(self, other: object) -> Any:
        if isinstance(other, Expr):
            return NotImplemented
        raise TEError(f"size: expected // of a size, found / {other!r}")

    __add__, __radd__ = _both_ways(operator.add)
    __sub__, __rsub__ = _both_ways(operator.sub)
    __mul__, __rmul__ = _both_ways(operator.mul)
    __floordiv__, __rfloordiv__ = _both_ways(operator.floordiv)
    __mod__, __rmod__ = _both_ways(operator.mod)


def var(name: str = "n") -> Size:
    """A size that is given when a schedule is built, by ``vdla.build(…, sizes={name: …})``::

        n = te.var("n")
        A = te.placeholder((n, 16), "int32", "A")
        C = te.compute((n, 16), lambda i, j: A[i, j] + 1, "C")
        s = te.create_schedule(C)
        kernel = vdla.build(s, [A, C], "cpu", sizes={"n": 100})

    It is an integer, 40,320 until then: sums, differences, products, ``//`` and ``%`` with integers
    follow it, and primitives apply as to a loop that long. What Python decides by it (``if n > 4``,
    ``max(n, 4)``) is decided for that number.

    Args:
        name: what ``sizes`` calls it.

    Raises:
        TEError: the name is no identifier.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise TEError(f"var: expected a name, found {name!r}")
    size = Size(STAND_IN)
    size.name, size.operate, size.parts = name, None, ()
    return size


def _made(operate: Arithmetic, a: object, b: object) -> Any:
    """Size that arithmetic makes of two integers, one of them a size; expressions have
    their own.
    """
    if isinstance(a, Expr) or isinstance(b, Expr):
        return NotImplemented
    if not isinstance(a, int) or not isinstance(b, int):
        other = b if isinstance(a, Size) else a
        raise TEError(f"size: expected integers in its arithmetic, found {other!r}")
    size = Size(operate(int(a), int(b)))
    size.name, size.operate, size.parts = "", operate, (a, b)
    return size


def at(value: int, sizes: Sizes) -> int:
    """An integer for given sizes."""
    return value.at(sizes) if isinstance(value, Size) else int(value)


def size_names(outputs: Iterable[Tensor]) -> list[str]:
    """The sizes that tensors and all they need are made of."""
    result = (value for tensor in producers(outputs) for value in _integers(tensor))
    return sorted({name for value in result if isinstance(value, Size) for name in value.names})


def _integers(tensor: Tensor) -> Iterator[object]:
    """The integers of a tensor and of its operation."""
    yield from tensor.shape
    if isinstance(tensor.op, ComputeOp):
        yield from (axis.extent for axis in tensor.op.axes)
        for expr in _expressions(tensor.op):
            yield from (e.value for e in walk_expr(expr) if isinstance(e, Const))


def _expressions(op: ComputeOp) -> Sequence[Expr]:
    return op.body if op.reduce is None else (*op.reduce.init, *op.reduce.source)


def at_sizes(outputs: Sequence[Tensor], sizes: Sizes) -> dict[Tensor, Tensor]:
    """Tensors and all they need, made anew with the sizes that are given.

    Raises:
        TEError: a tensor by ``te.extern`` or ``te.scan`` needs one that has sizes.
        TermError: a length isn't positive.
    """
    made: dict[Tensor, Tensor] = {}
    order = producers(outputs)
    for tensor in order:
        if tensor.op is not None and not isinstance(tensor.op, ComputeOp):
            raise TEError(
                f"{tensor.name}: expected tensors by te.compute where sizes are given at build, "
                f"found one by te.{tensor.op.kind}; write its sizes as numbers"
            )
    for tensor in order:
        if tensor in made:
            continue
        shape = tuple(at(length, sizes) for length in tensor.shape)
        if tensor.op is None:
            made[tensor] = Tensor(tensor.name, shape, tensor.dtype, value_range=tensor.value_range)
        else:
            new = outputs_of(_computed(tensor.compute_op, made, sizes), shape)
            made.update(zip(tensor.compute_op.outputs, new, strict=True))
    return made


def _computed(op: ComputeOp, made: Mapping[Tensor, Tensor], sizes: Sizes) -> ComputeOp:
    """An operation on other tensors, over axes of other extents."""
    axes: dict[Var, IterVar] = {
        axis: IterVar(axis.name, axis.type, at(axis.extent, sizes), axis.kind) for axis in op.axes
    }

    def replaced(expr: Expr) -> Expr:
        match expr:
            case Var() if expr in axes:
                return axes[expr]
            case Load(Tensor() as tensor, indices):
                return Load(made[tensor], indices)
            case Const(value, dtype) if isinstance(value, Size):
                return Const(value.at(sizes), dtype)
        return expr

    def anew(exprs: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(rewrite_expr(expr, replaced) for expr in exprs)

    body = op.body
    if op.reduce is None:
        body = anew(body)
    else:
        source, init = anew(op.reduce.source), anew(op.reduce.init)
        loops = tuple(axes[axis] for axis in op.reduce.axes)
        body = tuple(
            Reduce(op.reduce.reducer, source, loops, init, number) for number in range(len(body))
        )
    return ComputeOp(op.name, tuple(axes[axis] for axis in op.axis), body)
