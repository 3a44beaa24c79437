"""Networks of signals and of volumes: what works on images, and that results stay the same."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from qdq import QdqModel

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.passes.images import as_images
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.window import Window

ENDS = {"Quantize", "Dequantize", "QReshape", "QTranspose"}


def window_of(kernel, stride=1, pad=0, dilation=1):
    """One alike along all axes but for its taps."""
    rank = len(kernel)
    return Window(tuple(kernel), (stride,) * rank, (pad,) * (2 * rank), (dilation,) * rank)


def fields(window):
    return {
        "kernel_shape": window.kernel,
        "strides": window.strides,
        "pads": window.pads,
        "dilations": window.dilations,
    }


def conv(m, x, channels, window, groups=1, activation=None):
    """A convolution of any rank, with its quantization."""
    n, c, *image = m.shapes[x]
    name = f"conv{len(m.nodes)}"
    weight, scales = m.weight(f"{name}.weight", (channels, c // groups, *window.kernel))
    bias = m.bias(f"{name}.bias", channels, scales * np.float32(m.scales[x]))
    shape = n, channels, *window.places(tuple(image))
    y = m.node("Conv", [x, weight, bias], shape, group=groups, **fields(window))
    spread = float(np.sqrt(prod(window.kernel) * c // groups)) * 50
    scale = m.scales[x] * float(scales.mean()) * spread
    return m.finished(y, float(np.float32(scale)), activation)


def pool(m, op, x, window, **attributes):
    n, c, *image = m.shapes[x]
    shape = n, c, *window.places(tuple(image))
    steps = fields(window)
    if op == "AveragePool":  # of opset 17
        del steps["dilations"]
    y = m.node(op, [x], shape, **steps, **attributes)
    return m.same_quant(x, y) if op == "MaxPool" else m.quantized(y, m.scales[x] * 0.7)


def global_pool(m, op, x):
    y = m.node(op, [x], (*m.shapes[x][:2], *[1] * (len(m.shapes[x]) - 2)))
    return m.same_quant(x, y) if "Max" in op else m.quantized(y, m.scales[x] * 0.4)


def differences(m, seed=5):
    """The optimized graph of a model, and how many steps its outputs differ from onnxruntime's."""
    model, rng = m.model(), np.random.default_rng(seed)
    before = import_model(model)
    after = optimize(before)
    data = {
        n: rng.standard_normal(before.tensors[n].shape).astype(np.float32) for n in after.inputs
    }
    moved = verify(as_images(before))
    for name in before.outputs:
        np.testing.assert_array_equal(evaluate(before, data)[name], evaluate(moved, data)[name])
    ours, theirs = evaluate(after, data), ort_run(model, data, fuse=False)
    steps = [np.rint((ours[n] - want) / m.scales[n]) for n, want in theirs.items()]
    return after, np.concatenate([np.abs(each).ravel() for each in steps])


def kinds(graph):
    return [node.op for node in graph.nodes if node.op not in ENDS]


def middle(graph):
    """Reshapes and transpositions that stand between two integer operators."""
    integers = [n for n in graph.nodes if n.op.startswith("Q") and n.op not in ENDS]
    read = {name for node in integers for name in node.inputs}
    moves = [n for n in graph.nodes if n.op in ("QReshape", "QTranspose")]
    written = {node.output for node in integers}
    return [n.name for n in moves if n.output in read and n.data in written]


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


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_convolution_of_a_volume(data):
    """Taps along the depth are brought together by moves of images, and one sum is rounded."""
    draw = data.draw
    groups, each = draw(st.sampled_from([(1, 5), (2, 3), (4, 1)]))
    steps = st.tuples(*[st.integers(1, 2)] * 3)
    kernel = draw(st.tuples(*[st.integers(1, 3)] * 3))
    pads = draw(st.tuples(*[st.integers(0, 2)] * 6))
    window = Window(kernel, draw(steps), pads, draw(steps))
    m = QdqModel(draw(st.integers(0, 9)), draw(st.sampled_from(["int8", "uint8"])))
    x = m.input("x", (draw(st.integers(1, 2)), groups * each, 5, 6, 7))
    m.output(conv(m, x, groups * 2, window, groups, draw(st.sampled_from([None, "Relu"]))))
    graph, steps = differences(m)
    assert "QConv2d" in kinds(graph)
    assert not {"Conv2d", "Take", "Add"} & set(kinds(graph))
    assert steps.max() <= 1
    assert (steps > 0).mean() < 0.02


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_pool_of_a_volume(data):
    draw = data.draw
    kernel = draw(st.tuples(*[st.integers(1, 3)] * 3))
    pads = tuple(draw(st.integers(0, k - 1)) for k in (*kernel, *kernel))
    window = Window(kernel, draw(st.tuples(*[st.integers(1, 3)] * 3)), pads, (1, 1, 1))
    m = QdqModel(draw(st.integers(0, 9)), draw(st.sampled_from(["int8", "uint8"])))
    x = m.input("x", (draw(st.integers(1, 2)), 3, 5, 6, 7))
    op, more = draw(
        st.sampled_from([
            ("MaxPool", {}),
            ("AveragePool", {"count_include_pad": 1}),
            ("AveragePool", {"count_include_pad": 0}),
        ])
    )  # fmt: skip
    m.output(pool(m, op, x, window, **more))
    graph, steps = differences(m)
    whole = op == "MaxPool" or more["count_include_pad"] or not (pads[0] or pads[3])
    if whole:  # else the divisors differ from depth to depth
        assert {"QMaxPool", "QAvgPool"} & set(kinds(graph))
    assert steps.max() <= (1 if op == "AveragePool" else 0)


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
