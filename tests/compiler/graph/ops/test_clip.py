"""Limits to a range."""

from __future__ import annotations

import numpy as np
from nodes import IMAGE, NAMES, check, check_types, narrowed, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Requant

F, I8 = "float32", "int8"


def test_limits():
    image = {"x": (I8, *IMAGE), "y": (I8, *IMAGE)}
    check_types(
        ops.QClip(name="n", data="x", output="y", zeros=(4,), requant=Requant((0.77,), -9, -9)),
        image,
    )
    real = {"x": (F, *IMAGE), "y": (F, *IMAGE)}
    check_types(ops.Relu(name="n", data="x", output="y"), real)
    check_types(ops.Clip(name="n", data="x", output="y", low=-1.0, high=np.inf), real)


def test_a_change_of_scale():
    requant = Requant((0.77,), -9, -100, 90)
    x = numbers("int8", (2, 5, 3), -128, 128)
    result = check(ops.QClip(**NAMES, data="x", zeros=(4,), requant=requant), x)
    np.testing.assert_array_equal(result, narrowed(x.astype(int) - 4, 0.77, requant))
