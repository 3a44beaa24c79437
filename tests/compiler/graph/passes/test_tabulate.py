"""Functions of one int8 tensor as tables: which chains are taken, and what the tables hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qdq import QdqModel

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType
from vdla.compiler.graph.window import Window

SHAPE = (1, 4, 8, 8)  # 256 elements: every int8 once


def kinds(graph):
    return [node.op for node in graph.nodes]


class Chain(QdqModel):
    """A model whose operators by elements have QuantizeLinear and DequantizeLinear behind them."""

    def unary(self, op, x, step=1 / 100, **attributes):
        return self.quantized(self.node(op, [x], self.shapes[x], **attributes), step)

    def product(self, a, b, step=1 / 50):
        return self.quantized(self.node("Mul", [a, b], self.shapes[a]), step)

    def number(self, value, shape=()):
        return self.constant(f"number{len(self.weights)}", np.full(shape, value, np.float32))

    def plus(self, x, value, step=1 / 40):
        added = self.node("Add", [x, self.number(value)], self.shapes[x])
        return self.quantized(added, step)

    def moved(self, x):
        """Behind a pool of one pixel, so that the chain begins with integers of its own."""
        return self.max_pool(x, 1, 1)


def silu(m, x):
    return m.product(x, m.unary("Sigmoid", x))


def hard_swish(m, x):
    up = m.quantized(m.node("Clip", [m.plus(x, 3.0), "zero", "six"], m.shapes[x]), 6 / 255)
    return m.product(m.product(x, up), m.number(1 / 6))


def gelu(m, x):
    inner = m.unary("Erf", m.product(x, m.number(0.70710678)))
    return m.product(m.product(x, m.plus(inner, 1.0)), m.number(0.5))


def leaky(m, x):
    return m.unary("LeakyRelu", x, alpha=0.1)


def model_of(build, dtype="int8", seed=0):
    m = Chain(seed, dtype)
    m.constant("zero", np.float32(0))
    m.constant("six", np.float32(6))
    m.output(build(m, m.moved(m.input("x", SHAPE, scale=0.05))))
    return m.model()


@pytest.mark.parametrize("build", [silu, hard_swish, gelu, leaky])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_chain_is_one_table_and_equals_onnxruntime(build, dtype):
    model = model_of(build, dtype)
    graph = optimize(import_model(model))
    assert kinds(graph) == ["Quantize", "QMaxPool", "QTable", "Dequantize"]
    x = ((np.arange(256) - 128) * 0.05).astype(np.float32).reshape(SHAPE)
    (want,) = ort_run(model, {"x": x}, fuse=False).values()
    got = evaluate(graph, {"x": x})[graph.outputs[0]]
    np.testing.assert_array_equal(got, want)


@settings(max_examples=60)
@given(
    function=st.sampled_from(["Sigmoid", "Tanh", "Elu", "HardSigmoid", "Softplus", "Exp", "Abs"]),
    step=st.floats(1 / 255, 1 / 8),
    scale=st.floats(0.004, 0.2),
)
def test_tables_are_onnxruntimes_but_where_its_function_lies_between_two_steps(
    function, step, scale
):
    """onnxruntime approximates exp, tanh and the like by polynomials: only a value whose exact
    result is half way between two steps can be one step away."""

    def build(m, x):
        return m.unary(function, x, step=float(np.float32(step)))

    m = Chain(1)
    m.output(build(m, m.moved(m.input("x", SHAPE, scale=float(np.float32(scale))))))
    model = m.model()
    graph = optimize(import_model(model))
    x = ((np.arange(256) - 128) * np.float32(scale)).astype(np.float32).reshape(SHAPE)
    (want,) = ort_run(model, {"x": x}, fuse=False).values()
    got = evaluate(graph, {"x": x})[graph.outputs[0]]
    apart = np.rint(np.abs(got - want) / np.float32(step))
    assert apart.max() <= 1
    assert np.count_nonzero(apart) <= 1


def test_a_chain_may_branch_to_others():
    """The inner rounding is read by a convolution, too: it has a table of its own."""

    def build(m, x):
        inner = m.unary("Sigmoid", x)
        return m.add(m.conv(inner, 4, Window.square(1)), m.product(x, inner))

    graph = optimize(import_model(model_of(build)))
    assert sorted(kinds(graph)) == sorted(
        ["Quantize", "QMaxPool", "QTable", "QTable", "QConv2d+Add", "Dequantize"]
    )
    tables = [node for node in graph.nodes if isinstance(node, ops.QTable)]
    assert len({node.data for node in tables}) == 1


def test_what_arithmetic_does_is_no_table():
    for build in (lambda m, x: m.relu(x), lambda m, x: m.add(x, x)):
        assert "QTable" not in kinds(optimize(import_model(model_of(build))))


def test_what_arithmetic_needs_two_steps_for_is_a_table():
    """Nothing quantizes the limits before the sum."""

    def build(m, x):
        limited = m.node("Relu", [x], m.shapes[x])
        return m.quantized(m.node("Add", [x, limited], m.shapes[x]), 1 / 40)

    assert "QTable" in kinds(optimize(import_model(model_of(build))))


def test_a_sum_with_a_number_that_nothing_quantizes_is_a_table():
    graph = optimize(import_model(model_of(lambda m, x: m.plus(x, 1.0))))
    assert kinds(graph) == ["Quantize", "QMaxPool", "QTable", "Dequantize"]


def test_what_is_no_function_of_one_tensor():
    def two_tensors(m, x):
        other = m.conv(x, 4, Window.square(1))
        return m.product(m.unary("Sigmoid", x), other)

    def other_shape(m, x):  # each element of the table meets all others
        row = m.global_pool(x)
        return m.product(x, row)

    def by_channels(m, x):
        slopes = m.constant("slopes", np.array([0.1, 0.2, 0.3, 0.4], np.float32).reshape(4, 1, 1))
        return m.quantized(m.node("PRelu", [x, slopes], m.shapes[x]), 0.05)

    for build in (two_tensors, other_shape, by_channels):
        nodes = optimize(import_model(model_of(build))).nodes
        last = max(n for n, node in enumerate(nodes) if node.op != "Dequantize")
        assert nodes[last].op != "QTable"


def test_a_float_result_has_no_table():
    m = Chain(2)
    m.output(m.node("Tanh", [m.moved(m.input("x", SHAPE))], SHAPE))
    graph = optimize(import_model(m.model()))
    assert kinds(graph) == ["Quantize", "QMaxPool", "Dequantize", "Unary"]


def test_a_table_has_256_results():
    node = ops.QTable(name="f", output="y", data="x", table="t")
    image = TensorType((2, 3), "int8")
    table = np.zeros(255, np.int8)
    tensors = {"x": image, "y": image, "t": TensorType(table.shape, "int8")}
    with pytest.raises(GraphError) as error:
        verify(Graph(("x",), ("y",), (node,), tensors, {"t": table}))
    assert str(error.value) == "node f (QTable): expected a table of shape [256], found [255]"
