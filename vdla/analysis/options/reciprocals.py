"""Reciprocals: values of SCALE, RECIPROCAL and RSQRT at their corners."""

from __future__ import annotations

from vdla.analysis.coverage.values import REQUANTIZED, Kinds, Lane, corners, requantized
from vdla.isa.numbers import INT32_MAX, INT32_MIN
from vdla.isa.options.reciprocals import RECIPROCAL, RSQRT, SCALE

INVERTED = (
    "of no positive number", "of 1", "of an even power of two", "of an odd power of two",
    "of the greatest number", "of another number",
)  # fmt: skip


@corners(SCALE, *(kind for kind in REQUANTIZED if "limit" not in kind))
def scale(lane: Lane) -> Kinds:
    """The kinds of a requantization, whose limits are those of int32."""
    whole = lane.alu.replace(zero=0, low=INT32_MIN, high=INT32_MAX)
    return requantized(lane.x, lane.y, whole)


@corners(RECIPROCAL, *INVERTED)
@corners(RSQRT, *INVERTED)
def invert(lane: Lane) -> Kinds:
    """The kinds of numbers that have a reciprocal or a root's, and of those that have none."""
    y = lane.y
    power = y.bit_length() - 1 if y > 1 and y & (y - 1) == 0 else -1
    return {
        "of no positive number": y <= 0, "of 1": y == 1,
        "of an even power of two": power >= 0 and power % 2 == 0,
        "of an odd power of two": power >= 0 and power % 2 == 1,
        "of the greatest number": y == INT32_MAX,
        "of another number": 1 < y < INT32_MAX and power < 0,
    }  # fmt: skip
