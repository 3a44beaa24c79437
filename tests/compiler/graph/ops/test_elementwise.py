"""Nodes of real functions element by element, of which one reads two tensors of other shapes."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import IMAGE, NAMES, RNG, check, check_types, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError

F = "float32"


@pytest.mark.parametrize("function", ops.Unary.FUNCTIONS)
def test_unary(function):
    node = ops.Unary(name="n", data="x", output="y", function=function, alpha=0.3, beta=0.4)
    x = RNG.uniform(0.1, 3, (3, 7)).astype(np.float32)
    if function not in ("log", "sqrt"):
        x -= 1.5
    check_types(node, {"y": (F, 3, 7)}, {"x": x}, exact=False)


@pytest.mark.parametrize("function", ops.Binary.FUNCTIONS)
def test_binary(function):
    node = ops.Binary(name="n", a="x", b="z", output="y", function=function)
    z = RNG.uniform(0.5, 2, (5, 1, 1)).astype(np.float32)
    x = RNG.uniform(0.5, 2, IMAGE).astype(np.float32) - np.float32(function != "pow")
    check_types(node, {"y": (F, *IMAGE)}, {"x": x, "z": z}, exact=False)


def test_where_and_cast():
    condition, a, b = numbers("bool", (4,)), numbers("int64"), numbers("int64", ())
    check(ops.Where(**NAMES, condition="c", a="a", b="b"), condition, a, b, dtype="int64")
    for source in ("float32", "uint8", "int64", "bool", "float16"):
        for target in ("float64", "int16", "bool", "float16", "uint32"):
            check(ops.Cast(**NAMES, data="x"), numbers(source, low=0), dtype=target)


def test_operands_that_do_not_broadcast():
    node = ops.Where(**NAMES, condition="c", a="a", b="b")
    expected = r"n \(Where\): expected operands of one shape, found \[4\] and \[2, 3\] and \[\]"
    with pytest.raises(GraphError, match=expected):
        node.result_shape([(4,), (2, 3), ()])
