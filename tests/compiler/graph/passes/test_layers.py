"""Layers as different quantizers write them: integers alone, with onnxruntime's results in every
bit, since all scales are powers of two."""

from __future__ import annotations

import numpy as np
import pytest
from exact_layers import IMAGE, ROWS, F, X, floats, integers_of, weights
from qdq import QdqModel

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_a_bias_in_a_node_of_its_own(quantized, first):
    """As exporters write linear layers: of floats, or int32 that DequantizeLinear reads."""
    m = QdqModel()
    x = m.input("x", ROWS, 2.0**-4)
    turned = m.node("Transpose", [weights(m, (24, 16))], (16, 24), perm=[1, 0])
    bias = m.bias("b", 24, np.full(24, 2.0**-10)) if quantized else floats(m, 24)
    y = m.node("MatMul", [x, turned], (1, 5, 24))
    y = m.node("Add", [bias, y] if first else [y, bias], (1, 5, 24))
    m.output(m.quantized(y, 2.0**-3, 4))
    graph = integers_of(m)
    assert sum(isinstance(node, ops.QDense) for node in graph.nodes) == 1


@pytest.mark.parametrize("shape", [(1, 24), (1, 1, 24)])
def test_a_bias_that_has_more_axes(shape):
    m = QdqModel()
    y = m.node("Transpose", [weights(m, (24, 16))], (16, 24), perm=[1, 0])
    y = m.node("MatMul", [m.input("x", ROWS, 2.0**-4), y], (1, 5, 24))
    m.output(m.quantized(m.node("Add", [y, floats(m, shape)], (1, 5, 24)), 2.0**-3, 4))
    integers_of(m)


def test_what_is_no_bias_stays_a_sum():
    """One number for each row, and a layer whose result something else reads, too."""
    m = QdqModel()
    x = m.input("x", ROWS, 2.0**-4)
    y = m.node("Transpose", [weights(m, (16, 16))], (16, 16), perm=[1, 0])
    y = m.node("MatMul", [x, y], ROWS)
    z = m.node("Add", [y, floats(m, (5, 1))], ROWS)
    z = m.node("Add", [y, z], ROWS)
    m.output(m.quantized(z, 2.0**-3, 4))
    kinds = [node.op for node in optimize(import_model(m.model())).nodes]
    assert kinds.count("Add") == 2
    assert "Dense" in kinds


@pytest.mark.parametrize(("op", "factor"), [("Mul", 0.5), ("Mul", 4.0), ("Div", 8.0)])
def test_a_factor_before_a_quantization(op, factor):
    """As tools write the divisors of an average that shifts compute."""
    m = QdqModel()
    y = m.node("GlobalAveragePool", [m.input("x", IMAGE, 2.0**-4)], (1, 16, 1, 1))
    z = m.node(op, [y, m.constant("f", np.array(factor, F))], (1, 16, 1, 1))
    m.output(m.quantized(z, 2.0**-6, 4))
    proto = m.model()
    graph = optimize(import_model(proto))
    assert [node.op for node in graph.nodes] == ["Quantize", "QAvgPool", "Dequantize"]
    (want,) = ort_run(proto, {"x": X[IMAGE]}, fuse=False).values()
    got = evaluate(graph, {"x": X[IMAGE]})[graph.outputs[0]]
    assert np.abs(got - want).max() <= 2.0**-6
    assert np.count_nonzero(got != want) <= 1


@pytest.mark.parametrize("factor", [-0.5, 0.0])
def test_a_factor_that_no_scale_has_stays(factor):
    m = QdqModel()
    y = m.node("MatMul", [m.input("x", ROWS, 2.0**-4), floats(m, (16, 8))], (1, 5, 8))
    y = m.node("Mul", [y, m.constant("f", np.array(factor, F))], (1, 5, 8))
    m.output(m.quantized(y, 2.0**-6, 4))
    assert "Binary" in [node.op for node in optimize(import_model(m.model())).nodes]


@pytest.mark.parametrize("factors", [[2, 0.5], [-1, 0.25], [0, 1]])
@pytest.mark.parametrize("biased", [None, "float", "int32"])
def test_a_normalization_behind_a_layer(factors, biased):
    """As training leaves it: with positive, negative and dead channels."""
    m = QdqModel()
    operands = [m.input("x", IMAGE, 2.0**-4), weights(m, (16, 16, 3, 3), np.full(16, 2.0**-6))]
    if biased:
        scales = np.full(16, 2.0**-10)
        operands += [m.bias("b", 16, scales) if biased == "int32" else floats(m, 16)]
    y = m.node("Conv", operands, IMAGE, pads=[1] * 4)
    gamma = np.resize(np.array(factors, F), 16)
    norm = [m.constant(n, a) for n, a in (("gamma", gamma), ("beta", np.full(16, 0.5, F)),
            ("mean", np.full(16, 0.25, F)), ("var", np.ones(16, F)))]  # fmt: skip
    y = m.node("BatchNormalization", [y, *norm], IMAGE, epsilon=0.0)
    m.output(m.quantized(m.node("Relu", [y], IMAGE), 2.0**-2, -128))
    graph = integers_of(m)
    assert sum(node.op == "QConv2d" for node in graph.nodes) == 1


@pytest.mark.parametrize("reversed_axes", [False, True])
def test_a_mean_of_means(reversed_axes):
    """Of tiles that cover the image it is the image's; of others it isn't."""
    m = QdqModel()
    kernel = (2, 3)
    y = m.node("AveragePool", [m.input("x", IMAGE, 2.0**-4)], (1, 16, 3, 2), kernel_shape=kernel,
               strides=kernel[::-1] if reversed_axes else kernel)  # fmt: skip
    y = m.node("GlobalAveragePool", [y], (1, 16, 1, 1))
    m.output(m.quantized(y, 2.0**-6, 4))
    kinds = [node.op for node in optimize(import_model(m.model())).nodes]
    pools = ["AvgPool", "AvgPool"] if reversed_axes else ["QAvgPool"]
    assert [kind for kind in kinds if kind.endswith("Pool")] == pools


def test_a_mean_of_some_means_stays():
    m = QdqModel()
    y = m.node("AveragePool", [m.input("x", IMAGE, 2.0**-4)], (1, 16, 3, 3), kernel_shape=[2, 2],
               strides=[2, 2])  # fmt: skip
    y = m.node("AveragePool", [y], (1, 16, 2, 2), kernel_shape=[2, 2])
    m.output(m.quantized(y, 2.0**-6, 4))
    kinds = [node.op for node in optimize(import_model(m.model())).nodes]
    assert kinds.count("AvgPool") == 2


@pytest.mark.parametrize("limit", ["Relu", "Clip", "Clip within", "Clip below", None])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_scale_for_each_channel_before_depthwise_layers(limit, dtype):
    """The layer before has the scales among its own, or a normalization of floats has them."""
    m = QdqModel()
    scales = (2.0 ** -RNG.integers(2, 5, 16)).astype(F)
    y = m.node("Conv", [m.input("x", IMAGE, 2.0**-4), weights(m, (16, 16, 1, 1))], IMAGE)
    if limit:
        ends = [-0.25 if limit == "Clip below" else 0.0, 1.0 if limit == "Clip within" else 999.0]
        bounds = [m.constant(f"end{n}", np.array(end, F)) for n, end in enumerate(ends)]
        y = m.node(limit[:4], [y, *bounds][: 1 if limit == "Relu" else 3], IMAGE)
    quant = [m.constant("s", scales), m.constant("z", np.full(16, 3, dtype))]
    y = m.node("QuantizeLinear", [y, *quant], IMAGE, axis=1)
    y = m.node("DequantizeLinear", [y, *quant], IMAGE, axis=1)
    own = weights(m, (16, 1, 3, 3), np.full(16, 2.0**-6))
    m.output(m.quantized(m.node("Conv", [y, own], IMAGE, group=16, pads=[1] * 4), 2.0**-2, 4))
    left = ["Conv2d", "Clip", "BatchNorm"] if limit in ("Clip within", "Clip below") else []
    graph = integers_of(m, left=left)
    assert not any(getattr(node, "axis", None) == 1 for node in graph.nodes)


def test_channels_with_scales_that_something_else_reads_stay():
    m = QdqModel()
    quant = [m.constant("s", np.full(16, 0.25, F)), m.constant("z", np.zeros(16, np.int8))]
    y = m.node("Relu", [m.input("x", IMAGE, 2.0**-4)], IMAGE)
    y = m.node("QuantizeLinear", [y, *quant], IMAGE, axis=1)
    y = m.node("DequantizeLinear", [y, *quant], IMAGE, axis=1)
    own = weights(m, (16, 1, 3, 3))
    z = m.node("Conv", [y, own], IMAGE, group=16, pads=[1] * 4)
    m.output(m.quantized(m.node("Add", [z, y], IMAGE), 2.0**-3, 4))
    graph = optimize(import_model(m.model()))
    assert any(getattr(node, "axis", None) == 1 for node in graph.nodes)
