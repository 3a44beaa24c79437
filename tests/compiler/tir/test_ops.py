"""Requantization is exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vdla.compiler.tir.ops import fma, reciprocal, rq, rsqrt, wrap
from vdla.isa import numbers


def exact(x: int, m: int, k: int) -> int:
    """Round half to even of x * m / 2**k, saturated: Python's own rounding of a fraction."""
    return max(-(1 << 31), min((1 << 31) - 1, round(Fraction(x * m, 1 << k))))


@settings(max_examples=300, derandomize=True)
@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, (1 << 24) - 1), st.integers(0, 63))
@example(-(1 << 31), (1 << 24) - 1, 0)
@example((1 << 31) - 1, (1 << 24) - 1, 63)
@example(-1, 1, 1)
@example(-3, 1, 1)
@example(5, 1, 1)
def test_requantize_is_exact(x, m, k):
    word = np.array([m | k << 24]).astype(np.uint32).view(np.int32)
    assert rq(np.array([x], "int32"), word)[0] == exact(x, m, k)


@pytest.mark.parametrize(("x", "result"), [(-6, -2), (-2, 0), (2, 0), (6, 2), (10, 2), (14, 4)])
def test_ties_go_to_the_even_one(x, result):
    assert rq(np.array([x], "int32"), np.array([1 | 2 << 24], "int32"))[0] == result


def test_requantize_broadcasts():
    acc = np.arange(-8, 8, dtype="int32").reshape(4, 4)
    scale = np.array([1 << 24 | 3, 2 << 24 | 1, 1, 0], "int32")
    expected = [
        [exact(int(x), int(w) & 0xFFFFFF, int(w) >> 24) for x, w in zip(row, scale, strict=True)]
        for row in acc
    ]
    assert rq(acc, scale).tolist() == expected


@settings(max_examples=300, derandomize=True)
@given(st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(1, 1 << 12))
@example(-(1 << 31))
@example((1 << 31) - 1)
@example((1 << 30) - 1)
@example(1 << 30)
@example(0)
def test_reciprocals_are_those_of_the_isa(y):
    assert reciprocal(np.array([y], "int32"))[0] == numbers.reciprocal(y)
    assert rsqrt(np.array([y], "int32"))[0] == numbers.rsqrt(y)


def test_wrap():
    assert wrap(200, "int8") == -56
    assert wrap(-1, "uint8") == 255


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False).filter(
    lambda x: x == 0 or 1e-12 < abs(x) < 1e12
)


def nearest(value: Fraction) -> np.float32:
    """The float32 nearest to a number, ties to the even one."""
    near = np.float32(float(value))
    around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]

    def distance(x: np.float32) -> tuple[Fraction, int]:
        return abs(Fraction(float(x)) - value), int(x.view(np.int32)) & 1

    return min(around, key=distance)


@settings(max_examples=300, derandomize=True)
@given(FLOATS, FLOATS, FLOATS)
@example(1 + 2**-12, 1 + 2**-12, 2**-60)
@example(1 + 2**-12, 1 + 2**-12, -(2**-60))
@example(-1 - 2**-12, 1 + 2**-12, 2**-60)
def test_fma_rounds_once(x, y, z):
    x, y, z = (np.float32(v) for v in (x, y, z))
    true = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    assert fma(x, y, z) == nearest(true)
