"""Requantization against exact fractions."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.isa.numbers import (
    INT32_MAX,
    INT32_MIN,
    MAX_SHIFT,
    pack_scale,
    reciprocal,
    rq,
    rsqrt,
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


# Numbers from 1 on, many of them near a power of two.
POSITIVE = st.integers(1, INT32_MAX) | st.builds(
    lambda e, d: saturate((1 << e) + d, 1, INT32_MAX), st.integers(0, 31), st.integers(-2, 2)
)


@settings(max_examples=1000)
@given(POSITIVE)
def test_a_reciprocal_is_a_normalized_word_below_it(y):
    mantissa, shift = unpack_scale(word := reciprocal(y))
    assert 1 << 22 <= mantissa <= 1 << 23
    assert shift == 23 + y.bit_length() - 1
    assert 0 <= 1 - y * Fraction(mantissa, 1 << shift) < Fraction(1, 1 << 22)
    assert word == mantissa | shift << 24


@settings(max_examples=1000)
@given(POSITIVE)
def test_a_reciprocal_root_is_a_normalized_word_near_it(y):
    """1 - s·√y is between -2**-23 and 2**-22: compared as squares, since √y is no fraction."""
    mantissa, shift = unpack_scale(rsqrt(y))
    assert 1 << 22 <= mantissa <= 1 << 23
    assert shift == 23 + (y.bit_length() - 1) // 2
    square = y * Fraction(mantissa, 1 << shift) ** 2
    assert (1 - Fraction(1, 1 << 22)) ** 2 < square < (1 + Fraction(1, 1 << 23)) ** 2


def test_the_bounds_of_reciprocals_are_nearly_reached():
    """So none holds that is a hundredth less."""
    assert 1 - 1072079378 * scale_value(reciprocal(1072079378)) > 0.99 * 2.0**-22
    assert 1 - math.sqrt(1047129) * scale_value(rsqrt(1047129)) > 0.99 * 2.0**-22
    assert 1 - math.sqrt(268448448) * scale_value(rsqrt(268448448)) < -0.99 * 2.0**-23


@pytest.mark.parametrize("y", [0, -1, INT32_MIN])
def test_what_has_no_reciprocal_has_a_scale_of_zero(y):
    assert reciprocal(y) == rsqrt(y) == 0


@pytest.mark.parametrize("power", range(31))
def test_a_power_of_two_has_an_exact_reciprocal(power):
    assert reciprocal(1 << power) == 1 << 23 | (23 + power) << 24
    assert rq(1 << power, reciprocal(1 << power)) == 1
    if power % 2 == 0:
        assert rsqrt(1 << power) == 1 << 23 | (23 + power // 2) << 24


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
