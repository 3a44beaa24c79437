"""Functions of one element and of two: in numpy, and as expressions.

They take and give one element type. In numpy, sigmoid, tanh and erf of float32 are onnxruntime's,
bit for bit. Of float16, functions of several steps compute in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.numbers import f32
from vdla.compiler.graph.ops import approximations
from vdla.compiler.graph.types import Array
from vdla.compiler.tir.ir import Expr, is_float


@dataclass(frozen=True)
class Settings:
    """Settings of a function: ``alpha`` and ``beta``, as each needs them."""

    alpha: float = 0.0
    beta: float = 0.0


UnaryArray = Callable[[Array, Settings], Array]
UnaryExpr = Callable[[Expr, Settings], Expr]
BinaryArray = Callable[[Array, Array], Array]
BinaryExpr = Callable[[Expr, Expr], Expr]


def like(value: float, x: Expr) -> Expr:
    """A constant of the type that an expression has."""
    if not is_float(x.dtype):
        return te.const(int(value), x.dtype)
    return te.const(value if x.dtype == "float64" else f32(value), x.dtype)


def of(value: float, x: Array) -> Array:
    """A number as an array of the type that ``x`` has."""
    return np.asarray(value, x.dtype)


# Of one element ----------------------------------------------------------------------------------


def _bent(x: Expr, slope: Expr) -> Expr:
    """``x`` where it is positive, ``slope * x`` elsewhere."""
    return te.maximum(x, like(0, x)) + slope * te.minimum(x, like(0, x))


def _unit(x: Expr) -> Expr:
    return te.minimum(te.maximum(x, like(0, x)), like(1, x))


def _sign(x: Expr) -> Expr:
    """NaN and both zeros are their own."""
    zero, one = like(0, x), like(1, x)
    if x.dtype.startswith("uint"):
        return te.minimum(x, one)
    return te.select(x > zero, one, te.select(x < zero, zero - one, x))


def _exp_of_negative(x: Expr) -> Expr:
    return te.exp(te.minimum(x, like(0, x)))


def _elu(x: Expr, alpha: float, gamma: float = 1.0) -> Expr:
    below = like(alpha, x) * (_exp_of_negative(x) - like(1, x))
    value = te.select(x > like(0, x), x, below)
    return value if gamma == 1.0 else like(gamma, x) * value


def _elu_array(x: Array, alpha: float, gamma: float = 1.0) -> Array:
    below = of(alpha, x) * (np.exp(np.minimum(x, of(0, x))) - of(1, x))
    return np.asarray(of(gamma, x) * np.where(x > 0, x, below))


def _celu(x: Expr, alpha: float) -> Expr:
    bent = like(alpha, x) * (_exp_of_negative(x / like(alpha, x)) - like(1, x))
    return te.maximum(x, like(0, x)) + te.minimum(bent, like(0, x))


def _celu_array(x: Array, alpha: float) -> Array:
    bent = of(alpha, x) * (np.exp(np.minimum(x / of(alpha, x), 0)) - of(1, x))
    return np.asarray(np.maximum(x, of(0, x)) + np.minimum(bent, of(0, x)))


def _softplus(x: Expr) -> Expr:
    """Without overflow: ``max(x, 0) + log(1 + exp(-|x|))``."""
    return te.maximum(x, like(0, x)) + te.log(like(1, x) + te.exp(like(0, x) - te.abs(x)))


def _softplus_array(x: Array) -> Array:
    return np.asarray(np.maximum(x, of(0, x)) + np.log(of(1, x) + np.exp(-np.abs(x))))


def _shrink(x: Expr, s: Settings) -> Expr:
    limit, bias, zero = like(s.alpha, x), like(s.beta, x), like(0, x)
    return te.select(x < zero - limit, x + bias, te.select(x > limit, x - bias, zero))


def _shrink_array(x: Array, s: Settings) -> Array:
    limit, bias = of(s.alpha, x), of(s.beta, x)
    return np.asarray(np.where(x < -limit, x + bias, np.where(x > limit, x - bias, of(0, x))))


def _gelu_tanh(x: Expr) -> Expr:
    inner = like(math.sqrt(2 / math.pi), x) * (x + like(0.044715, x) * x * x * x)
    return like(0.5, x) * x * (like(1, x) + te.tanh(inner))


def _gelu_tanh_array(x: Array) -> Array:
    inner = of(math.sqrt(2 / math.pi), x) * (x + of(0.044715, x) * x * x * x)
    return np.asarray(of(0.5, x) * x * (of(1, x) + _tanh_array(inner)))


def _gelu(x: Expr) -> Expr:
    return like(0.5, x) * x * (like(1, x) + te.erf(x * like(math.sqrt(0.5), x)))


def _erf_array(x: Array) -> Array:
    if x.dtype == np.float32:
        return approximations.erf(x)
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x)).astype(x.dtype)


def _gelu_array(x: Array) -> Array:
    return np.asarray(of(0.5, x) * x * (of(1, x) + _erf_array(x * of(math.sqrt(0.5), x))))


def _tanh_array(x: Array) -> Array:
    return approximations.tanh(x) if x.dtype == np.float32 else np.tanh(x)


def _sigmoid_array(x: Array) -> Array:
    if x.dtype == np.float32:
        return approximations.sigmoid(x)
    return np.asarray(of(1, x) / (of(1, x) + np.exp(-x)))


def _inverted(x: Expr) -> Expr:
    """All bits of an integer."""
    return te.max_value(x.dtype) - x if x.dtype.startswith("uint") else like(-1, x) - x


def _plain(array: Callable[[Array], Array], expr: Callable[[Expr], Expr]) -> _Unary:
    """A function without settings."""
    return lambda x, s: array(x), lambda x, s: expr(x)


_Unary = tuple[UnaryArray, UnaryExpr]
UNARY: dict[str, _Unary] = {
    "sigmoid": _plain(_sigmoid_array, te.sigmoid),
    "tanh": _plain(_tanh_array, te.tanh),
    "exp": _plain(np.exp, te.exp),
    "log": _plain(np.log, te.log),
    "sqrt": _plain(np.sqrt, te.sqrt),
    "abs": _plain(np.abs, te.abs),
    "neg": _plain(np.negative, lambda x: like(-1, x) * x if is_float(x.dtype) else like(0, x) - x),
    "floor": _plain(np.floor, te.floor),
    "ceil": _plain(np.ceil, lambda x: like(-1, x) * te.floor(like(-1, x) * x)),
    "round": _plain(np.rint, te.rint),
    "sign": _plain(np.sign, _sign),
    "reciprocal": _plain(lambda x: of(1, x) / x, lambda x: like(1, x) / x),
    "erf": _plain(_erf_array, te.erf),
    "sin": _plain(np.sin, te.sin),
    "cos": _plain(np.cos, te.cos),
    "tan": _plain(np.tan, te.tan),
    "asin": _plain(np.arcsin, te.asin),
    "acos": _plain(np.arccos, te.acos),
    "atan": _plain(np.arctan, te.atan),
    "sinh": _plain(np.sinh, te.sinh),
    "cosh": _plain(np.cosh, te.cosh),
    "asinh": _plain(np.arcsinh, te.asinh),
    "acosh": _plain(np.arccosh, te.acosh),
    "atanh": _plain(np.arctanh, te.atanh),
    "relu": _plain(lambda x: np.maximum(x, of(0, x)), lambda x: te.maximum(x, like(0, x))),
    "softplus": _plain(_softplus_array, _softplus),
    "softsign": _plain(
        lambda x: x / (of(1, x) + np.abs(x)), lambda x: x / (like(1, x) + te.abs(x))
    ),
    "mish": _plain(
        lambda x: x * _tanh_array(_softplus_array(x)), lambda x: x * te.tanh(_softplus(x))
    ),
    "gelu": _plain(_gelu_array, _gelu),
    "gelu_tanh": _plain(_gelu_tanh_array, _gelu_tanh),
    "swish": (
        lambda x, s: x * _sigmoid_array(of(s.alpha, x) * x),
        lambda x, s: x * te.sigmoid(like(s.alpha, x) * x),
    ),
    "leaky_relu": (
        lambda x, s: np.maximum(x, of(0, x)) + of(s.alpha, x) * np.minimum(x, of(0, x)),
        lambda x, s: _bent(x, like(s.alpha, x)),
    ),
    "elu": (lambda x, s: _elu_array(x, s.alpha), lambda x, s: _elu(x, s.alpha)),
    "selu": (lambda x, s: _elu_array(x, s.alpha, s.beta), lambda x, s: _elu(x, s.alpha, s.beta)),
    "celu": (lambda x, s: _celu_array(x, s.alpha), lambda x, s: _celu(x, s.alpha)),
    "thresholded_relu": (
        lambda x, s: np.where(x > of(s.alpha, x), x, of(0, x)),
        lambda x, s: te.select(x > like(s.alpha, x), x, like(0, x)),
    ),
    "shrink": (_shrink_array, _shrink),
    "hard_sigmoid": (
        lambda x, s: np.clip(of(s.alpha, x) * x + of(s.beta, x), of(0, x), of(1, x)),
        lambda x, s: _unit(like(s.alpha, x) * x + like(s.beta, x)),
    ),
    "hard_swish": (
        lambda x, s: x * np.clip(x / of(6, x) + of(0.5, x), of(0, x), of(1, x)),
        lambda x, s: x * _unit(x / like(6, x) + like(0.5, x)),
    ),
}
UNARY_BITS: dict[str, _Unary] = {
    "not": _plain(np.logical_not, lambda x: ~x),
    "bitwise_not": _plain(np.invert, _inverted),
}
UNARY_TESTS: dict[str, _Unary] = {  # whose results are bools
    "is_nan": _plain(np.isnan, lambda x: te.not_equal(x, x)),
    "is_inf": _plain(np.isinf, lambda x: te.equal(te.abs(x), like(math.inf, x))),
    "is_positive_inf": _plain(np.isposinf, lambda x: te.equal(x, like(math.inf, x))),
    "is_negative_inf": _plain(np.isneginf, lambda x: te.equal(x, like(-math.inf, x))),
}


# Of two elements ---------------------------------------------------------------------------------


def _quotient(a: Expr, b: Expr) -> Expr:
    """A quotient; of integers rounded towards zero, and the dividend where the divisor is 0."""
    if is_float(a.dtype):
        return a / b
    zero, one = like(0, a), like(1, a)
    safe = te.select(te.equal(b, zero), one, b)
    if a.dtype.startswith("uint"):
        return te.floordiv(a, safe)
    minus = te.equal(b, zero - one)  # of the least integer, -1 is a trap, too
    safe = te.select(minus, one, safe)
    down = te.floordiv(a, safe)
    uneven = te.not_equal(te.floormod(a, safe), zero)
    up = te.all(uneven, te.not_equal((a < zero).astype("int8"), (safe < zero).astype("int8")))
    return te.select(minus, zero - a, down + te.select(up, one, zero))


def _quotient_array(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    safe = np.where(b == 0, of(1, b), b)
    down = np.asarray(a // safe)
    return np.asarray(down + ((a % safe != 0) & ((a < 0) != (safe < 0))).astype(a.dtype))


def _remainder(a: Expr, b: Expr) -> Expr:
    """A remainder of integers with the sign of the divisor; 0 where the divisor is 0."""
    zero, one = like(0, a), like(1, a)
    trap = te.equal(b, zero)
    if not a.dtype.startswith("uint"):
        trap = te.any(trap, te.equal(b, zero - one))
    return te.select(trap, zero, te.floormod(a, te.select(trap, one, b)))


def _remainder_array(a: Array, b: Array) -> Array:
    return np.asarray(np.where(b == 0, of(0, a), a % np.where(b == 0, of(1, b), b)))


def _fmod(a: Expr, b: Expr) -> Expr:
    """A remainder of integers with the sign of the dividend."""
    return a - _quotient(a, b) * b


def _power(a: Expr, b: Expr) -> Expr:
    if is_float(a.dtype):
        return te.power(a, b)
    return te.power(a.astype("float64"), b.astype("float64")).astype(a.dtype)


def _power_array(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.power(a, b)
    return np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def _left(a: Expr, b: Expr) -> Expr:
    """A left shift; 0 where the amount is negative, or no less than the bits of the type."""
    amount, within = _amount(b)
    return te.select(within, a << amount, like(0, a))


def _right(a: Expr, b: Expr) -> Expr:
    """Such a shift leaves the sign."""
    amount, within = _amount(b)
    if a.dtype.startswith("uint"):
        return te.select(within, a >> amount, like(0, a))
    return a >> te.select(within, amount, like(_bits(b) - 1, b))


def _amount(b: Expr) -> tuple[Expr, Expr]:
    """The shift amount, or 0 where it is out of range; and whether it is in range."""
    within = b < like(_bits(b), b)
    if not b.dtype.startswith("uint"):
        within = te.all(within, b >= like(0, b))
    return te.select(within, b, like(0, b)), within


def _bits(x: Expr) -> int:
    return np.dtype(x.dtype).itemsize * 8


_Binary = tuple[BinaryArray, BinaryExpr]
BINARY: dict[str, _Binary] = {
    "sub": (np.subtract, lambda a, b: a - b),
    "mul": (np.multiply, lambda a, b: a * b),
    "div": (_quotient_array, _quotient),
    "pow": (_power_array, _power),
    "max": (np.maximum, te.maximum),
    "min": (np.minimum, te.minimum),
    "prelu": (lambda a, b: np.maximum(a, of(0, a)) + b * np.minimum(a, of(0, a)), _bent),
}
BINARY_BITS: dict[str, _Binary] = {  # of integers, and of bools
    "mod": (_remainder_array, _remainder),
    "fmod": (lambda a, b: a - _quotient_array(a, b) * b, _fmod),
    "and": (np.logical_and, lambda a, b: te.all(a, b)),
    "or": (np.logical_or, lambda a, b: te.any(a, b)),
    "xor": (np.logical_xor, te.not_equal),
    "bitand": (np.bitwise_and, lambda a, b: a & b),
    "bitor": (np.bitwise_or, lambda a, b: a | b),
    "bitxor": (np.bitwise_xor, lambda a, b: a ^ b),
    "shl": (np.left_shift, _left),
    "shr": (np.right_shift, _right),
}
BINARY_TESTS: dict[str, _Binary] = {  # whose results are bools
    "eq": (np.equal, te.equal),
    "lt": (np.less, lambda a, b: a < b),
    "le": (np.less_equal, lambda a, b: a <= b),
    "gt": (np.greater, lambda a, b: a > b),
    "ge": (np.greater_equal, lambda a, b: a >= b),
}
