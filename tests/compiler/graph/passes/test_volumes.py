"""Volumes of one slice become images: the same numbers, and no moves between."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.passes.channels_first import channels_first
from vdla.compiler.graph.passes.volumes import volumes_as_images
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType

SHAPE = (1, 6, 1, 5, 4)


def model(slices=1, keepdims=1):
    """Convolutions, a softmax of channels, a gate, a sum of channels and a concatenation."""
    rng = np.random.default_rng(0)
    shape = (*SHAPE[:2], slices, *SHAPE[3:])
    arrays = {
        "w0": rng.standard_normal((6, 6, 1, 3, 3)), "w1": rng.standard_normal((2, 7, 1, 1, 1)),
        "offset": rng.standard_normal((6, 1, 1, 1)),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c"], pads=[0, 1, 1, 0, 1, 1]),
        helper.make_node("Add", ["c", "offset"], ["o"]),
        helper.make_node("Softmax", ["o"], ["s"], axis=1),
        helper.make_node("Mul", ["s", "gate"], ["m"]),
        helper.make_node("ReduceSum", ["m", "axes"], ["r"], keepdims=keepdims),
        helper.make_node("Unsqueeze", ["r", "axes"], ["u"]) if not keepdims else
        helper.make_node("Relu", ["r"], ["u"]),
        helper.make_node("Concat", ["x", "u"], ["both"], axis=1),
        helper.make_node("Conv", ["both", "w1"], ["y"]),
    ]  # fmt: skip
    ends = [("x", shape), ("gate", (1, 6, 1, 1, 1))]
    graph = helper.make_graph(
        nodes, "volumes",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in ends],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 2, slices, *SHAPE[3:]))],
        [*(numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()),
         numpy_helper.from_array(np.array([1]), "axes")],
    )  # fmt: skip
    inputs = {n: rng.standard_normal(s).astype(np.float32) for n, s in ends}
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8), inputs


@pytest.mark.parametrize("keepdims", [0, 1])
def test_nothing_but_images_is_left(keepdims):
    """A sum that drops its axis reads the volume still."""
    proto, inputs = model(keepdims=keepdims)
    graph = volumes_as_images(channels_first(import_model(proto)))
    moves = ops.Reshape, ops.Transpose
    left = [n for n in graph.nodes if len(graph.tensors[n.output].shape) == 5]
    assert all(isinstance(node, moves) for node in left)
    used = {name for node in graph.nodes if not isinstance(node, moves) for name in node.inputs}
    assert not keepdims or not used & {node.output for node in left}
    (wanted,) = ort_run(proto, inputs).values()
    np.testing.assert_allclose(evaluate(graph, inputs)["y"], wanted, rtol=1e-5, atol=1e-5)


def test_volumes_of_several_slices_stay():
    graph = import_model(model(slices=3)[0])
    assert volumes_as_images(graph) is graph or [
        node.op for node in volumes_as_images(graph).nodes
    ] == [node.op for node in graph.nodes]


def test_a_sum_of_channels_is_a_convolution_of_ones():
    zero = numpy_helper.from_array(np.int8(3), "z")
    scales = [numpy_helper.from_array(np.float32(s), n) for n, s in (("s", 0.05), ("t", 0.3))]
    for function, axes in (("ReduceSum", [1]), ("ReduceMean", [1])):
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            helper.make_node(function, ["d", "axes"], ["r"])
            if function == "ReduceSum" else helper.make_node(function, ["d"], ["r"], axes=axes),
            helper.make_node("QuantizeLinear", ["r", "t", "z"], ["p"]),
            helper.make_node("DequantizeLinear", ["p", "t", "z"], ["y"]),
        ]  # fmt: skip
        graph = helper.make_graph(
            nodes, "sum",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 20, 6, 5))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 1, 6, 5))],
            [zero, *scales, numpy_helper.from_array(np.array(axes), "axes")],
        )  # fmt: skip
        opset = [helper.make_opsetid("", 17)]
        proto = helper.make_model(graph, opset_imports=opset, ir_version=8)
        from vdla.compiler.graph.passes import optimize

        own = optimize(import_model(proto))
        assert [n.op for n in own.of(ops.QConv2d)] == ["QConv2d"]
        x = {"x": np.random.default_rng(1).standard_normal((1, 20, 6, 5)).astype(np.float32)}
        (wanted,) = ort_run(proto, x, fuse=False).values()
        assert np.abs(evaluate(own, x)[own.outputs[0]] - wanted).max() <= 0.3 * 1.001


def test_an_image_with_its_axes_of_size_1_elsewhere_is_another():
    """[2, 1, 3, 4] becomes a volume [1, 2, 1, 3, 4], whose image is [1, 2, 3, 4]."""
    tensors = {
        "x": TensorType((2, 1, 3, 4), "float32"), "v": TensorType((1, 2, 1, 3, 4), "float32"),
        "y": TensorType((2, 2, 1, 3, 4), "float32"),
    }  # fmt: skip
    places = (0, 0, 0, 1, 0, 0, 1, 2, 0, 1, 2, 3)
    nodes = (
        ops.Reshape(name="v", output="v", data="x"),
        ops.Take(name="y", output="y", data="v", shape=(2, 2, 1, 3, 4), places=places),
    )
    graph = Graph(("x",), ("y",), nodes, tensors, {})
    x = {"x": np.arange(24, dtype=np.float32).reshape(2, 1, 3, 4)}
    result = verify(volumes_as_images(graph))
    np.testing.assert_array_equal(evaluate(result, x)["y"], evaluate(graph, x)["y"])
