"""Operators that compute each element by itself."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_operators import F, agrees, check_operator, check_refusal, one, real
from quantized_models import QUANT, RNG, quantized_input, same_results, single
from quantized_models import model as quantized_model

from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)], ids=str)
@pytest.mark.parametrize(
    ("dtype", "other"), [("f4", "f4"), ("f4", "i8"), ("f8", "f8"), ("f8", "i4")]
)
def test_a_power_of_two_is_a_product(dtype, other, shape):
    """Of numbers of either sign."""
    x, constants = {"x": real(3, 4).astype(dtype)}, {"a": np.full(shape, 2, other)}
    graph = agrees(one("Pow", "x", "a"), x, constants)
    (node,) = graph.nodes
    assert (node.function, node.a, node.b) == ("mul", "x", "x")


@pytest.mark.parametrize("exponent", [
    np.full(4, 2, F), np.full((1, 1, 1), 2, F), np.full((2, 1, 1), 2, F), np.array([2, 3, 2, 1], F),
    F(3), F(-2), F(0.5), F(2.0000002), F(0), np.int64(3),
], ids=str)  # fmt: skip
def test_another_power_is_none(exponent):
    x = {"x": np.abs(real(3, 4)) + F(0.5)}
    graph = agrees(one("Pow", "x", "a"), x, {"a": np.asarray(exponent)})
    assert "pow" in functions_of(graph)
    assert "mul" not in functions_of(graph)


def test_a_power_that_is_not_known_is_no_product():
    graph = agrees(one("Pow", "x", "a"), {"x": np.abs(real(3, 4)), "a": np.full(1, 2, F)})
    assert functions_of(graph) == ["pow"]


@pytest.mark.parametrize("other", ["i4", "f4"])
def test_a_power_of_integers_is_no_product(other):
    x = {"x": np.arange(-3, 4, dtype=np.int32)}
    graph = agrees(one("Pow", "x", "a"), x, {"a": np.array(2, other)})
    assert "pow" in functions_of(graph)


def functions_of(graph):
    """What functions of two tensors there are."""
    return [node.function for node in graph.nodes if isinstance(node, ops.Binary)]


def test_hard_swish_on_both_sides_of_its_bends():
    agrees(one("HardSwish", "x"), {"x": np.linspace(-5, 5, 24, dtype=F).reshape(4, 6)}, {})


@pytest.mark.parametrize(("op", "operands", "constants", "attributes"), [
    ("HardSwish", "x", {}, {}),
    ("Softsign", "x", {}, {}),
])  # fmt: skip
def test_operators(op, operands, constants, attributes):
    check_operator(op, operands, constants, attributes)


@pytest.mark.parametrize(("op", "extra", "constants", "attributes", "shape"), [
    ("Relu", [], {}, {}, (1, 4, 6, 7)),
    ("Clip", ["lo", "hi"], {"lo": np.float32(-0.5), "hi": np.float32(1)}, {}, (1, 4, 6, 7)),
    ("Clip", ["", "hi"], {"hi": np.float32(0.7)}, {}, (1, 4, 6, 7)),
    ("Add", ["c"], {"c": real(4, 1, 1)}, {}, (1, 4, 6, 7)),
])  # fmt: skip
def test_behind_a_quantized_input(op, extra, constants, attributes, shape):
    constants = {k: np.asarray(v) for k, v in constants.items()}
    same_results(single(op, shape, extra=extra, constants=constants, **attributes))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        *((op, {}) for op in ("Sigmoid", "Tanh", "Exp", "Abs", "Neg", "Floor", "Erf", "HardSwish")),
        ("LeakyRelu", {}),
        ("LeakyRelu", {"alpha": 0.2}),
        ("Elu", {"alpha": 0.7}),
        ("HardSigmoid", {}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    ],
)
def test_unary(op, attributes):
    same_results(single(op, (1, 4, 6, 7), **attributes))


@pytest.mark.parametrize("op", ["Sub", "Mul", "Div", "Max", "Min", "PRelu"])
def test_binary(op):
    c = RNG.uniform(0.5, 2, (4, 1, 1)).astype(np.float32)
    same_results(single(op, (1, 4, 6, 7), extra=["c"], constants={"c": c}))


def test_power_root_and_logarithm():
    nodes = [
        *quantized_input(),
        helper.make_node("Abs", ["xq"], ["a"]),
        helper.make_node("Pow", ["a", "c"], ["b"]),
        helper.make_node("Sqrt", ["b"], ["d"]),
        helper.make_node("Add", ["d", "c"], ["e"]),
        helper.make_node("Log", ["e"], ["y"]),
    ]
    constants = {**QUANT, "c": np.array(1.5, np.float32)}
    same_results(quantized_model(nodes, {"x": (2, 3)}, {"y": (2, 3)}, constants))


def test_clip_bounds_as_attributes():
    nodes = [helper.make_node("Clip", ["x"], ["y"], name="it", min=0.0, max=1.0)]
    nodes += [
        helper.make_node("QuantizeLinear", ["y", "s", "z"], ["yi"]),
        helper.make_node("DequantizeLinear", ["yi", "s", "z"], ["o"]),
    ]
    proto = quantized_model(nodes, {"x": (2, 3)}, {"o": (2, 3)}, QUANT, opset=10)
    assert (import_model(proto).node("it").low, import_model(proto).node("it").high) == (0.0, 1.0)


@pytest.mark.parametrize(("op", "operands", "dtype", "attributes", "text"), [
    ("Sqrt", "x", np.int64, {}, "expected float data, found int64"),
    ("Add", "xi", F, {}, "expected operands of one type, found float32, int64"),
    ("BitShift", "ii", F, {"direction": "UP"}, "expected direction LEFT or RIGHT, found UP"),
])  # fmt: skip
def test_refusals(op, operands, dtype, attributes, text):
    check_refusal(op, operands, dtype, attributes, text)


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
def test_any_number_of_operands(op):
    x = {"x": real(3, 4), "a": real(4), "b": real(2, 1, 4)}
    agrees(one(op, *x), x)
    agrees(one(op, "x"), {"x": x["x"]})
    agrees(one(op, *x), {"x": x["x"]}, {"a": x["a"], "b": x["b"]})


def test_a_choice_of_each_element():
    x = {"c": np.array([[True], [False]]), "a": real(2, 3), "b": real(3)}
    agrees(one("Where", *x), x)
