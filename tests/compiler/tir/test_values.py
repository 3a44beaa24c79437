"""What values a buffer can hold."""

from __future__ import annotations

import pytest

from vdla import te
from vdla.compiler.tir.values import value_ranges


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
