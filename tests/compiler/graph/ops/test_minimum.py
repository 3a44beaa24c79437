"""The lesser of two quantized tensors."""

from __future__ import annotations

import numpy as np
from nodes import IMAGE, NAMES, check, check_types, narrowed, numbers

from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.graph.types import Requant

I8 = "int8"


def test_the_lesser_one():
    image = {"x": (I8, *IMAGE), "y": (I8, *IMAGE)}
    least = QMinimum(
        name="n", a="x", b="z", output="y", zeros=(3, -8), requant=Requant((0.31, 1.7), 1, high=99)
    )
    check_types(least, {**image, "z": (I8, *IMAGE)})


def test_no_greater_than_either():
    a, b = (numbers("int8", (2, 5, 3), -128, 128) for _ in range(2))
    requant = Requant((0.7, 1.3), 1, -120, 99)
    node = QMinimum(**NAMES, a="a", b="b", zeros=(3, -8), requant=requant)
    left = narrowed(a.astype(int) - 3, 0.7, requant)
    right = narrowed(b.astype(int) + 8, 1.3, requant)
    np.testing.assert_array_equal(check(node, a, b), np.where(left < right, left, right))
