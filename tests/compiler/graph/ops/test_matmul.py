"""Products of tensors: compiled code gives what numpy does."""

from __future__ import annotations

import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
def test_products(dtype):
    rtol = 1e-3 if dtype == "float16" else 1e-6
    node = ops.MatMul(**NAMES, a="a", b="b")
    check(node, numbers(dtype, (2, 1, 3, 4)), numbers(dtype, (5, 4, 2)), rtol=rtol)
    for equation, *shapes in (
        ("ij,jk->ik", (2, 3), (3, 4)), ("ii->i", (3, 3)), ("bij,bj->", (2, 3, 4), (2, 4)),
        ("i,j->ij", (2,), (3,)),
    ):  # fmt: skip
        names = tuple("abc"[: len(shapes)])
        node = ops.Einsum(**NAMES, parts=names, equation=equation)
        check(node, *(numbers(dtype, shape) for shape in shapes), rtol=rtol)
    with pytest.raises(GraphError, match="expected matrices that fit each other"):
        ops.MatMul(**NAMES, a="a", b="b").result_shape([(2, 3), (2, 3)])


@pytest.mark.parametrize(
    ("equation", "shapes", "text"),
    [
        ("ij,jk->ik", [(2, 3)], r"parts as in ij,jk->ik, found \[\[2, 3\]\]"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "3 elements along j, found 4"),
        ("ij->ik", [(2, 3)], "a right side of letters of the left one, found ij->ik"),
    ],
)
def test_equations_that_do_not_fit(equation, shapes, text):
    node = ops.Einsum(**NAMES, parts=("a", "b")[: len(shapes)], equation=equation)
    with pytest.raises(GraphError, match=rf"n \(Einsum\): expected {text}"):
        node.result_shape(shapes)
