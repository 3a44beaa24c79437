"""Functions of one element and of two: compiled code gives what numpy does."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops import functions
from vdla.compiler.graph.types import TensorType
from vdla.compiler.targets.processor.codegen.llvm import jit
from vdla.compiler.targets.processor.functions import node_function

F = np.float32


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("function", functions.UNARY)
def test_functions_of_other_floats(function, dtype):
    low, high = {"acosh": (1, 3), "log": (0.1, 3), "sqrt": (0.1, 3)}.get(function, (-0.9, 0.9))
    node = ops.Unary(**NAMES, data="x", function=function, alpha=0.5, beta=0.25)
    x = np.linspace(low, high, 24).astype(dtype).reshape(4, 6)
    check(node, x, rtol=1e-3 if dtype == "float16" else 1e-12)


@pytest.mark.parametrize("function", functions.UNARY_TESTS)
def test_tests(function):
    x = np.array([1, np.nan, np.inf, -np.inf, 0], F)
    found = check(ops.Unary(**NAMES, data="x", function=function), x, dtype="bool")
    assert found.sum() == {"is_inf": 2}.get(function, 1)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
@pytest.mark.parametrize(
    "function", ["sub", "mul", "div", "mod", "fmod", "max", "bitand", "bitxor"]
)
def test_integers(function, dtype):
    a, b = numbers(dtype), numbers(dtype, (4,))
    check(ops.Binary(**NAMES, a="a", b="b", function=function), a, b)


def test_no_division_is_a_trap():
    """Of the least integer by -1, and by 0, where ONNX says nothing."""
    a, b = np.array([-128, 7, 7, -7], np.int8), np.array([-1, 0, -2, 2], np.int8)
    assert check(ops.Binary(**NAMES, a="a", b="b", function="div"), a, b).tolist() == [
        -128,
        7,
        -3,
        -3,
    ]
    assert check(ops.Binary(**NAMES, a="a", b="b", function="mod"), a, b).tolist() == [0, 0, -1, 1]


def test_shifts_beyond_the_bits():
    a, b = np.array([-8, 4, -1, 4], np.int8), np.array([8, 9, -1, 1], np.int8)
    for function, want in (("shl", [0, 0, 0, 8]), ("shr", [-1, 0, -1, 2])):
        node = ops.Binary(**NAMES, a="a", b="b", function=function)
        kernel = node_function(
            node, Graph(("a", "b"), ("y",), (node,), dict.fromkeys("aby", TensorType((4,), "int8")))
        )
        found = np.empty(4, np.int8)
        jit([kernel.func])[kernel.func.name](a, b, found)
        assert found.tolist() == want


@pytest.mark.parametrize("function", functions.BINARY_TESTS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "bool", "uint64", "int8"])
def test_comparisons(function, dtype):
    node = ops.Binary(**NAMES, a="a", b="b", function=function)
    check(node, numbers(dtype), numbers(dtype, (4,)), dtype="bool")


@pytest.mark.parametrize("function", ["and", "or", "xor"])
def test_logic(function):
    check(ops.Binary(**NAMES, a="a", b="b", function=function), numbers("bool"), numbers("bool"))
