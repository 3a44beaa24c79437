"""The integer arithmetic every room agrees on: requantization and its packed scale.

``rq(x, s) = saturate32(round_half_even(x * m / 2**k))`` where the 32-bit scale word ``s`` packs a
24-bit unsigned mantissa ``m`` (bits 0..23) and a shift ``k`` (bits 24..29).

* A float32 has a 24-bit mantissa, so a packed scale holds any float32 scale in
  [2**-40, 2**23] **exactly**: requantization adds no error to the scale.
* Ties go to the even neighbour, as ``nearbyint`` does in onnxruntime.
* The product is exact in 57 bits; saturation happens once, at the end.

``reciprocal(y)`` and ``rsqrt(y)`` are scale words of 1 / y and 1 / √y, whose mantissas
are normalized: 2**22 ≤ m ≤ 2**23. With s for the number that the word stands for:

* 1 / y: ``m = ⌊2**k / y⌋`` with ``k = 23 + ⌊log2 y⌋``; so 0 ≤ 1 - s·y < 2**-22.
* 1 / √y: ``m = ⌊2**46 / R⌋`` with ``R = ⌊√(y·2**46 / 4**h)⌋``, ``h = ⌊⌊log2 y⌋ / 2⌋`` and
  ``k = 23 + h``; so -2**-23 < 1 - s·√y < 2**-22.
* Where y ≤ 0 the word is 0, a scale of zero.
"""

from __future__ import annotations

import math

MANTISSA_BITS = 24
SHIFT_BITS = 6
RECIPROCAL_BITS = 23  # of a reciprocal's mantissa, but for those of powers of two
MAX_SHIFT = (1 << SHIFT_BITS) - 1
INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1


def pack_scale(scale: float) -> int:
    """Packs ``scale`` (> 0) into mantissa and shift; exact for every float32 in range.

    A scale too small for the largest shift keeps fewer mantissa bits, rounded to nearest.

    Raises:
        ValueError: the scale is not positive and finite, or is ≥ 2**24.
    """
    if not (scale > 0 and math.isfinite(scale)):
        raise ValueError(f"a scale must be positive and finite, found {scale!r}")
    fraction, exponent = math.frexp(scale)  # scale = fraction * 2**exponent, 0.5 <= fraction < 1
    shift = MANTISSA_BITS - exponent
    if shift < 0:
        raise ValueError(f"a scale must be below 2**{MANTISSA_BITS}, found {scale!r}")
    if shift > MAX_SHIFT:
        return _join(round(scale * 2.0**MAX_SHIFT), MAX_SHIFT)
    mantissa = round(fraction * (1 << MANTISSA_BITS))
    if mantissa == 1 << MANTISSA_BITS:  # rounding a float64 up to the next power of two
        if shift == 0:
            raise ValueError(f"a scale must be below 2**{MANTISSA_BITS}, found {scale!r}")
        mantissa, shift = mantissa >> 1, shift - 1
    return _join(mantissa, shift)


def unpack_scale(word: int) -> tuple[int, int]:
    """The mantissa and the shift of a packed scale word."""
    return word & ((1 << MANTISSA_BITS) - 1), (word >> MANTISSA_BITS) & MAX_SHIFT


def scale_value(word: int) -> float:
    """The real number a packed scale stands for."""
    mantissa, shift = unpack_scale(word)
    return mantissa / 2.0**shift


def rq(x: int, word: int) -> int:
    """Requantizes one integer; the scalar definition the other rooms are tested against."""
    mantissa, shift = unpack_scale(word)
    product = x * mantissa
    quotient, rest = product >> shift, product & ((1 << shift) - 1)
    half = (1 << shift) >> 1
    if shift and (rest > half or (rest == half and quotient & 1)):
        quotient += 1
    return saturate(quotient, INT32_MIN, INT32_MAX)


def reciprocal(y: int) -> int:
    """The scale word of 1 / y, rounded down; 0 for y ≤ 0."""
    if y <= 0:
        return 0
    shift = RECIPROCAL_BITS + y.bit_length() - 1
    return _join((1 << shift) // y, shift)


def rsqrt(y: int) -> int:
    """The scale word of 1 / √y: the root is rounded down, then its reciprocal; 0 for y ≤ 0."""
    if y <= 0:
        return 0
    half = (y.bit_length() - 1) // 2
    root = math.isqrt(y << 2 * (RECIPROCAL_BITS - half))
    return _join((1 << 2 * RECIPROCAL_BITS) // root, RECIPROCAL_BITS + half)


def saturate(x: int, low: int, high: int) -> int:
    """``x`` limited to [low, high]."""
    return min(max(x, low), high)


def _join(mantissa: int, shift: int) -> int:
    return mantissa | shift << MANTISSA_BITS
