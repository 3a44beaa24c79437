"""Functions that compute every kind of expression of every type, an array's elements each."""

from __future__ import annotations

from collections.abc import Iterator

from vdla import te
from vdla.compiler.tir.ir import (
    ARITHMETIC,
    BITWISE,
    COMPARISONS,
    DTYPES,
    FLOAT_CALLS,
    FLOATS,
    LOGIC,
    WORD_CALLS,
    Call,
    PrimFunc,
    binary,
)
from vdla.compiler.tir.ir.expr import ARGUMENTS

ELEMENTS = 32  # full vectors of every processor
LARGE = 4096  # elements of a temporary that doesn't fit on the stack


def all_expressions() -> list[PrimFunc]:
    """A function for each operation and conversion of each type, and one that allocates."""
    result = [func for dtype in DTYPES for func in _of(dtype)]
    x = te.placeholder((LARGE,), "float64", "x")
    y = te.compute((LARGE,), lambda i: x[LARGE - 1 - i] * x[i], "y")
    z = te.compute((LARGE,), lambda i: y[LARGE - 1 - i] + y[i], "z")
    return [*result, te.create_prim_func([x], z, "allocates")]


def _of(dtype: str) -> Iterator[PrimFunc]:
    operands = [te.placeholder((ELEMENTS,), dtype, name) for name in "abc"]

    def func(name, count, value):
        out = te.compute((ELEMENTS,), lambda i: value(*(x[i] for x in operands[:count])), "out")
        return te.create_prim_func(operands[:count], out, f"{name}.{dtype}")

    for op in _binary(dtype):
        yield func(op, 2, lambda a, b, op=op: binary(op, a, b))
    for op in _calls(dtype):
        yield func(op, ARGUMENTS.get(op, 1), lambda *x, op=op: Call(op, x, dtype))
    for other in DTYPES:
        if other != dtype:
            yield func(f"to.{other}", 1, lambda a, other=other: a.astype(other))


def _binary(dtype: str) -> tuple[str, ...]:
    if dtype == "bool":
        return (*LOGIC, *COMPARISONS)
    integral = {"floordiv", "floormod", "shl", "shr"}
    if dtype in FLOATS:
        return (*(op for op in ARITHMETIC if op not in integral), *COMPARISONS)
    return (*(op for op in ARITHMETIC if op != "div"), *COMPARISONS, *BITWISE)


def _calls(dtype: str) -> tuple[str, ...]:
    if dtype in FLOATS:
        return (*FLOAT_CALLS, "abs", *(("fma",) if dtype == "float32" else ()))
    words = WORD_CALLS if dtype == "int32" else ()
    return (*words, *(() if dtype == "bool" else ("abs",)))
