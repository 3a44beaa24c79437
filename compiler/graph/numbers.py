"""Quantized arithmetic on whole arrays, and the arithmetic of scales."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.types import Array
from vdla.compiler.tir.ops import rq
from vdla.isa.numbers import pack_scale

Int32 = NDArray[np.int32]


def pack_scales(scales: Iterable[float]) -> Int32:
    """One packed scale word per scale."""
    return np.array([pack_scale(s) for s in scales], np.uint32).astype(np.int32)


def quantize(x: Array, scale: Array, zero_point: Array, dtype: str) -> Array:
    """``saturate(round_half_even(x / scale) + zero_point)``; the division is in float32."""
    limits = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        scaled = np.rint(np.asarray(x, np.float32) / scale.astype(np.float32)).astype(np.float64)
    return np.clip(scaled + zero_point, limits.min, limits.max).astype(dtype)


def dequantize(x: Array, scale: Array, zero_point: Array) -> Array:
    """``(x - zero_point) * scale`` in float32."""
    return (x.astype(np.int64) - zero_point).astype(np.float32) * scale.astype(np.float32)


def requantize(acc: Array, words: Array | int, zero_point: int, lo: int, hi: int) -> Array:
    """``clip(rq(acc, words) + zero_point, lo, hi)`` as int8."""
    return np.clip(rq(acc, words).astype(np.int64) + zero_point, lo, hi).astype(np.int8)


def rows_of_int8(rows: Array) -> tuple[Array, Array]:
    """The nearest int8 of numbers, from -127 to 127, and the scale of each row: of each index of
    all axes but the last, whose shape the scales have."""
    scale = np.maximum(np.abs(rows).max(-1), np.float32(1e-8)) / np.float32(127)
    return np.rint(rows / scale[..., np.newaxis]).astype(np.int8), scale.astype(np.float32)


def in_steps(
    operands: Iterable[Array], zeros: Iterable[int], scales: Iterable[float]
) -> list[Array]:
    """Integers in steps of a result, in float64: each less its zero point, times its scale."""
    terms = zip(operands, zeros, scales, strict=True)
    return [(x.astype(np.float64) - zero) * scale for x, zero, scale in terms]


# Scales ------------------------------------------------------------------------------------------


def f32(value: float) -> float:
    """The nearest float32, as a Python float."""
    return float(np.float32(value))


def pool_scale(in_scale: float, out_scale: float, count: int) -> float:
    """``float32(in_scale / (out_scale * count))``, both steps in float32."""
    return float(np.float32(in_scale) / (np.float32(out_scale) * np.float32(count)))


def affine_terms(scales: Array, offsets: Array) -> tuple[Array, Array, Array]:
    """The integers of ``x * scale + offset`` per channel: ``A, B, k``, ``A / 2**k`` ≈ ``scale``.

    ``k`` is the largest ≤ 30 that keeps A below 2**21 and B below 2**30, so that a difference of
    int8 times A, plus B, doesn't overflow int32: ``255 * 2**21 + 2**30 < 2**31``.

    Raises:
        GraphError: a scale of 2**21 or more, or an offset of 2**30 or more.
    """
    most = np.maximum(np.abs(scales) / ((1 << 21) - 1), np.abs(offsets) / ((1 << 30) - 1))
    if not (most <= 1).all():
        actual = f"{np.abs(scales).max():g} and {np.abs(offsets).max():g}"
        raise GraphError(f"expected scales below 2097152, offsets below 2**30, found {actual}")
    shift = np.floor(-np.log2(np.maximum(most, 2.0**-30))).astype(np.int64)
    return (
        np.rint(np.ldexp(scales, shift)).astype(np.int64),
        np.rint(np.ldexp(offsets, shift)).astype(np.int64),
        shift,
    )


def add_terms(scale_a: float, scale_b: float) -> tuple[int, int, int]:
    """The integers of a quantized addition: ``A, B, k`` with ``A / 2**k`` ≈ ``scale_a``.

    ``k`` is the largest ≤ 30 that keeps both below 2**21, so that int8 operands can't overflow
    int32: ``2 * 255 * 2**21 < 2**31``.

    Raises:
        GraphError: a scale of 2**21 or more.
    """
    for k in range(30, -1, -1):
        a, b = round(scale_a * 2.0**k), round(scale_b * 2.0**k)
        if max(abs(a), abs(b)) < 1 << 21:
            return a, b, k
    raise GraphError(f"expected addition scales below 2097152, found {scale_a:g} and {scale_b:g}")
