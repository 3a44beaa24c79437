"""Requantization against exact fractions."""

from __future__ import annotations

import struct
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.isa.numbers import (
    INT32_MAX,
    INT32_MIN,
    MAX_SHIFT,
    pack_scale,
    rq,
    saturate,
    scale_value,
    unpack_scale,
)

WORDS = st.builds(
    lambda m, k: m | k << 24, st.integers(0, (1 << 24) - 1), st.integers(0, MAX_SHIFT)
)
INT32 = st.integers(INT32_MIN, INT32_MAX)


@given(INT32, WORDS)
def test_rq_is_the_exact_product_rounded_to_even(x, word):
    mantissa, shift = unpack_scale(word)
    exact = Fraction(x * mantissa, 1 << shift)
    assert rq(x, word) == saturate(round(exact), INT32_MIN, INT32_MAX)  # round() ties to even


@pytest.mark.parametrize(("x", "want"), [(1, 0), (3, 2), (5, 2), (-1, 0), (-3, -2), (-5, -2)])
def test_ties_go_to_even(x, want):
    assert rq(x, pack_scale(0.5)) == want


@given(st.floats(2.0**-39, 2.0**23, width=32))
def test_every_float32_scale_is_exact(scale):
    assert scale_value(pack_scale(scale)) == scale


@given(st.floats(2.0**-60, 2.0**-40, width=32))
def test_small_scales_round_to_the_last_bit(scale):
    assert abs(scale_value(pack_scale(scale)) - scale) <= 2.0 ** -(MAX_SHIFT + 1)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan"), 2.0**24])
def test_scales_that_cannot_be(scale):
    with pytest.raises(ValueError, match=r"^a scale must be .*, found "):
        pack_scale(scale)


def test_a_double_is_rounded_to_24_bits():
    nearest = struct.unpack("f", struct.pack("f", 0.1))[0]
    assert scale_value(pack_scale(0.1)) == nearest
