"""What each ONNX operator becomes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate


def model(nodes, inputs, outputs, constants=None, opset=17):
    """A model from nodes and name → shape; tensors are float32."""
    weights = [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()]
    ends = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in group.items()]
        for group in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "g", *ends, weights)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


QUANT = {"s": np.array(0.05, np.float32), "z": np.array(3, np.int8)}


def quantized_input(name="x"):
    """x → Quantize → Dequantize → xq."""
    return [
        helper.make_node("QuantizeLinear", [name, "s", "z"], ["xi"], name="q"),
        helper.make_node("DequantizeLinear", ["xi", "s", "z"], ["xq"], name="dq"),
    ]


def single(op, out_shape, x_shape=(1, 4, 6, 7), extra=(), constants=None, opset=17, **attributes):
    """A quantized input, then one float operator."""
    nodes = [
        *quantized_input(),
        helper.make_node(op, ["xq", *extra], ["y"], name="it", **attributes),
    ]
    return model(nodes, {"x": x_shape}, {"y": out_shape}, {**QUANT, **(constants or {})}, opset)


def agrees(proto, seed=0, atol=1e-5):
    """Whether the imported graph, before and after optimizing, computes what onnxruntime does."""
    imported = import_model(proto)
    rng = np.random.default_rng(seed)
    x = {
        n: rng.standard_normal(imported.tensors[n].shape).astype(np.float32)
        for n in imported.inputs
    }
    want = ort_run(proto, x)
    for graph in (imported, optimize(imported)):
        values = evaluate(graph, x)
        for name, value in zip([o.name for o in proto.graph.output], graph.outputs, strict=True):
            np.testing.assert_allclose(values[value], want[name], atol=atol, rtol=1e-5)
    return imported


RNG = np.random.default_rng(1)
W = RNG.standard_normal((6, 4, 3, 2)).astype(np.float32)


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ({}, (1, 6, 4, 6)),
        ({"strides": [2, 3]}, (1, 6, 2, 2)),
        ({"pads": [1, 0, 2, 1]}, (1, 6, 7, 7)),
        ({"dilations": [2, 1]}, (1, 6, 2, 6)),
        ({"auto_pad": "VALID"}, (1, 6, 4, 6)),
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, (1, 6, 3, 4)),
        ({"auto_pad": "SAME_LOWER", "strides": [2, 2]}, (1, 6, 3, 4)),
    ],
)
def test_conv_windows(attributes, shape):
    graph = agrees(single("Conv", shape, extra=["w"], constants={"w": W}, **attributes))
    assert graph.tensors["y"].shape == shape


def test_conv_groups_and_bias():
    w = RNG.standard_normal((6, 2, 3, 3)).astype(np.float32)
    b = RNG.standard_normal(6).astype(np.float32)
    proto = single("Conv", (1, 6, 4, 5), extra=["w", "b"], constants={"w": w, "b": b}, group=2)
    assert agrees(proto).node("it").groups == 2


@pytest.mark.parametrize(
    ("op", "attributes", "shape"),
    [
        (
            "MaxPool",
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
            (1, 4, 3, 4),
        ),
        ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}, (1, 4, 3, 4)),
        (  # the last place rounding up would take sees only padding
            "MaxPool",
            {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [0, 0, 1, 1], "ceil_mode": 1},
            (1, 4, 2, 3),
        ),
        ("MaxPool", {"kernel_shape": [2, 2], "dilations": [2, 3]}, (1, 4, 4, 4)),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, (1, 4, 6, 7)),
        (
            "AveragePool",
            {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
            (1, 4, 6, 7),
        ),
        ("AveragePool", {"kernel_shape": [4, 4], "strides": [3, 3], "ceil_mode": 1}, (1, 4, 2, 2)),
        ("AveragePool", {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}, (1, 4, 6, 7)),
        ("GlobalAveragePool", {}, (1, 4, 1, 1)),
    ],
)
def test_pools(op, attributes, shape):
    assert agrees(single(op, shape, **attributes)).tensors["y"].shape == shape


@pytest.mark.parametrize(
    ("op", "extra", "constants", "attributes", "shape"),
    [
        ("Relu", [], {}, {}, (1, 4, 6, 7)),
        ("Clip", ["lo", "hi"], {"lo": np.float32(-0.5), "hi": np.float32(1)}, {}, (1, 4, 6, 7)),
        ("Clip", ["", "hi"], {"hi": np.float32(0.7)}, {}, (1, 4, 6, 7)),
        ("Softmax", [], {}, {"axis": 1}, (1, 4, 6, 7)),
        ("Softmax", [], {}, {}, (1, 4, 6, 7)),
        ("Flatten", [], {}, {}, (1, 168)),
        ("Flatten", [], {}, {"axis": -1}, (24, 7)),
        ("Reshape", ["r"], {"r": np.array([0, -1, 7])}, {}, (1, 24, 7)),
        ("Transpose", [], {}, {"perm": [0, 2, 3, 1]}, (1, 6, 7, 4)),
        ("Squeeze", ["a"], {"a": np.array([0])}, {}, (4, 6, 7)),
        ("Unsqueeze", ["a"], {"a": np.array([1])}, {}, (1, 1, 4, 6, 7)),
        ("Identity", [], {}, {}, (1, 4, 6, 7)),
        ("Add", ["c"], {"c": RNG.standard_normal((4, 1, 1)).astype(np.float32)}, {}, (1, 4, 6, 7)),
    ],
)
def test_others(op, extra, constants, attributes, shape):
    constants = {k: np.asarray(v) for k, v in constants.items()}
    agrees(single(op, shape, extra=extra, constants=constants, **attributes))


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
    agrees(single(op, (1, 4, 6, 7), **attributes))


@pytest.mark.parametrize("op", ["Sub", "Mul", "Div", "Max", "Min", "PRelu"])
def test_binary(op):
    c = RNG.uniform(0.5, 2, (4, 1, 1)).astype(np.float32)
    agrees(single(op, (1, 4, 6, 7), extra=["c"], constants={"c": c}))


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
    agrees(model(nodes, {"x": (2, 3)}, {"y": (2, 3)}, constants))


@pytest.mark.parametrize(("keep", "shape"), [(1, (1, 4, 1, 1)), (0, (1, 4))])
def test_reduce_mean(keep, shape):
    agrees(single("ReduceMean", shape, axes=[2, 3], keepdims=keep))
    extra = {"axes": np.array([-2, -1])}
    agrees(single("ReduceMean", shape, extra=["axes"], constants=extra, opset=18, keepdims=keep))


@pytest.mark.parametrize("axes", [[0, 3], [-1, 0], [-1]])
def test_axes_as_attributes(axes):
    shape = tuple(n for i, n in enumerate((1, 4, 6, 1)) if i not in [a % 4 for a in axes])
    graph = agrees(single("Squeeze", shape, (1, 4, 6, 1), opset=11, axes=axes))
    assert graph.tensors["y"].shape == shape


def test_clip_bounds_as_attributes():
    nodes = [helper.make_node("Clip", ["x"], ["y"], name="it", min=0.0, max=1.0)]
    nodes += [
        helper.make_node("QuantizeLinear", ["y", "s", "z"], ["yi"]),
        helper.make_node("DequantizeLinear", ["yi", "s", "z"], ["o"]),
    ]
    proto = model(nodes, {"x": (2, 3)}, {"o": (2, 3)}, QUANT, opset=10)
    assert (import_model(proto).node("it").low, import_model(proto).node("it").high) == (0.0, 1.0)


def test_batch_normalization():
    stats = {k: RNG.uniform(0.5, 2, 4).astype(np.float32) for k in "gbmv"}
    agrees(single("BatchNormalization", (1, 4, 6, 7), extra=list("gbmv"), constants=stats))


def test_batch_normalization_with_quantized_statistics():
    stats = {k: RNG.integers(1, 100, 4).astype(np.int8) for k in "gbmv"}
    nodes = quantized_input()
    for k in stats:
        nodes.append(helper.make_node("DequantizeLinear", [k, "s"], [f"{k}f"]))
    nodes.append(helper.make_node("BatchNormalization", ["xq", *(f"{k}f" for k in stats)], ["y"]))
    agrees(model(nodes, {"x": (1, 4, 6, 7)}, {"y": (1, 4, 6, 7)}, {**QUANT, **stats}))


def test_batch_normalization_folds_into_a_float_convolution():
    stats = {k: RNG.uniform(0.5, 2, 6).astype(np.float32) for k in "gbmv"}
    nodes = [
        *quantized_input(),
        helper.make_node("Conv", ["xq", "w"], ["c"], name="conv"),
        helper.make_node("BatchNormalization", ["c", *"gbmv"], ["y"], name="bn"),
    ]
    proto = model(nodes, {"x": (1, 4, 6, 7)}, {"y": (1, 6, 4, 6)}, {**QUANT, **stats, "w": W})
    agrees(proto, atol=1e-4)
    assert [n.op for n in optimize(import_model(proto)).nodes][-1] == "Conv2d"


def test_batch_normalization_stays_where_the_convolution_is_read_twice():
    stats = {k: RNG.uniform(0.5, 2, 6).astype(np.float32) for k in "gbmv"}
    nodes = [
        *quantized_input(),
        helper.make_node("Conv", ["xq", "w"], ["c"], name="conv"),
        helper.make_node("BatchNormalization", ["c", *"gbmv"], ["n"], name="bn"),
        helper.make_node("Add", ["c", "n"], ["y"], name="both"),
    ]
    proto = model(nodes, {"x": (1, 4, 6, 7)}, {"y": (1, 6, 4, 6)}, {**QUANT, **stats, "w": W})
    agrees(proto, atol=1e-4)
    assert "BatchNorm" in [n.op for n in optimize(import_model(proto)).nodes]


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm(transposed):
    w = RNG.standard_normal((5, 8) if transposed else (8, 5)).astype(np.float32)
    constants = {"w": w, "b": RNG.standard_normal((1, 5)).astype(np.float32)}
    proto = single("Gemm", (2, 5), (2, 8), ["w", "b"], constants, transB=transposed)
    agrees(proto)


def test_matmul():
    agrees(single("MatMul", (2, 5), (2, 8), ["w"], {"w": W.reshape(-1)[:40].reshape(8, 5)}))


def test_concat():
    nodes = [*quantized_input(), helper.make_node("Concat", ["xq", "xq", "c"], ["y"], axis=1)]
    constants = {**QUANT, "c": np.ones((1, 2, 3, 3), np.float32)}
    agrees(model(nodes, {"x": (1, 4, 3, 3)}, {"y": (1, 10, 3, 3)}, constants))


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
    assert agrees(proto).tensors["y"].shape == (2, 48)


def test_identity_and_dropout_disappear():
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Dropout", ["a"], ["b"]),
        helper.make_node("QuantizeLinear", ["b", "s", "z"], ["i"]),
        helper.make_node("DequantizeLinear", ["i", "s", "z"], ["y"]),
    ]
    proto = model(nodes, {"x": (2, 3)}, {"y": (2, 3)}, QUANT)
    assert [n.op for n in agrees(proto).nodes] == ["Quantize", "Dequantize"]


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


def test_per_channel_activation_quantization_stays_on_the_host():
    constants = {"s": np.array([0.1, 0.2, 0.3], np.float32), "z": np.array([1, 2, 3], np.int8)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["i"], axis=1),
        helper.make_node("DequantizeLinear", ["i", "s", "z"], ["f"], axis=1),
        helper.make_node("Relu", ["f"], ["y"]),
    ]
    graph = agrees(model(nodes, {"x": (2, 3, 4, 4)}, {"y": (2, 3, 4, 4)}, constants))
    assert isinstance(graph.nodes[0], ops.Quantize)
    assert graph.nodes[0].axis == 1


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
    graph = agrees(model(nodes, {"x": (1, 4)}, {"y": (1, 4)}, {**QUANT, **constants}))
    assert graph.tensors["c"].shape == ()


def test_a_scalar_input_and_output():
    nodes = [*quantized_input(), helper.make_node("Sub", ["xq", "other"], ["y"])]
    graph = agrees(model(nodes, {"x": (), "other": ()}, {"y": ()}, QUANT))
    assert graph.tensors["y"].shape == ()
