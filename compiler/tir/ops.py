"""Operators and functions of expressions, on numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from vdla.compiler.tir.ir import INT_RANGES

Array = npt.NDArray[Any]

UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floordiv": np.floor_divide,
    "floormod": np.remainder,
    "min": np.minimum,
    "max": np.maximum,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
}

_erf = np.vectorize(math.erf, otypes=[np.float64])


def erf(x: Array) -> Array:
    """The error function of each element, in the array's dtype."""
    return np.asarray(_erf(x)).astype(np.asarray(x).dtype)


def rq(acc: Array, scale: Array | int) -> Array:
    """acc * m / 2**k rounded half to even, in int32: ``isa.numbers.rq``, element by element.

    ``scale`` packs m = scale & 0xFFFFFF (unsigned) and k = (scale >> 24) & 0x3F in an int32 word.
    The product has at most 55 bits and a sign, so int64 holds every step exactly.
    """
    word = np.asarray(scale).astype(np.int64)
    m, k = word & 0xFFFFFF, (word >> 24) & 0x3F
    product = np.asarray(acc).astype(np.int64) * m
    odd = (product >> k) & 1
    half = np.int64(1) << np.maximum(k - 1, 0)
    nearest = np.where(k == 0, 0, half - 1 + odd)
    low, high = INT_RANGES["int32"]
    result: Array = np.clip((product + nearest) >> k, low, high).astype(np.int32)
    return result


def reciprocal(y: Array) -> Array:
    """The scale word of 1 / y, 0 for y ≤ 0: ``isa.numbers.reciprocal``, element by element."""
    number, length = _positive(y)
    shift = 22 + length
    return _words(y, (np.int64(1) << shift) // number, shift)


def rsqrt(y: Array) -> Array:
    """The scale word of 1 / √y, 0 for y ≤ 0: ``isa.numbers.rsqrt``, element by element.

    The radicand has at most 48 bits, so float64 holds it; its root isn't rounded up to an integer.
    """
    number, length = _positive(y)
    half = (length - 1) // 2
    root = np.sqrt((number << 2 * (23 - half)).astype(np.float64)).astype(np.int64)
    return _words(y, (np.int64(1) << 46) // root, 23 + half)


def _positive(y: Array) -> tuple[Array, Array]:
    """Integers, with 1 for those below, and the bits of each."""
    number = np.maximum(np.asarray(y).astype(np.int64), 1)
    return number, np.frexp(number.astype(np.float64))[1].astype(np.int64)


def _words(y: Array, mantissa: Array, shift: Array) -> Array:
    """Scale words, 0 where y ≤ 0."""
    result: Array = np.where(np.asarray(y) > 0, mantissa | shift << 24, 0).astype(np.int32)
    return result


def fma(x: Array, y: Array, z: Array) -> Array:
    """``x * y + z`` of float32, rounded once.

    The product is exact in float64. What their sum loses there marks its last bit, so that rounding
    it again goes the right way (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums:
    proved algorithms using rounding to odd", IEEE TC 2008).
    """
    product = np.asarray(x).astype(np.float64) * np.asarray(y).astype(np.float64)
    addend = np.asarray(z).astype(np.float64)
    total = product + addend
    part = total - product
    lost = (product - (total - part)) + (addend - part)
    bits = np.asarray(total).view(np.int64)
    inexact = (lost != 0) & np.isfinite(total) & (bits & 1 == 0)
    towards = np.where((lost > 0) == (total > 0), 1, -1)
    odd = np.where(inexact, bits + towards, bits).view(np.float64)
    return np.asarray(odd).astype(np.float32)


CALL_FUNCS: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "sqrt": np.sqrt,
    "rint": np.rint,
    "floor": np.floor,
    "tanh": np.tanh,
    "erf": erf,
    "log": np.log,
    "pow": np.power,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "abs": np.abs,
    "rq": rq,
    "reciprocal": reciprocal,
    "rsqrt": rsqrt,
    "fma": fma,
}


def wrap(value: int, dtype: str) -> int:
    """An integer as the dtype holds it: modulo two to the power of its bits."""
    low, high = INT_RANGES[dtype]
    return (value - low) % (high - low + 1) + low
