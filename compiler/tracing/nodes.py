"""Nodes of the graph in the making, and the arrays that they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify_dtypes
from vdla.compiler.graph.ir import GraphError, Node
from vdla.compiler.graph.ops.control import typed
from vdla.compiler.graph.types import DTYPES, TensorType
from vdla.compiler.tracing.arrays import FUNCTIONS, STACK, Array, Values
from vdla.compiler.tracing.errors import TraceError

KINDS = "biuf"  # of elements; a number of one kind is one of those behind it, too


def array(value: object, like: Array | None = None) -> Array:
    """An array of the innermost trace with a value known now, or one that is traced already.

    A Python number takes the element type of ``like``.

    Raises:
        TraceError: no function is being traced, or ``value`` is no numbers.
    """
    if isinstance(value, Array):
        return value
    if not STACK.traces:
        raise TraceError("an array", "a function under @vdla.fn around it", "none")
    if like is not None and isinstance(value, bool | int | float):
        value = _number(value, like.dtype)
    result, trace = np.asarray(value), STACK.traces[-1]
    if result.dtype.kind not in KINDS:
        raise TraceError("an array", "numbers", type(value).__name__)
    return Array(trace, trace.constant(result))


def _number(value: float, dtype: np.dtype[np.generic]) -> Values:
    """A Python number as an element of a type, which must have it."""
    kind = "i" if dtype.kind == "u" else dtype.kind
    try:
        if KINDS.index(np.asarray(value).dtype.kind) <= KINDS.index(kind):
            return np.asarray(value, dtype)
    except OverflowError:
        pass
    raise TraceError("a number", f"one that {dtype} has", f"{value!r}; astype converts the array")


def arrays(what: str, values: Sequence[object]) -> list[Array]:
    """Operands of one element type; Python's numbers take that of the arrays.

    Raises:
        TraceError: two arrays have different types.
    """
    first = next((array(v) for v in values if not isinstance(v, bool | int | float)), None)
    result = [array(value, first) for value in values]
    for each in result[1:]:
        if each.dtype != result[0].dtype:
            actual = f"{typed(result[0].type)} and {typed(each.type)}; convert one with astype"
            raise TraceError(what, "arrays of one element type", actual)
    return result


def add(
    what: str, node: type[Node], operands: Sequence[Array], kind: TensorType | str, **fields: object
) -> Array:
    """The result of a new node of the innermost trace, named after ``what``.

    ``kind`` is the result's type, or its element type where the node says its shape.

    Raises:
        TraceError: the node breaks a rule of its operator.
    """
    trace = STACK.traces[-1]
    own, name = [trace.own(each) for each in operands], trace.session.fresh(f"{trace.stem}.{what}")
    several = node.OPERANDS == ("parts",)
    read = {"parts": tuple(own)} if several else dict(zip(node.OPERANDS, own, strict=False))
    new = cast("Callable[..., Node]", node)(name=name, output=name, **read, **fields)
    try:
        if isinstance(kind, str):
            shape = new.result_shape([each.shape for each in operands])
            kind = TensorType(operands[0].shape if shape is None else shape, kind)
        trace.tensors[name] = kind
        verify_dtypes(trace.tensors, new)
    except GraphError as error:
        expected, _, actual = str(error).split(": expected ", 1)[-1].partition(", found ")
        raise TraceError(what, expected, actual) from None
    trace.nodes.append(new)
    return Array(trace, name)


def axis_of(what: str, axis: object, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        TraceError: an array of ``rank`` axes has no such axis.
    """
    if not isinstance(axis, int | np.integer) or not -rank <= axis < rank:
        raise TraceError(what, f"an axis of {rank}", axis)
    return int(axis) % rank


def astype(x: Array, dtype: object) -> Array:
    """The elements as others of another type."""
    name = str(np.dtype(cast("str", dtype)))
    if name not in DTYPES:
        raise TraceError("astype", f"one of {', '.join(DTYPES)}", name)
    return x if name == x.dtype else add("astype", ops.Cast, [x], name)


FUNCTIONS[Array.astype] = astype
