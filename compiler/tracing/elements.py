"""numpy's functions element by element, products of matrices, and functions that numpy lacks."""

from __future__ import annotations

from functools import cache, partial
from typing import TypeVar, cast

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.dynamic_matmul import MOST_OF, DynamicMatMul
from vdla.compiler.graph.ops.elementwise import UNARY
from vdla.compiler.graph.ops.functions import Settings
from vdla.compiler.graph.types import TensorType
from vdla.compiler.tracing.arrays import FUNCTIONS, STACK, UFUNCS, Array
from vdla.compiler.tracing.errors import TraceError
from vdla.compiler.tracing.nodes import add, array, arrays, axis_of

T = TypeVar("T")
NAMES: dict[np.ufunc, str] = {
    np.exp: "exp", np.log: "log", np.sqrt: "sqrt", np.tanh: "tanh", np.sin: "sin", np.cos: "cos",
    np.tan: "tan", np.arcsin: "asin", np.arccos: "acos", np.arctan: "atan", np.sinh: "sinh",
    np.cosh: "cosh", np.arcsinh: "asinh", np.arccosh: "acosh", np.arctanh: "atanh",
    np.absolute: "abs", np.negative: "neg", np.floor: "floor", np.ceil: "ceil", np.rint: "round",
    np.sign: "sign", np.reciprocal: "reciprocal", np.isnan: "is_nan", np.isinf: "is_inf",
    np.logical_not: "not", np.invert: "bitwise_not",
    np.subtract: "sub", np.multiply: "mul", np.true_divide: "div", np.power: "pow",
    np.maximum: "max", np.minimum: "min", np.equal: "eq", np.less: "lt", np.less_equal: "le",
    np.greater: "gt", np.greater_equal: "ge", np.logical_and: "and", np.logical_or: "or",
    np.logical_xor: "xor", np.bitwise_and: "bitand", np.bitwise_or: "bitor",
    np.bitwise_xor: "bitxor", np.left_shift: "shl", np.right_shift: "shr",
}  # fmt: skip
OF_BOOLS = {
    "bitand": "and", "bitor": "or", "bitxor": "xor", "bitwise_not": "not", "max": "or",
    "min": "and", "mul": "and",
}  # fmt: skip
LOGICAL = (np.logical_and, np.logical_or, np.logical_xor, np.logical_not)


@cache
def _result_dtype(ufunc: np.ufunc, dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The element type that numpy's function gives for operands of one type."""
    with np.errstate(all="ignore"):
        return np.asarray(ufunc(*[np.ones((), dtype)] * ufunc.nin)).dtype


def _operands(ufunc: np.ufunc, values: tuple[object, ...]) -> tuple[list[Array], str]:
    """Operands in the type that numpy computes in, and that of its result: a quotient of integers
    is one of floats.

    Raises:
        TraceError: the function takes no elements of their type.
    """
    operands = arrays(ufunc.__name__, values)
    if ufunc in LOGICAL:
        return [each.astype(bool) for each in operands], "bool"
    try:
        result = _result_dtype(ufunc, operands[0].dtype)
    except TypeError:
        raise TraceError(ufunc.__name__, "elements that it takes", operands[0].dtype) from None
    is_test = result == np.bool_
    return operands if is_test else [each.astype(result) for each in operands], str(result)


def _function(ufunc: np.ufunc, *values: object) -> Array:
    """A function of one element or of two that the graph has as well."""
    operands, result = _operands(ufunc, values)
    function = NAMES[ufunc]
    if operands[0].dtype == np.bool_:
        function = OF_BOOLS.get(function, function)
    kind = ops.Unary if len(operands) == 1 else ops.Binary
    return add(ufunc.__name__, kind, operands, result, function=function)


def _add(*values: object) -> Array:
    operands, result = _operands(np.add, values)
    either = operands[0].dtype == np.bool_
    return UFUNCS[np.logical_or](*values) if either else add("add", ops.Add, operands, result)


def _floor_divide(*values: object) -> Array:
    (a, b), result = _operands(np.floor_divide, values)
    if a.dtype.kind == "f":
        return UFUNCS[np.floor](a / b)
    return add("floor_divide", ops.Binary, [a - a % b, b], result, function="div")


def _remainder(*values: object) -> Array:
    (a, b), result = _operands(np.remainder, values)
    if a.dtype.kind == "f":
        return UFUNCS[np.subtract](a, UFUNCS[np.floor](a / b) * b)
    return add("remainder", ops.Binary, [a, b], result, function="mod")


def _power(a: object, b: object) -> Array:
    square = isinstance(b, int) and b == 2
    return UFUNCS[np.multiply](a, a) if square else _function(np.power, a, b)


def _matmul(*values: object) -> Array:
    """A product of matrices; a vector is a row on the left, and a column on the right."""
    left, right = arrays("matmul", values)
    if not (left.ndim and right.ndim):
        raise TraceError("matmul", "arrays with axes", "one without")
    rows = left if left.ndim > 1 else left.reshape(1, -1)
    columns = right if right.ndim > 1 else right.reshape(-1, 1)
    result = add("matmul", ops.MatMul, [rows, columns], str(left.dtype))
    gone = [-1] * (right.ndim == 1) + [-2] * (left.ndim == 1)
    return result.squeeze(tuple(gone)) if gone else result


UFUNCS |= {ufunc: partial(_function, ufunc) for ufunc in NAMES}
UFUNCS |= {
    np.add: _add, np.floor_divide: _floor_divide, np.remainder: _remainder, np.power: _power,
    np.matmul: _matmul, np.positive: array,
    np.square: lambda x: _function(np.multiply, *_operands(np.square, (x,))[0] * 2),
    np.not_equal: lambda *values: UFUNCS[np.logical_not](_function(np.equal, *values)),
}  # fmt: skip


def where(condition: object, a: object, b: object) -> Array:
    """``a`` where a condition holds, else ``b``."""
    chosen, values = array(condition), arrays("where", (a, b))
    if chosen.dtype != np.bool_:
        raise TraceError("where", "a condition of bools", chosen.dtype)
    return add("where", ops.Where, [chosen, *values], str(values[0].dtype))


def clip(x: object, least: object = None, most: object = None) -> Array:
    """Elements within bounds."""
    bounded = array(x) if least is None else UFUNCS[np.maximum](x, least)
    return bounded if most is None else UFUNCS[np.minimum](bounded, most)


FUNCTIONS |= {np.where: where, np.clip: clip}


# What numpy lacks --------------------------------------------------------------------------------


def _beyond_numpy(function: str, x: T) -> T:
    """A function of one element that numpy lacks: of numpy's arrays outside of a trace, at once."""
    if not STACK.traces:
        return cast("T", UNARY[function][0](np.asarray(x), Settings()))
    data = _floats(function, x)
    return cast("T", add(function, ops.Unary, [data], str(data.dtype), function=function))


def _floats(what: str, x: object) -> Array:
    """An array of floats."""
    if array(x).dtype.kind != "f":
        raise TraceError(what, "floats", f"{array(x).dtype}; convert with astype")
    return array(x)


def sigmoid(x: T) -> T:
    """``1 / (1 + exp(-x))``, element by element."""
    return _beyond_numpy("sigmoid", x)


def relu(x: T) -> T:
    """``max(x, 0)``, element by element."""
    return _beyond_numpy("relu", x)


def gelu(x: T) -> T:
    """``x`` times the share of a normal distribution below it, element by element."""
    return _beyond_numpy("gelu", x)


def erf(x: T) -> T:
    """Error function of a normal distribution, element by element."""
    return _beyond_numpy("erf", x)


def softmax(x: T, axis: int = -1) -> T:
    """``exp(x) / Σ exp(x)`` along an axis."""
    if not STACK.traces:
        values = np.asarray(x)
        e = np.exp(values - np.max(values, axis, keepdims=True))
        return cast("T", e / np.sum(e, axis, keepdims=True))
    data = _floats("softmax", x)
    place = axis_of("softmax", axis, data.ndim)
    return cast("T", add("softmax", ops.Softmax, [data], str(data.dtype), axis=place))


def dynamic_matmul(a: T, b: object, bits: int | tuple[int, int] = 8, gradient_bits: int = 16) -> T:
    """``a @ b`` of float32 by integers: dynamic quantization.

    A factor is rounded to ``max |x| / 127`` times an int8, or with 16 bits to two bytes; sums are
    exact in int32. An accelerator takes them. The adjoint multiplies the rounded factors with the
    gradient in integers as well, and passes rounding straight through.

    Args:
        a, b: matrices, or stacks of them that broadcast.
        bits: 8 or 16; a pair for each of both factors.
        gradient_bits: of a gradient: 8 or 16.

    Raises:
        TraceError: a factor isn't of float32, or both don't fit each other.
    """
    both = (bits, bits) if isinstance(bits, int) else bits
    for number in (*both, gradient_bits):
        if number not in MOST_OF:
            raise TraceError("dynamic_matmul", "8 or 16 bits", number)
    for each in (np.asarray(x) if not STACK.traces else array(x) for x in (a, b)):
        if each.dtype != np.float32:
            raise TraceError("dynamic_matmul", "factors of float32", each.dtype)
    if STACK.traces:
        fields = {"bits": both, "gradient_bits": gradient_bits}
        factors = [array(a), array(b)]
        return cast("T", add("dynamic_matmul", DynamicMatMul, factors, "float32", **fields))
    node = DynamicMatMul(name="y", output="y", a="a", b="b", bits=both, gradient_bits=gradient_bits)
    values = [np.asarray(a), np.asarray(b)]
    kind = TensorType(node.result_shape([each.shape for each in values]), "float32")
    return cast("T", node.evaluate(values, kind))
