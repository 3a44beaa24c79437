"""Adjoints of functions element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from vdla.compiler.autodiff.rules import Gradients, gathered, rule
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.functions import Settings
from vdla.compiler.graph.ops.wide import Dequantize16, Quantize16
from vdla.compiler.tracing.arrays import UFUNCS, Array
from vdla.compiler.tracing.elements import erf, sigmoid, where
from vdla.compiler.tracing.shapes import full_like

Slope = Callable[[Array, Array, Settings], Array]
exp, log, sqrt, power, sign = (UFUNCS[f] for f in (np.exp, np.log, np.sqrt, np.power, np.sign))
sin, cos, sinh, cosh, tanh = (UFUNCS[f] for f in (np.sin, np.cos, np.sinh, np.cosh, np.tanh))
absolute, minimum, maximum = (UFUNCS[f] for f in (np.absolute, np.minimum, np.maximum))


def _flag(condition: Array, like: Array) -> Array:
    """1 where a condition holds, else 0."""
    return condition.astype(like.dtype)


def _sqrt(x: Array, y: Array, s: Settings) -> Array:
    """The slope; at 0, where norms of zeros have a corner and it has none, 0."""
    result: Array = 0.5 * _flag(y > 0, y) / where(y > 0, y, full_like(y, 1))
    return result


def _mish(x: Array, y: Array, s: Settings) -> Array:
    whole = tanh(maximum(x, 0) + log(1 + exp(-absolute(x))))
    result: Array = whole + x * (1 - whole * whole) * sigmoid(x)
    return result


def _gelu(x: Array, y: Array, s: Settings) -> Array:
    share, density = 0.5 * (1 + erf(x * math.sqrt(0.5))), exp(-0.5 * x * x)
    result: Array = share + x * density * (1 / math.sqrt(2 * math.pi))
    return result


def _gelu_tanh(x: Array, y: Array, s: Settings) -> Array:
    root = math.sqrt(2 / math.pi)
    t = tanh(root * (x + 0.044715 * x * x * x))
    result: Array = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x)
    return result


def _swish(x: Array, y: Array, s: Settings) -> Array:
    share = sigmoid(x * s.alpha)
    result: Array = share + s.alpha * x * share * (1 - share)
    return result


def _elu(x: Array, alpha: float, gamma: float = 1.0) -> Array:
    return where(x > 0, full_like(x, gamma), gamma * alpha * exp(minimum(x, 0)))


# The slope of each function at x, of which y is the value.
SLOPES: dict[str, Slope] = {
    "sigmoid": lambda x, y, s: y * (1 - y),
    "tanh": lambda x, y, s: 1 - y * y,
    "exp": lambda x, y, s: y,
    "log": lambda x, y, s: 1 / x,
    "sqrt": _sqrt,
    "abs": lambda x, y, s: sign(x),
    "neg": lambda x, y, s: full_like(x, -1),
    "reciprocal": lambda x, y, s: -y * y,
    "erf": lambda x, y, s: exp(-x * x) * (2 / math.sqrt(math.pi)),
    "sin": lambda x, y, s: cos(x),
    "cos": lambda x, y, s: -sin(x),
    "tan": lambda x, y, s: 1 + y * y,
    "asin": lambda x, y, s: 1 / sqrt(1 - x * x),
    "acos": lambda x, y, s: -1 / sqrt(1 - x * x),
    "atan": lambda x, y, s: 1 / (1 + x * x),
    "sinh": lambda x, y, s: cosh(x),
    "cosh": lambda x, y, s: sinh(x),
    "asinh": lambda x, y, s: 1 / sqrt(x * x + 1),
    "acosh": lambda x, y, s: 1 / sqrt(x * x - 1),
    "atanh": lambda x, y, s: 1 / (1 - x * x),
    "relu": lambda x, y, s: _flag(x > 0, x),
    "softplus": lambda x, y, s: sigmoid(x),
    "softsign": lambda x, y, s: 1 / ((1 + absolute(x)) * (1 + absolute(x))),
    "mish": _mish,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "swish": _swish,
    "leaky_relu": lambda x, y, s: where(x > 0, full_like(x, 1), full_like(x, s.alpha)),
    "elu": lambda x, y, s: _elu(x, s.alpha),
    "selu": lambda x, y, s: _elu(x, s.alpha, s.beta),
    "celu": lambda x, y, s: where(
        x > 0, full_like(x, 1), exp(minimum(x, 0) / s.alpha)
    ),
    "thresholded_relu": lambda x, y, s: _flag(x > s.alpha, x),
    "shrink": lambda x, y, s: _flag(absolute(x) > s.alpha, x),
    "hard_sigmoid": lambda x, y, s: s.alpha * _flag((y > 0) & (y < 1), x),
    "hard_swish": lambda x, y, s: where(
        x < -3, full_like(x, 0), where(x > 3, full_like(x, 1), (2 * x + 3) / 6)
    ),
}  # fmt: skip
FLAT = frozenset({"floor", "ceil", "round", "sign"})  # whose slope is zero wherever it is defined


@rule(ops.Unary)
def _unary(node: ops.Unary, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    if node.function not in SLOPES:
        return [None]
    return [d * SLOPES[node.function](x[0], y, node.settings)]


@rule(ops.Relu)
def _relu(node: ops.Relu, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    return [d * _flag(x[0] > 0, d)]


@rule(ops.Clip)
def _clip(node: ops.Clip, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    low, high = (float(limit) for limit in (node.low, node.high))
    return [d * _flag((x[0] > low) & (x[0] < high), d)]


@rule(ops.Cast)
def _cast(node: ops.Cast, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    """The gradient among floats; integers are steps, whose slope is zero wherever it is defined."""
    return [d.astype(x[0].dtype) if x[0].dtype.kind == "f" == y.dtype.kind else None]


# Of several operands -----------------------------------------------------------------------------


@rule(ops.Add)
def _add(node: ops.Add, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    return [gathered(d, each.shape) for each in x]


def _pow(a: Array, b: Array, y: Array) -> tuple[Array, Array]:
    """Slopes of a power; that of its exponent is 0 where the base isn't positive."""
    positive = a > 0
    safe = where(positive, a, full_like(a, 1))
    return b * power(a, b - 1), where(positive, y * log(safe), full_like(y, 0))


def _chosen(a: Array, b: Array, first: Array) -> tuple[Array, Array]:
    """Slopes of the one of two that is taken; of equal ones each has a half."""
    half = 0.5 * _flag(a == b, a)
    taken = _flag(first, a)
    return taken + half, 1 - taken - half


PARTIAL: dict[str, Callable[[Array, Array, Array], tuple[Array, Array]]] = {
    "sub": lambda a, b, y: (full_like(y, 1), full_like(y, -1)),
    "mul": lambda a, b, y: (b, a),
    "div": lambda a, b, y: (1 / b, -y / b),
    "pow": _pow,
    "max": lambda a, b, y: _chosen(a, b, a > b),
    "min": lambda a, b, y: _chosen(a, b, a < b),
    "prelu": lambda a, b, y: (
        where(a > 0, full_like(y, 1), b + full_like(y, 0)), minimum(a, 0),
    ),
}  # fmt: skip


@rule(ops.Binary)
def _binary(node: ops.Binary, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    if node.function not in PARTIAL:
        return [None, None]
    slopes = PARTIAL[node.function](x[0], x[1], y)
    return [gathered(d * slope, each.shape) for each, slope in zip(x, slopes, strict=True)]


@rule(ops.Where)
def _where(node: ops.Where, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    condition, a, b = x
    zero = full_like(d, 0)
    first, second = where(condition, d, zero), where(condition, zero, d)
    return [None, gathered(first, a.shape), gathered(second, b.shape)]


# Straight through --------------------------------------------------------------------------------


@rule(ops.Quantize, Quantize16)
def _quantize(node: ops.Quantize | Quantize16, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    """The gradient as if nothing were rounded, where no limit is met (Bengio et al.,
    arXiv:1308.3432); ``d`` is that of the numbers that integers stand for."""
    scale, zero = (node.along(each, y.ndim) for each in (node.scale, node.zero_point))
    whole = np.iinfo(y.dtype)
    limits = (node.low, node.high) if isinstance(node, Quantize16) else (whole.min, whole.max)
    low, high = ((n - zero) * scale for n in (limits[0] - 0.5, limits[1] + 0.5))
    inside = (x[0] > np.asarray(low, x[0].dtype)) & (x[0] < np.asarray(high, x[0].dtype))
    return [d * _flag(inside, d)]


@rule(ops.Dequantize, Dequantize16)
def _dequantize(
    node: ops.Dequantize | Dequantize16, x: Sequence[Array], y: Array, d: Array
) -> Gradients:
    """The gradient of the number that the integers stand for."""
    return [d]
