"""The lesser of two quantized tensors."""

from __future__ import annotations

from nodes import IMAGE, check_types

from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.graph.types import Requant

I8 = "int8"


def test_the_lesser_one():
    image = {"x": (I8, *IMAGE), "y": (I8, *IMAGE)}
    least = QMinimum(
        name="n", a="x", b="z", output="y", zeros=(3, -8), requant=Requant((0.31, 1.7), 1, high=99)
    )
    check_types(least, {**image, "z": (I8, *IMAGE)})
