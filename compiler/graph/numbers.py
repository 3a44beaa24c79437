"""The arithmetic of :mod:`vdla.isa.numbers` on whole arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.graph.ir import Array
from vdla.isa.numbers import INT32_MAX, INT32_MIN, MANTISSA_BITS, MAX_SHIFT, pack_scale

Int32 = NDArray[np.int32]


def pack_scales(scales: Iterable[float]) -> Int32:
    """One packed scale word per scale."""
    return np.array([pack_scale(s) for s in scales], np.uint32).astype(np.int32)


def rq(x: Array, words: Array | int) -> NDArray[np.int64]:
    """:func:`vdla.isa.numbers.rq`, element by element; ``words`` broadcasts against ``x``."""
    words = np.asarray(words, np.int64)
    mantissa = words & ((1 << MANTISSA_BITS) - 1)
    shift = (words >> MANTISSA_BITS) & MAX_SHIFT
    product = x.astype(np.int64) * mantissa
    quotient = product >> shift
    rest = product - (quotient << shift)
    half = np.int64(1) << np.maximum(shift - 1, 0)
    up = (shift > 0) & ((rest > half) | ((rest == half) & ((quotient & 1) == 1)))
    return np.asarray(np.clip(quotient + up, INT32_MIN, INT32_MAX), np.int64)


def quantize(x: Array, scale: Array, zero_point: Array, dtype: str) -> Array:
    """``saturate(round_half_even(x / scale) + zero_point)``; the division is in float32."""
    limits = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        scaled = np.rint(np.asarray(x, np.float32) / scale.astype(np.float32)).astype(np.float64)
    return np.clip(scaled + zero_point, limits.min, limits.max).astype(dtype)


def dequantize(x: Array, scale: Array, zero_point: Array) -> Array:
    """``(x - zero_point) * scale`` in float32."""
    return (x.astype(np.int64) - zero_point).astype(np.float32) * scale.astype(np.float32)
