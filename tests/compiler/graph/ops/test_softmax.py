"""Softmax along an axis."""

from __future__ import annotations

import pytest
from nodes import check_types

from vdla.compiler.graph import ops

F = "float32"


@pytest.mark.parametrize(("shape", "axis"), [((3, 10), 1), ((2, 4, 3, 3), 1), ((7,), 0)])
def test_softmax(shape, axis):
    node = ops.Softmax(name="n", data="x", output="y", axis=axis)
    check_types(node, {"x": (F, *shape), "y": (F, *shape)}, exact=False)
