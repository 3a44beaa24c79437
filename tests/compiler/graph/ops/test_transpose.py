"""Axes in another order."""

from __future__ import annotations

from nodes import IMAGE, check_types

from vdla.compiler.graph import ops

F, I8 = "float32", "int8"


def test_axes_in_another_order():
    perm = {"name": "n", "data": "x", "output": "y", "perm": (0, 2, 3, 1)}
    check_types(ops.QTranspose(**perm), {"x": (I8, *IMAGE), "y": (I8, 2, 7, 6, 5)})
    check_types(ops.Transpose(**perm), {"x": (F, *IMAGE), "y": (F, 2, 7, 6, 5)})
