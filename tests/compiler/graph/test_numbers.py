"""The array arithmetic against the scalar definition in ``isa``."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from vdla.compiler.graph.numbers import (
    add_terms,
    dequantize,
    pack_scales,
    pool_scale,
    quantize,
    requantize,
)
from vdla.compiler.tir.ops import rq
from vdla.isa import numbers as isa

INT32 = st.integers(-(2**31), 2**31 - 1)
SCALES = st.floats(2.0**-50, 2.0**20, width=32)
ENDS = [-(2**31), 1 - 2**31, -3, -2, -1, 0, 1, 2, 3, 2**31 - 2, 2**31 - 1]
TOP = isa.MAX_SHIFT << isa.MANTISSA_BITS
HALVES = [shift << isa.MANTISSA_BITS | 1 for shift in range(isa.MAX_SHIFT + 1)]
WORDS = st.integers(0, TOP | 0xFFFFFF) | st.sampled_from([0, 1, 0xFFFFFF, TOP, TOP | 0xFFFFFF])
INT8 = st.integers(-128, 127)


@st.composite
def ties(draw):
    """A number and a word between two integers, or one beside that, as far as int32 reaches."""
    shift = draw(st.integers(1, 31))
    most = (2**31 - 2 - 2 ** (shift - 1)) // 2**shift
    middle = draw(st.integers(-most, most)) * 2**shift + 2 ** (shift - 1)
    return middle + draw(st.integers(-1, 1)), shift << isa.MANTISSA_BITS | 1


PAIRS = st.lists(st.tuples(INT32 | st.sampled_from(ENDS), WORDS) | ties(), min_size=1)


@given(x=INT32, scale=SCALES)
def test_rq_is_the_isa_definition(x, scale):
    word = isa.pack_scale(scale)
    assert int(rq(np.array([x]), pack_scales([scale]))[0]) == isa.rq(x, word)


@given(PAIRS, INT8, INT8, INT8)
@example([(x, word) for x in ENDS for word in HALVES], 0, -128, 127)
@example([(x, word | 0xFFFFFF) for x in ENDS for word in HALVES], 127, -128, 127)
def test_arrays_are_rounded_as_the_isa_rounds_a_number(pairs, zero_point, low, high):
    xs = np.array([x for x, _ in pairs], np.int32)
    words = np.array([word for _, word in pairs], np.uint32).view(np.int32)
    expected = [isa.rq(*pair) for pair in pairs]
    assert rq(xs, words).tolist() == expected
    low, high = min(low, high), max(low, high)
    result = requantize(xs, words, zero_point, low, high)
    assert result.tolist() == [isa.saturate(x + zero_point, low, high) for x in expected]
    assert (rq(xs, words).dtype, result.dtype) == (np.int32, np.int8)


@given(x=st.integers(-(2**20), 2**20), k=st.integers(1, 12))
def test_rq_rounds_ties_to_even(x, k):
    assert int(rq(np.array(x), isa.pack_scale(2.0**-k))) == round(x / 2**k)


def test_quantize_rounds_half_to_even_and_saturates():
    x = np.array([0.5, 1.5, 2.5, -0.5, 1e9, -1e9, np.inf, -np.inf], np.float32)
    got = quantize(x, np.float32(1), np.int64(0), "int8")
    np.testing.assert_array_equal(got, [0, 2, 2, 0, 127, -128, 127, -128])
    np.testing.assert_array_equal(
        quantize(x, np.float32(1), np.int64(1), "uint8")[:4], [1, 3, 3, 1]
    )


def test_dequantize_per_channel():
    x = np.array([[1, 2], [3, 4]], np.int8)
    scale, zero = np.array([[1.0], [0.5]]), np.array([[1], [0]])
    np.testing.assert_array_equal(dequantize(x, scale, zero), [[0, 1], [1.5, 2]])


@given(
    a=st.floats(2.0**-12, 2.0**12, width=32),
    b=st.floats(2.0**-12, 2.0**12, width=32),
)
def test_add_terms_are_as_fine_as_int32_allows(a, b):
    term_a, term_b, k = add_terms(a, b)
    largest = max(abs(term_a), abs(term_b))
    assert largest < 2**21
    assert k == 30 or largest >= 2**20 - 1
    assert abs(term_a / 2**k - a) <= 2.0 ** -(k + 1)
    assert 255 * (abs(term_a) + abs(term_b)) < 2**31


def test_pool_scale_is_computed_in_float32():
    want = np.float32(0.1) / (np.float32(0.3) * np.float32(49))
    assert pool_scale(0.1, 0.3, 49) == float(want)
