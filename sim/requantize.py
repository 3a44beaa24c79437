"""The arithmetic of isa/numbers.py on int64, as the compiled loops do it."""

from __future__ import annotations

import math

import numpy as np

from vdla.isa.numbers import MANTISSA_BITS, MAX_SHIFT, RECIPROCAL_BITS
from vdla.sim.compiled import inline

_MANTISSA_MASK = (1 << MANTISSA_BITS) - 1
_I32_MIN, _I32_MAX = -(1 << 31), (1 << 31) - 1


@inline
def requantize(x: int, word: int) -> int:
    """``rq`` of isa/numbers.py on int64."""
    word64 = np.int64(word)
    shift = (word64 >> MANTISSA_BITS) & MAX_SHIFT
    product = np.int64(x) * (word64 & _MANTISSA_MASK)
    half_less_one = ((np.int64(1) << shift) - 1) >> 1  # right for a shift of 63 too
    value = product
    if shift != 0:  # adding the quotient's lowest bit makes ties go to even
        value = (product + half_less_one + ((product >> shift) & 1)) >> shift
    return int(min(max(value, np.int64(_I32_MIN)), np.int64(_I32_MAX)))


@inline
def reciprocal(y: int) -> int:
    """``reciprocal`` of isa/numbers.py on int64."""
    if y <= 0:
        return 0
    shift = RECIPROCAL_BITS + _log2(y)
    return int((np.int64(1) << shift) // np.int64(y) | np.int64(shift) << MANTISSA_BITS)


@inline
def rsqrt(y: int) -> int:
    """``rsqrt`` of isa/numbers.py on int64.

    The radicand has 48 bits at most, so that float64 holds it, and its root isn't rounded up to a
    whole number.
    """
    if y <= 0:
        return 0
    half = _log2(y) // 2
    root = np.int64(math.sqrt(float(np.int64(y) << 2 * (RECIPROCAL_BITS - half))))
    mantissa = (np.int64(1) << 2 * RECIPROCAL_BITS) // root
    return int(mantissa | np.int64(RECIPROCAL_BITS + half) << MANTISSA_BITS)


@inline
def _log2(y: int) -> int:
    """⌊log2 y⌋ of 0 < y < 2**32."""
    result = 0
    for bits in (16, 8, 4, 2, 1):
        if y >> (result + bits) > 0:
            result += bits
    return result
