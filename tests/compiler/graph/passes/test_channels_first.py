"""Images of N, H, W, C between transpositions: how many are left, and that numbers stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.passes.channels_first import channels_first
from vdla.compiler.graph.reference import evaluate

FRONT, BACK = [0, 3, 1, 2], [0, 2, 3, 1]


class Net:
    """An ONNX graph under construction; ``shapes`` are those of its images."""

    def __init__(self, shape, seed=0):
        self.rng, self.nodes, self.weights = np.random.default_rng(seed), [], []
        self.inputs = {"x": tuple(shape)}

    def node(self, op, *inputs, **attributes):
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def constant(self, value, dtype=np.float32):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def numbers(self, *shape):
        return self.constant(self.rng.uniform(0.5, 1.5, shape))

    def front(self, x):
        return self.node("Transpose", x, perm=FRONT)

    def back(self, x):
        return self.node("Transpose", x, perm=BACK)

    def conv(self, x, before, after):
        """A convolution of N, C, H, W."""
        return self.node("Conv", x, self.numbers(after, before, 1, 1))

    def rounded(self, x, axis=None, channels=1):
        """What int8 makes of a tensor; with an axis, by scales of their own."""
        scale = self.numbers(channels) if axis is not None else self.constant(0.05)
        zero = self.constant(np.full(channels, 3) if axis is not None else 3, np.int8)
        along = {} if axis is None else {"axis": axis}
        x = self.node("QuantizeLinear", x, scale, zero, **along)
        return self.node("DequantizeLinear", x, scale, zero, **along)

    def graph(self, *outputs):
        kind = TensorProto.FLOAT
        starts = [helper.make_tensor_value_info(n, kind, s) for n, s in self.inputs.items()]
        ends = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "rows", starts, ends, self.weights)
        opset = helper.make_opsetid("", 17)
        return import_model(helper.make_model(graph, opset_imports=[opset], ir_version=8))


def transpositions(graph):
    return [node.perm for node in graph.nodes if isinstance(node, ops.Transpose)]


def turned(graph, left=()):
    """The graph after the pass, with the transpositions that it should have; all else is equal."""
    result = verify(channels_first(graph))
    assert transpositions(result) == [tuple(perm) for perm in left]
    inputs = {
        name: np.random.default_rng(1).normal(size=graph.tensors[name].shape).astype(np.float32)
        for name in graph.inputs
    }
    wanted, found = evaluate(graph, inputs), evaluate(result, inputs)
    exact = not any(isinstance(node, ops.AvgPool | ops.Softmax) for node in result.nodes)
    for name in graph.outputs:
        assert found[name].dtype == wanted[name].dtype
        tolerance = {} if exact else {"rtol": 1e-5, "atol": 1e-6}
        np.testing.assert_allclose(found[name], wanted[name], **(tolerance or {"rtol": 0}))
    return result


def step(net, draw, x, size, channels):
    """A node of N, H, W, C, its result, and its rows and channels."""
    kinds = ["Relu", "bias", "single", "Pad", "Slice", "channels", "rows", "gate", "round", "axis"]
    kind = draw(st.sampled_from([*kinds, "Softmax", "twice"]))
    if kind == "Relu":
        return net.node("Relu", x), size, channels
    if kind in ("bias", "single"):
        shape = draw(st.sampled_from([(channels,), (1, 1, 1, channels), (1, size, 1, channels)]))
        op = draw(st.sampled_from(["Add", "Sub", "Mul"]))
        names = [x, net.numbers(*(() if kind == "single" else shape))]
        return net.node(op, *names[:: draw(st.sampled_from([1, -1]))]), size, channels
    if kind == "Pad":
        pads = net.constant([0, 1, 0, 0, 0, 0, 1, 0], np.int64)
        return net.node("Pad", x, pads), size + 1, channels
    if kind == "Slice":
        spans = (net.constant([n], np.int64) for n in (1, channels + 1, 3))
        return (
            (net.node("Slice", x, *spans), size, channels - 1)
            if channels > 1
            else (x, size, channels)
        )
    if kind == "channels":
        return net.node("Concat", x, net.node("Relu", x), axis=3), size, 2 * channels
    if kind == "gate":
        pooled = net.node("ReduceMax", x, axes=[1, 2])
        return net.node("Mul", x, net.node("Sigmoid", pooled)), size, channels
    if kind == "rows":
        return (
            net.node("Slice", x, *(net.constant([n], np.int64) for n in (0, size, 2))),
            size,
            channels,
        )
    if kind == "round":
        return net.rounded(x), size, channels
    if kind == "axis":
        return net.rounded(x, 3, channels), size, channels
    if kind == "Softmax":
        return net.node("Softmax", x, axis=draw(st.sampled_from([2, 3]))), size, channels
    return net.node("Add", x, net.rounded(x)), size, channels


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_all_between_two_convolutions_is_turned(data):
    net, size, channels = Net((2, 3, 4, 4)), 4, 3
    x = net.back(net.node("Relu", "x"))
    for _ in range(data.draw(st.integers(1, 6))):
        x, size, channels = step(net, data.draw, x, size, channels)
    turned(net.graph(net.conv(net.front(x), channels, 2)))


def test_a_network_keeps_transpositions_at_its_ends_alone():
    net = Net((1, 6, 6, 3))
    pads = net.constant([0, 1, 1, 0, 0, 1, 1, 0], np.int64)
    x = net.back(net.conv(net.front(net.node("Pad", net.rounded("x"), pads)), 3, 4))
    x = net.node("Relu", net.node("Add", x, net.numbers(4)))
    y = net.node("Relu", net.back(net.conv(net.front(x), 4, 4)))
    x = net.node("Concat", net.node("Add", x, y), y, axis=3)
    gate = net.node("ReduceMean", x, axes=[1, 2], keepdims=1)
    gate = net.node("Sigmoid", net.back(net.conv(net.front(gate), 8, 8)))
    x = net.node("Mul", x, gate)
    outputs = net.node("ReduceMean", x, axes=[1, 2], keepdims=0), net.node("Relu", x)
    result = turned(net.graph(*outputs), [FRONT, BACK])
    assert [node.op for node in result.nodes].count("AvgPool") == 2


def test_a_mean_of_all_pixels_is_a_pool_without_a_transposition():
    net = Net((2, 3, 4, 5))
    result = turned(net.graph(net.node("ReduceMean", net.back("x"), axes=[1, 2], keepdims=0)))
    assert [node.op for node in result.nodes] == ["AvgPool", "Reshape"]


def test_a_pixel_is_reshaped():
    net = Net((2, 3))
    pixel = net.node("Reshape", "x", net.constant([2, 1, 1, 3], np.int64))
    result = turned(net.graph(net.conv(net.front(net.node("Relu", pixel)), 3, 2)))
    assert [node.op for node in result.nodes] == ["Reshape", "Relu", "Conv2d"]


@pytest.mark.parametrize(("axes", "left"), [([1], [BACK]), ([3], []), ([2], [BACK])])
def test_a_reduction_whose_axes_change_places_stays(axes, left):
    net = Net((2, 3, 4, 5))
    turned(net.graph(net.node("ReduceMax", net.back("x"), axes=axes, keepdims=0)), left)


def test_what_needs_rows_of_channels_stays():
    """A product of the last axis: turning what stands before it would win nothing."""
    net = Net((2, 3, 4, 5))
    x = net.node("Relu", net.back(net.conv("x", 3, 4)))
    y = net.node("MatMul", x, net.numbers(4, 4))
    graph = net.graph(net.node("MatMul", net.node("Add", x, y), net.numbers(4, 2)))
    assert channels_first(graph) is graph


def test_a_residual_of_rows_between_two_convolutions_stays():
    """Turning it would put two transpositions around each product, for the two at its ends."""
    net = Net((2, 4, 4, 5))
    x = net.back(net.conv("x", 4, 4))
    for _ in range(3):
        x = net.node("Add", x, net.node("MatMul", x, net.numbers(4, 4)))
    graph = net.graph(net.conv(net.front(x), 4, 2))
    assert channels_first(graph) is graph


def test_others_get_a_transposition_back():
    net = Net((2, 3, 4, 5))
    x = net.node("Relu", net.back(net.conv("x", 3, 4)))
    y = net.node("MatMul", x, net.numbers(4, 4))
    z = net.conv(net.front(net.node("Add", x, net.numbers(4))), 4, 2)
    turned(net.graph(y, z), [BACK])


def test_a_vector_that_is_no_constant_stays():
    net = Net((2, 3, 4, 5))
    net.inputs["v"] = (3,)
    x = net.node("Add", net.back("x"), "v")
    graph = net.graph(net.conv(net.front(x), 3, 2))
    assert channels_first(graph) is graph


def test_volumes():
    net = Net((2, 3, 4, 5, 6))
    x = net.node("Transpose", "x", perm=[0, 2, 3, 4, 1])
    x = net.node("Add", net.node("Relu", x), net.numbers(3))
    turned(net.graph(net.node("Neg", net.node("Transpose", x, perm=[0, 4, 1, 2, 3]))))
