"""Additions of two tensors."""

from __future__ import annotations

from nodes import IMAGE, check_types

from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Requant

F, I8 = "float32", "int8"


def test_additions():
    image = {"x": (I8, *IMAGE), "y": (I8, *IMAGE)}
    add = ops.QAdd(
        name="n", a="x", b="z", output="y", zeros=(3, -8), requant=Requant((0.31, 1.7), 1, high=99)
    )
    check_types(add, {**image, "z": (I8, *IMAGE)})
    real = {"x": (F, *IMAGE), "y": (F, *IMAGE)}
    check_types(ops.Add(name="n", a="x", b="z", output="y"), {**real, "z": (F, 5, 1, 1)})
