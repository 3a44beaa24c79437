"""Tensors one behind another along an axis."""

from __future__ import annotations

import pytest
from nodes import IMAGE, check_types

from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Requant

F, I8 = "float32", "int8"


@pytest.mark.parametrize("axis", [0, 1, 3])
def test_concat(axis):
    shapes = {k: [*IMAGE] for k in "ab"}
    shapes["b"][axis] = 2
    total = [*IMAGE]
    total[axis] += 2
    node = ops.QConcat(
        name="n",
        parts=("a", "b"),
        output="y",
        axis=axis,
        zeros=(4, -1),
        requant=Requant((1.0, 0.6), 4),
    )
    check_types(node, {"a": (I8, *shapes["a"]), "b": (I8, *shapes["b"]), "y": (I8, *total)})
    node = ops.Concat(name="n", parts=("a", "b"), output="y", axis=axis)
    check_types(node, {"a": (F, *shapes["a"]), "b": (F, *shapes["b"]), "y": (F, *total)})


@pytest.mark.parametrize("count", [17, 40, 700])
def test_concat_of_many_parts(count):
    """No deeper in the expression than Python's stack, however many steps a sequence has."""
    parts = {f"p{n}": (F, 2, 1 + n % 3) for n in range(count)}
    total = sum(width for _, _, width in parts.values())
    node = ops.Concat(name="n", parts=tuple(parts), output="y", axis=1)
    check_types(node, {**parts, "y": (F, 2, total)})
