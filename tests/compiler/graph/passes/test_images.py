"""Networks of signals and of volumes: what works on images, and that results stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from any_rank import conv, differences, global_pool, kinds, middle, pool, window_of
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from qdq import QdqModel

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.passes.images import as_images
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.window import Window


@settings(max_examples=30)
@given(data=st.data())
def test_any_convolution_of_a_signal(data):
    draw = data.draw
    groups, each = draw(st.sampled_from([(1, 5), (2, 3), (6, 1)]))
    kernel, stride, dilation = (draw(st.integers(1, n)) for n in (5, 3, 3))
    pads = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    window = Window((kernel,), (stride,), pads, (dilation,))
    m = QdqModel(draw(st.integers(0, 9)), draw(st.sampled_from(["int8", "uint8"])))
    x = m.input("x", (draw(st.integers(1, 2)), groups * each, 17))
    activation = draw(st.sampled_from([None, "Relu", (-0.2, 0.5)]))
    m.output(conv(m, x, groups * 2, window, groups, activation))
    graph, steps = differences(m)
    assert kinds(graph) == ["QConv2d"]
    assert steps.max() <= 1
    assert (steps > 0).mean() < 0.02


def test_a_network_of_signals_has_reshapes_at_its_ends_alone():
    m = QdqModel(2)
    x = conv(m, m.input("x", (2, 8, 40)), 16, window_of([5], 2, 2), activation="Relu")
    y = conv(m, conv(m, x, 16, window_of([3], 1, 2, 2), 16, "Relu"), 16, window_of([1]))
    x = m.add(x, y, "Relu")
    x = m.concat([pool(m, "MaxPool", x, window_of([3], 2, 1)), conv(m, x, 16, window_of([2], 2))])
    vectors = [
        m.constant(name, values.astype(np.float32))
        for name, values in zip(
            ("g", "b", "m", "v"), np.random.default_rng(0).uniform(0.5, 2, (4, 32)), strict=True
        )
    ]
    x = m.finished(m.node("BatchNormalization", [x, *vectors], m.shapes[x]), 0.2, "Relu")
    x = pool(m, "AveragePool", x, window_of([3], 1, 1), count_include_pad=0)
    top = m.flatten(global_pool(m, "GlobalMaxPool", x))
    mean = m.flatten(global_pool(m, "GlobalAveragePool", x))
    m.output(m.add(m.dense(mean, 10), m.dense(top, 10)))
    graph, steps = differences(m)
    assert middle(graph) == []
    assert not any(len(graph.tensors[n.output].shape) == 3 for n in graph.nodes[2:])
    expected = ["QConv2d", "QConv2d", "QConv2d+Add", "QMaxPool", "QConv2d", "QConcat", "QBatchNorm"]
    assert kinds(graph)[:7] == expected
    assert steps.max() <= 2


def test_a_network_of_volumes_has_moves_at_its_ends_alone():
    m = QdqModel(2, "uint8")
    x = conv(m, m.input("x", (2, 4, 6, 8, 8)), 16, window_of([3, 3, 3], 1, 1), activation="Relu")
    x = pool(m, "MaxPool", x, window_of([2, 2, 2], 2))
    y = conv(m, conv(m, x, 16, window_of([1, 1, 1])), 16, window_of([3, 3, 3], 1, 1), 16, "Relu")
    x = m.concat([m.add(x, y, "Relu"), conv(m, x, 8, window_of([2, 3, 3], 1, 1), 1)][:1] * 2)
    x = pool(m, "AveragePool", x, window_of([3, 2, 2], 1, 1), count_include_pad=1)
    top = m.flatten(global_pool(m, "GlobalMaxPool", x))
    mean = m.flatten(global_pool(m, "GlobalAveragePool", x))
    m.output(m.add(m.dense(mean, 10), m.dense(top, 10)))
    graph, steps = differences(m)
    assert middle(graph) == []
    assert all(op.startswith("Q") for op in kinds(graph))
    assert steps.max() <= 2


def test_a_float_network_keeps_its_number_of_nodes():
    """And a batch normalization goes into the weights, a ReLU behind its convolution."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((6, 4, 3)), "b": rng.standard_normal(6),
        **{name: rng.uniform(0.5, 2, 6) for name in "gomv"},
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1]),
        helper.make_node("BatchNormalization", ["c", *"gomv"], ["n"]),
        helper.make_node("Relu", ["n"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, channels, 9))
        for name, channels in (("x", 4), ("y", 6))
    ]
    known = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()]
    opset = helper.make_opsetid("", 17)
    proto = helper.make_model(
        helper.make_graph(nodes, "g", ends[:1], ends[1:], known),
        opset_imports=[opset],
        ir_version=8,
    )
    graph = optimize(import_model(proto))
    assert kinds(graph) == ["Reshape", "Conv2d", "Relu", "Reshape"]
    x = {"x": rng.standard_normal((1, 4, 9)).astype(np.float32)}
    want = ort_run(proto, x)["y"]
    np.testing.assert_allclose(evaluate(graph, x)["y"], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 6, 1), (6, 9), (6, 1), (9,), (1,), (2, 6, 9)])
def test_constants_are_spread_to_images(shape):
    """As an operand of an addition of signals; one of floats, and one of integers."""
    m = QdqModel(3)
    x = conv(m, m.input("x", (2, 4, 9)), 6, window_of([3], 1, 1))
    value = m.constant("value", np.random.default_rng(0).normal(0, 1, shape).astype(np.float32))
    x = m.quantized(m.node("Add", [x, value], (2, 6, 9)), 0.3)
    steps = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    scale, zero = m.constant("step", np.float32(0.02)), m.constant("zero", np.int8(3))
    other = m.node("DequantizeLinear", [m.constant("steps", steps), scale, zero], shape)
    x = m.quantized(m.node("Mul", [other, x], (2, 6, 9)), 0.3)
    m.output(conv(m, x, 4, window_of([2])))
    graph, steps = differences(m)
    shapes = [len(graph.tensors[n.output].shape) for n in graph.nodes]
    assert shapes.count(3) <= 5
    assert steps.max() <= 1


def test_what_others_read_stays_a_signal():
    m = QdqModel(3)
    x = conv(m, m.input("x", (1, 4, 9)), 6, window_of([3]), activation="Relu")
    m.output(x)
    m.output(conv(m, x, 6, window_of([1])))
    graph, steps = differences(m)
    assert [graph.tensors[name].shape for name in graph.outputs] == [(1, 6, 7)] * 2
    assert steps.max() <= 1


def test_images_alone_are_left_alone():
    m = QdqModel(3)
    m.output(m.conv(m.input("x", (1, 4, 9, 9)), 6, 3))
    graph = import_model(m.model())
    assert as_images(graph) is graph
