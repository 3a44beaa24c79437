"""What values a buffer can hold."""

from __future__ import annotations

import pytest

from vdla import te
from vdla.compiler.tir.parser import parse
from vdla.compiler.tir.values import value_ranges


def test_loops_end_before_their_extent():
    """A function written by hand: no block around the stores."""
    text = """func main(x: int32[2, 5], out: int32[2, 5]):
    for y in 2:
        for i in 5:
            out[y, i] = i * 3 - y
"""
    assert value_ranges(parse(text))["out"] == (-1, 12)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((-5, 3), (0, 5)),
        ((-3, 0), (0, 3)),
        ((0, 6), (0, 6)),
        ((1, 6), (1, 6)),
        ((-7, -2), (2, 7)),
        ((-128, 4), (-128, 127)),  # of -128 there is no absolute value
    ],
)
def test_absolute_values(given, found):
    a = te.placeholder((4,), "int8", "a", value_range=given)
    size = te.compute((4,), lambda i: te.abs(a[i]), "size")
    assert value_ranges(te.create_prim_func([a], size))["size"] == found
