"""Models as files have them: names, shapes, inputs, constants and scalars."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from quantized_models import QUANT, RNG, W, model, quantized_input, same_results, single

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate


def test_constant_nodes_and_shape_arithmetic_are_computed():
    """Flattening as PyTorch exports it: Shape → Gather → Concat → Reshape."""
    value = numpy_helper.from_array(np.array([-1]), "v")
    nodes = [
        *quantized_input(),
        helper.make_node("Shape", ["xq"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["n"]),
        helper.make_node("Constant", [], ["rest"], value=value),
        helper.make_node("Concat", ["n", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["xq", "target"], ["y"]),
    ]
    proto = model(nodes, {"x": (2, 3, 4, 4)}, {"y": (2, 48)}, {**QUANT, "zero": np.array([0])})
    assert same_results(proto).tensors["y"].shape == (2, 48)


def test_nodes_without_names_get_one_and_duplicates_a_number():
    proto = single("Relu", (1, 4, 6, 7))
    for node in proto.graph.node:
        node.name = "same"
    assert [n.name for n in import_model(proto).nodes] == ["same", "same_2", "same_3"]
    for node in proto.graph.node:
        node.name = ""
    assert import_model(proto).nodes[2].name == "Relu_2"


def test_shapes_make_a_dynamic_model_static():
    """By a dimension's name or as an input's whole shape; an unknown size has no name."""
    proto = single("Relu", ("N", 4, "H", 7), ("N", 4, "H", 7))
    for shapes in ({"N": 2, "H": 5}, {"x": (2, 4, 5, 7)}, {"x": [2, 4, 5, 7], "N": 3}):
        assert import_model(proto, shapes=shapes).tensors["y"].shape == (2, 4, 5, 7)
    for unknown in (None, -1):
        proto = single("Relu", (unknown, 4), (unknown, 4))
        assert import_model(proto, shapes={"x": (3, 4)}).tensors["y"].shape == (3, 4)


def test_initializers_listed_as_inputs_are_no_inputs():
    proto = single("Conv", (1, 6, 4, 6), extra=["w"], constants={"w": W})
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, W.shape))
    assert import_model(proto).inputs == ("x",)


def test_uint8_input_and_output():
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["f"]),
        helper.make_node("MaxPool", ["f"], ["m"], kernel_shape=[2, 2], name="pool"),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["y"]),
    ]
    ends = [
        [helper.make_tensor_value_info(n, TensorProto.UINT8, s)]
        for n, s in (("x", (1, 3, 4, 4)), ("y", (1, 3, 3, 3)))
    ]
    weights = [
        numpy_helper.from_array(np.array(0.1, np.float32), "s"),
        numpy_helper.from_array(np.array(7, np.uint8), "z"),
    ]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", *ends, weights),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    graph = optimize(import_model(proto))
    assert [n.op for n in graph.nodes] == ["FlipSign", "QMaxPool", "FlipSign"]
    x = {"x": RNG.integers(0, 256, (1, 3, 4, 4)).astype(np.uint8)}
    np.testing.assert_array_equal(evaluate(graph, x)["y"], ort_run(proto, x)["y"])


def test_onnx_checker_is_content_with_our_models():
    onnx.checker.check_model(single("Relu", (1, 4, 6, 7)))


def test_scalars_have_the_empty_shape():
    """A scalar constant, quantized as onnxruntime's quantizer does it: ``x * 0.5``."""
    constants = {"half": np.array(100, np.int8), "hs": np.array(0.005, np.float32)}
    nodes = [
        *quantized_input(),
        helper.make_node("DequantizeLinear", ["half", "hs"], ["c"]),
        helper.make_node("Mul", ["xq", "c"], ["y"], name="it"),
    ]
    graph = same_results(model(nodes, {"x": (1, 4)}, {"y": (1, 4)}, {**QUANT, **constants}))
    assert graph.tensors["c"].shape == ()


def test_a_scalar_input_and_output():
    nodes = [*quantized_input(), helper.make_node("Sub", ["xq", "other"], ["y"])]
    graph = same_results(model(nodes, {"x": (), "other": ()}, {"y": ()}, QUANT))
    assert graph.tensors["y"].shape == ()
