"""Reductions: ``sum``, ``prod``, ``max``, ``min``, and what users declare with ``comm_reducer``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from vdla.compiler.te.tensor import IterVar, Reduce, Reducer, TEError
from vdla.compiler.tir.ir import (
    INT_RANGES,
    Binary,
    Const,
    Expr,
    ExprLike,
    Select,
    Var,
    as_expr,
    binary,
    const,
    is_float,
)

Axes = IterVar | Sequence[IterVar]
Values = tuple[ExprLike, ...]


class CommReducer:
    """A commutative reducer, as ``comm_reducer`` gives it; it is called like ``te.sum``.

    Attributes:
        fcombine: two values to one, or two tuples of values to one.
        fidentity: dtypes to the neutral element of each value.
        name: for messages.
    """

    def __init__(
        self, fcombine: Callable[..., Any], fidentity: Callable[..., object], name: str
    ) -> None:
        self.fcombine = fcombine
        self.fidentity = fidentity
        self.name = name

    @overload
    def __call__(
        self, expr: Values, axis: Axes, where: Expr | None = None, init: Values | None = None
    ) -> tuple[Expr, ...]: ...

    @overload
    def __call__(
        self,
        expr: ExprLike,
        axis: Axes | ExprLike,
        where: Expr | None = None,
        init: ExprLike | None = None,
    ) -> Expr: ...

    def __call__(
        self,
        expr: ExprLike | Values,
        axis: Axes | ExprLike,
        where: Expr | None = None,
        init: ExprLike | Values | None = None,
    ) -> Expr | tuple[Expr, ...]:
        """The values over ``axis``, from the identity or from ``init`` on.

        Args:
            expr: a value, or a tuple of values that are reduced together.
            axis: one ``reduce_axis`` or several; or a second value, which ``expr`` is combined
                with.
            where: steps at which it doesn't hold count as the identity.
            init: as many values as ``expr``, over the spatial axes; a bias, say.

        Returns:
            The reduction, which must be the whole body of a ``te.compute``; of a tuple, a tuple.

        Raises:
            TEError: an axis isn't a ``reduce_axis``, or values, init and what ``fcombine`` gives
                don't agree in number and dtype.
        """
        if not isinstance(expr, tuple | list) and _is_value(axis):
            return as_expr(self.fcombine(expr, axis))
        source = tuple(as_expr(e) for e in _as_tuple(expr))
        axes = _check_axes(self.name, axis)
        reducer = self._typed(tuple(e.dtype for e in source), isinstance(expr, tuple | list))
        if where is not None:
            source = tuple(
                Select(where, e, i) for e, i in zip(source, reducer.identity, strict=True)
            )
        start = reducer.identity if init is None else self._checked_init(_as_tuple(init), source)
        values = tuple(Reduce(reducer, source, axes, start, n) for n in range(len(source)))
        return values if isinstance(expr, tuple | list) else values[0]

    def _typed(self, dtypes: tuple[str, ...], grouped: bool) -> Reducer:
        """The reducer of values of these dtypes."""
        lhs = tuple(Var(f"x{n}", t) for n, t in enumerate(dtypes))
        rhs = tuple(Var(f"y{n}", t) for n, t in enumerate(dtypes))
        combined = self.fcombine(lhs, rhs) if grouped else self.fcombine(lhs[0], rhs[0])
        result = self._checked("fcombine", _as_tuple(combined), dtypes)
        identity = self._checked("fidentity", _as_tuple(self.fidentity(*dtypes)), dtypes)
        plain = tuple(_as_minmax(e, (*lhs, *rhs)) for e in result)
        return Reducer(self.name, lhs, rhs, plain, identity)

    def _checked(
        self, what: str, values: Sequence[ExprLike], dtypes: tuple[str, ...]
    ) -> tuple[Expr, ...]:
        """Values as expressions of ``dtypes``, one for each; Python's numbers are converted."""
        if len(values) != len(dtypes):
            raise TEError(
                f"{self.name}: expected {len(dtypes)} values of {what}, one for each "
                f"that is reduced, found {len(values)}"
            )
        exprs = tuple(as_expr(v, t) for v, t in zip(values, dtypes, strict=True))
        for expr, dtype in zip(exprs, dtypes, strict=True):
            if expr.dtype != dtype:
                raise TEError(
                    f"{self.name}: expected {what} to give {dtype}, as the values that "
                    f"are reduced, found {expr.dtype}; cast it"
                )
        return exprs

    def _checked_init(self, init: Sequence[ExprLike], source: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """One initial value for each value that is reduced, of the same dtype."""
        if len(init) != len(source):
            raise TEError(
                f"{self.name}: expected {len(source)} values of init, one for each that "
                f"is reduced, found {len(init)}"
            )
        exprs = tuple(as_expr(i, e.dtype) for i, e in zip(init, source, strict=True))
        for each, value in zip(exprs, source, strict=True):
            if each.dtype != value.dtype:
                raise TEError(f"reduction: expected an init of {value.dtype}, found {each.dtype}")
        return exprs


def comm_reducer(
    fcombine: Callable[..., object], fidentity: Callable[..., object], name: str = "reduce"
) -> CommReducer:
    """A commutative reducer of the user's, as TVM's: called like ``te.sum``.

    Before the first step ``C[y] = identity``; each step is ``C[y] = fcombine(C[y], source)``::

        prod = te.comm_reducer(lambda x, y: x * y, lambda t: te.const(1, t), "prod")
        C = te.compute((n,), lambda y: prod(A[y, k], axis=k), "C")

        argmax = te.comm_reducer(
            lambda x, y: (te.select(x[1] >= y[1], x[0], y[0]), te.maximum(x[1], y[1])),
            lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), "argmax")
        index, value = te.compute((n,), lambda y: argmax((k, A[y, k]), axis=k), "T")

    Schedules may run its steps in any order and in parts, so ``fcombine`` must be associative and
    commutative, with ``fidentity`` its neutral element. One that combines as addition, minimum or
    maximum do is that, on the accelerator too.

    Args:
        fcombine: two values to one; or, of tuples, two tuples to a tuple.
        fidentity: of dtypes, as many as values.
        name: for messages.
    """
    return CommReducer(fcombine, fidentity, name)


def _as_tuple(value: object) -> tuple[Any, ...]:
    """A tuple or list as a tuple; anything else as a tuple of one."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _check_axes(name: str, axis: object) -> tuple[IterVar, ...]:
    """The axes of a reduction, all of which must be reduce axes."""
    axes = _as_tuple(axis)
    for a in axes:
        if not isinstance(a, IterVar):
            raise TEError(f"{name}: expected reduce axes to reduce over, found {a}")
        if a.kind != "reduce":
            raise TEError(f"{a.name}: expected a reduce_axis, found a spatial one")
    return axes


def _is_value(other: object) -> bool:
    """Whether a reducer got a second value rather than reduce axes."""
    if isinstance(other, IterVar):
        return other.kind != "reduce"
    return isinstance(other, Expr | int | float)


def _as_minmax(expr: Expr, operands: Sequence[Var]) -> Expr:
    """A choice between two integers by their order as the minimum or maximum that it is."""
    match expr:
        case Select(Binary("lt" | "le" | "gt" | "ge" as op, Var() as a, Var() as b), c, d) if (
            any(a is x for x in operands)
            and any(b is x for x in operands)
            and ((c is a and d is b) or (c is b and d is a))
            and not is_float(expr.dtype)
        ):
            return Binary("min" if (op in ("lt", "le")) == (c is a) else "max", a, b)
    return expr


def min_value(dtype: str) -> Const:
    """The least value of a dtype; minus infinity for floats. It is the identity of ``max``."""
    return Const(-float("inf"), dtype) if is_float(dtype) else Const(INT_RANGES[dtype][0], dtype)


def max_value(dtype: str) -> Const:
    """The greatest value of a dtype; infinity for floats. It is the identity of ``min``."""
    return Const(float("inf"), dtype) if is_float(dtype) else Const(INT_RANGES[dtype][1], dtype)


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    """The lesser of two values; ``te.min`` is the reduction over an axis."""
    return binary("min", a, b)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    """The greater of two values; ``te.max`` is the reduction over an axis."""
    return binary("max", a, b)


sum = comm_reducer(lambda x, y: x + y, lambda t: const(0, t), "sum")
prod = comm_reducer(lambda x, y: x * y, lambda t: const(1, t), "prod")
max = comm_reducer(maximum, min_value, "max")
min = comm_reducer(minimum, max_value, "min")
