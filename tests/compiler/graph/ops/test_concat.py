"""Tensors one behind another along an axis."""

from __future__ import annotations

import pytest
from nodes import IMAGE, NAMES, check_types

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
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


def test_parts_that_differ_elsewhere():
    node = ops.Concat(**NAMES, parts=("a", "b"), axis=1)
    expected = r"expected parts that differ from \[2, 3, 4\] only in axis 1, found \[2, 5, 3\]"
    with pytest.raises(GraphError, match=expected):
        node.result_shape([(2, 3, 4), (2, 5, 3)])


def test_a_copy_is_a_part_at_the_results_scale():
    node = ops.QConcat(
        **NAMES, parts=("a", "b", "c"), axis=1, zeros=(4, 4, 3), requant=Requant((1.0, 0.5, 1.0), 4)
    )
    assert [node.is_copy(number) for number in range(3)] == [True, False, False]
