"""Slopes of functions element by element, against differences of their values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gradients import check, check_node, gradient_graph, one_node
from vdla.compiler.autodiff.elements import FLAT, PARTIAL, SLOPES
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.functions import BINARY, UNARY
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType

RNG = np.random.default_rng(0)
FROM_ONE = ("acosh",)  # defined from 1 on
SETTINGS = {
    "leaky_relu": (0.1, 0), "elu": (0.7, 0), "selu": (1.6, 1.1), "celu": (0.6, 0),
    "thresholded_relu": (0.4, 0), "shrink": (0.3, 0.1), "hard_sigmoid": (0.2, 0.5),
    "hard_swish": (1 / 6, 0.5), "swish": (1.3, 0),
}  # fmt: skip


def numbers(*shape, low=0.05, high=0.95, signs=(-1, 1)):
    """Numbers away from 0 and 1, where slopes may jump."""
    return (RNG.uniform(low, high, shape) * RNG.choice(signs, shape)).astype(np.float32)


def test_every_function_has_a_slope_or_is_flat():
    assert set(SLOPES) | FLAT == set(UNARY)
    assert set(PARTIAL) == set(BINARY)


@pytest.mark.parametrize("function", sorted(SLOPES))
def test_functions_of_one_element(function):
    positive = function in ("log", "sqrt", "acosh")
    x = numbers(3, 4, signs=(1,) if positive else (-1, 1)) + np.float32(function in FROM_ONE)
    alpha, beta = SETTINGS.get(function, (0.0, 0.0))
    check_node(ops.Unary, {"data": x}, function=function, alpha=alpha, beta=beta)


@pytest.mark.parametrize("function", sorted(FLAT))
def test_steps_have_no_slope(function):
    check_node(ops.Unary, {"data": numbers(5)}, function=function)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((4, 1), (1, 3)), ((), (2,))])
@pytest.mark.parametrize("function", sorted(PARTIAL))
def test_functions_of_two_elements(function, shapes):
    signs = (1,) if function == "pow" else (-1, 1)
    a, b = (numbers(*shape, signs=signs) for shape in shapes)
    if function == "prelu" and a.ndim < b.ndim:
        a = np.broadcast_to(a, b.shape).copy()
    check_node(ops.Binary, {"a": a, "b": b}, function=function)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((3,), (2, 3)), ((4, 1), (1, 3))])
def test_sums_and_choices(shapes):
    a, b = (numbers(*shape) for shape in shapes)
    check_node(ops.Add, {"a": a, "b": b})
    condition = RNG.integers(0, 2, np.broadcast_shapes(*shapes)).astype(bool)
    check_node(ops.Where, {"condition": condition, "a": a, "b": b})


def test_limits():
    check_node(ops.Relu, {"data": numbers(3, 4)})
    check_node(ops.Clip, {"data": numbers(3, 4)}, low=-0.5, high=0.4)


def test_casts():
    node = ops.Cast(name="y", output="y", data="data")
    check(one_node(node, {"data": numbers(3)}), {"data": numbers(3)})


def test_rounding_is_as_if_nothing_were_rounded():
    """Within its limits: Quantize and Dequantize are together the data then."""
    scales = {"scale": (0.1, 0.2), "zero_point": (3, -4), "axis": 0}
    kind, integers = TensorType((2, 3), "float32"), TensorType((2, 3), "int8")
    nodes = (
        ops.Quantize(name="q", output="q", data="x", **scales),
        ops.Dequantize(name="y", output="y", data="q", **scales),
    )
    graph = Graph(("x",), ("y",), nodes, {"x": kind, "q": integers, "y": kind}, {})
    x = np.array([[1.03, -20, 12.3], [5.01, -24.7, 30]], np.float32)
    weight = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    made = gradient_graph(graph, [weight])
    result = evaluate(made, {"x": x})[made.outputs[0]]
    low, high = np.array([[-13.15], [-24.9]]), np.array([[12.45], [26.3]])  # what int8 stands for
    np.testing.assert_array_equal(result, weight * ((low < x) & (x < high)))
