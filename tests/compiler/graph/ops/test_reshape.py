"""Elements in row-major order under another shape."""

from __future__ import annotations

from nodes import IMAGE, check_types

from vdla.compiler.graph import ops

F, I8 = "float32", "int8"


def test_other_shapes():
    check_types(
        ops.QReshape(name="n", data="x", output="y"), {"x": (I8, *IMAGE), "y": (I8, 10, 42)}
    )
    check_types(ops.Reshape(name="n", data="x", output="y"), {"x": (F, *IMAGE), "y": (F, 420)})
