"""``output_dtype`` of QuantizeLinear and DequantizeLinear: used, on all devices, or refused."""

from __future__ import annotations

import numpy as np
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper
from quantized_models import model as quantized_model
from quantized_models import same_results

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph import ops
from vdla.isa.config import load_config
from vdla.isa.instructions import Load, Mem
from vdla.isa.options.weights4 import WGT4
from vdla.isa.program import Program
from vdla.runtime.devices.named import make_device
from vdla.runtime.executor import Executor

CONFIG = load_config("tiny")
TYPES = ("INT8", "UINT8", "INT16", "UINT16", "INT4", "UINT4", "FLOAT8E4M3FN", "FLOAT8E5M2")
DEVICES = ("cpu", "gpu", "sim")
VALUES = np.array([-30, -1, 0, 0.25, 1, 400], np.float32)


def model(nodes, inputs, outputs, constants, opset=21):
    ends = [
        [helper.make_tensor_value_info(name, code, shape) for name, code, shape in side]
        for side in (inputs, outputs)
    ]
    weights = [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()]
    graph = helper.make_graph(nodes, "types", *ends, weights)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def result(proto, inputs, device):
    options = Options() if device == "sim" else Options(device=device)
    module = compile_graph(import_model(proto), CONFIG, options)
    (value,) = Executor(module, make_device(module, device, CONFIG)).run(inputs).outputs.values()
    return value


def quantize(kind, **attributes):
    code = getattr(TensorProto, kind)
    node = helper.make_node(
        "QuantizeLinear", ["x", "s"], ["y"], name="it", output_dtype=code, **attributes
    )
    x, y = ("x", TensorProto.FLOAT, [6]), ("y", code, [6])
    return model([node], [x], [y], {"s": np.float32(0.1)})


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", TYPES)
def test_a_result_has_the_type_that_it_names(kind, device):
    proto = quantize(kind)
    got = result(proto, {"x": VALUES}, device)
    (want,) = onnx.reference.ReferenceEvaluator(proto).run(None, {"x": VALUES})
    assert got.dtype.name == want.dtype.name
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("late", [False, True], ids=["data", "data and weights"])
def test_a_layer_behind_it(device, late):
    """Of symmetric models, which the attribute spares their zero points."""
    rng = np.random.default_rng(3)
    weight = rng.integers(-127, 128, (8, 8, 3, 3)).astype(np.int8)
    constants = {"s": np.float32(0.05), "ws": np.full(8, 0.01, np.float32)}
    constants["w"] = weight * np.float32(0.01) if late else weight
    code, nodes = TensorProto.INT8, []
    for name, scale, along in [("x", "s", {}), *([("w", "ws", {"axis": 0})] if late else [])]:
        operands = [name, scale]
        made = [f"{name}.q"]
        nodes.append(helper.make_node("QuantizeLinear", operands, made, output_dtype=code, **along))
        nodes.append(helper.make_node("DequantizeLinear", [*made, scale], [f"{name}.r"], **along))
    if not late:
        nodes.append(helper.make_node("DequantizeLinear", ["w", "ws"], ["w.r"], axis=0))
    nodes.append(helper.make_node("Conv", ["x.r", "w.r"], ["c"], name="conv"))
    constants["o"] = np.float32(0.25)
    nodes.append(helper.make_node("QuantizeLinear", ["c", "o"], ["c.q"], output_dtype=code))
    nodes.append(helper.make_node("DequantizeLinear", ["c.q", "o"], ["y"]))
    x, y = ("x", TensorProto.FLOAT, [1, 8, 6, 6]), ("y", TensorProto.FLOAT, [1, 8, 4, 4])
    proto = model(nodes, [x], [y], constants)
    inputs = {"x": rng.normal(0, 2, (1, 8, 6, 6)).astype(np.float32)}
    (want,) = ort_run(proto, inputs, fuse=False).values()
    assert (want < -1).any()
    np.testing.assert_array_equal(result(proto, inputs, device), want)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("data", ["INT8", "INT16", "UINT16"])
@pytest.mark.parametrize("kind", ["FLOAT", "FLOAT16", "BFLOAT16"])
def test_dequantized_numbers_have_the_type_that_it_names(data, kind, device):
    code, of = getattr(TensorProto, kind), getattr(TensorProto, data)
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], output_dtype=code)
    proto = model([node], [("x", of, [4])], [("y", code, [4])], {"s": np.float32(0.1)}, 23)
    x = np.array([100, 1, 3, 127]).astype(helper.tensor_dtype_to_np_dtype(of))
    got, kind = result(proto, {"x": x}, device), helper.tensor_dtype_to_np_dtype(code)
    assert got.dtype == kind
    want = (x.astype(np.float32) * np.float32(0.1)).astype(kind)
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


def test_types_that_disagree_are_refused():
    """ONNX asks for one type of both."""
    node = helper.make_node(
        "QuantizeLinear", ["x", "s", "z"], ["y"], name="it", output_dtype=TensorProto.INT8
    )
    x, y = ("x", TensorProto.FLOAT, [6]), ("y", TensorProto.UINT8, [6])
    proto = model([node], [x], [y], {"s": np.float32(0.1), "z": np.uint8(3)})
    with pytest.raises(ModelError) as error:
        import_model(proto, "m.onnx")
    assert str(error.value) == (
        "m.onnx: node it (QuantizeLinear): expected an output_dtype of uint8, as its zero point "
        "has, found int8"
    )


def test_per_channel_activation_quantization_stays_on_the_host():
    constants = {"s": np.array([0.1, 0.2, 0.3], np.float32), "z": np.array([1, 2, 3], np.int8)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["i"], axis=1),
        helper.make_node("DequantizeLinear", ["i", "s", "z"], ["f"], axis=1),
        helper.make_node("Relu", ["f"], ["y"]),
    ]
    graph = same_results(
        quantized_model(nodes, {"x": (2, 3, 4, 4)}, {"y": (2, 3, 4, 4)}, constants)
    )
    assert isinstance(graph.nodes[0], ops.Quantize)
    assert graph.nodes[0].axis == 1


@pytest.mark.parametrize("axis", [None, 0])
def test_weights_that_training_quantized_are_integers(axis):
    """QuantizeLinear of a constant, as a fake quantizer leaves it: none is left in the graph."""
    rng = np.random.default_rng(3)
    weights = rng.normal(0, 40, (4, 3)).astype(np.float32)
    shape = () if axis is None else (4,)
    scale = rng.uniform(0.1, 0.4, shape).astype(np.float32)
    zero = rng.integers(-9, 9, shape).astype(np.int8)
    names = [["weights", "scale", "zero"], ["integers", "scale", "zero"]]
    kinds = ("QuantizeLinear", "DequantizeLinear")
    nodes = [
        helper.make_node(kind, inputs, [result], kind, axis=axis or 0)
        for kind, inputs, result in zip(kinds, names, ("integers", "floats"), strict=True)
    ]
    nodes.append(helper.make_node("Gemm", ["x", "floats"], ["y"], "dense", transB=1))
    proto = model(
        nodes, [("x", TensorProto.FLOAT, [2, 3])], [("y", TensorProto.FLOAT, [2, 4])],
        {"weights": weights, "scale": scale, "zero": zero},
    )  # fmt: skip
    graph = import_model(proto)
    assert not any(isinstance(node, ops.Quantize) for node in graph.nodes)
    x = rng.normal(0, 1, (2, 3)).astype(np.float32)
    expected = ort_run(proto, {"x": x}, fuse=False)["y"]
    integers = [
        graph.constants[node.data] for node in graph.nodes if isinstance(node, ops.Dequantize)
    ]
    assert [array.dtype.name for array in integers] == ["int8"]
    assert np.allclose(result(proto, {"x": x}, "cpu"), expected, rtol=1e-5, atol=1e-5)


LAYERS = {  # by operator, the shapes of weights, input and result, and the axis of the channels
    "Conv": ((32, 16, 3, 3), [1, 16, 6, 6], [1, 32, 4, 4], 0),
    "Gemm": ((32, 16), [1, 16], [1, 32], 0),
    "MatMul": ((16, 32), [1, 16], [1, 32], 1),
}


def layer_of_4_bits(op, kind, zero):
    """A layer with weights of 4 bits, a scale per channel, a zero point unless that is None."""
    rng = np.random.default_rng(5)
    shape, x, y, axis = LAYERS[op]
    low = 0 if kind == "UINT4" else -8
    dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind))
    weight = rng.integers(low, low + 16, shape).astype(dtype)
    constants = {"s": np.float32(0.05), "xz": np.int8(3), "o": np.float32(0.1), "oz": np.int8(-4),
                 "ws": rng.uniform(0.01, 0.02, 32).astype(np.float32), "w": weight}  # fmt: skip
    quants = ["w", "ws"]
    if zero is not None:
        constants["wz"] = np.full(32, zero).astype(dtype)
        quants.append("wz")
    make, by = helper.make_node, {"transB": 1} if op == "Gemm" else {}
    nodes = [
        make("QuantizeLinear", ["x", "s", "xz"], ["x.q"]),
        make("DequantizeLinear", ["x.q", "s", "xz"], ["x.r"]),
        make("DequantizeLinear", quants, ["w.r"], axis=axis),
        make(op, ["x.r", "w.r"], ["c"], name="layer", **by),
        make("QuantizeLinear", ["c", "o", "oz"], ["c.q"]),
        make("DequantizeLinear", ["c.q", "o", "oz"], ["y"]),
    ]
    ends = ("x", TensorProto.FLOAT, x), ("y", TensorProto.FLOAT, y)
    proto = model(nodes, ends[:1], ends[1:], constants)
    return proto, {"x": rng.normal(0, 2, x).astype(np.float32)}


@pytest.mark.parametrize(
    ("kind", "zero", "in_nibbles"),
    [
        ("INT4", None, True), ("INT4", 0, True), ("INT4", 3, False),
        ("UINT4", 8, True), ("UINT4", 0, False), ("UINT4", None, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("op", LAYERS)
def test_layers_with_weights_of_4_bits(op, kind, zero, in_nibbles):
    """They run on the accelerator, as nibbles if they are int4 less their zero point."""
    proto, inputs = layer_of_4_bits(op, kind, zero)
    (want,) = ort_run(proto, inputs, fuse=False).values()
    assert len(np.unique(want)) > 10
    for settings in ([], ["weights4=1"]):
        config = load_config("paper", settings)
        module = compile_graph(import_model(proto), config, Options())
        assert [layer["name"] for layer in module.metadata["layers"]] == ["layer"]
        (got,) = Executor(module, make_device(module, "sim", config)).run(inputs).outputs.values()
        np.testing.assert_array_equal(got, want)
        (code,) = module.programs.values()
        instructions = Program.from_bytes(code, config, "program").instructions
        named = {each.memory for each in instructions if isinstance(each, Load)}
        weights = WGT4 if in_nibbles and settings else Mem.WGT
        assert named & {Mem.WGT, WGT4} == {weights}


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "INT2", "UINT2"])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("late", [False, True])
def test_constants_of_few_bits_are_bytes(kind, axis, late):
    """All of them, of one scale or of one for each channel; also where a file quantizes floats."""
    opset = 25 if kind.endswith("2") else 21
    numbers = np.array(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind)))
    bits = int(kind[-1])
    low = 0 if kind.startswith("U") else -(1 << bits - 1)
    integers = np.resize(np.arange(low, low + (1 << bits)), (6, 16))
    shape = () if axis is None else (integers.shape[axis],)
    scale = np.full(shape, 0.25, np.float32)
    zero = np.full(shape, low + 1).astype(numbers.item())
    data = integers.astype(numbers.item())
    constants = {"s": scale, "z": zero, "w": data}
    nodes = [helper.make_node("DequantizeLinear", ["q" if late else "w", "s", "z"], ["f"],
                              axis=axis or 0)]  # fmt: skip
    if late:
        constants["w"] = (integers.astype(np.float32) - low - 1) * np.float32(0.25) + 0.1
        nodes.insert(0, helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], axis=axis or 0))
    nodes.append(helper.make_node("Add", ["x", "f"], ["y"]))
    x, y = (("x", TensorProto.FLOAT, [6, 16]), ("y", TensorProto.FLOAT, [6, 16]))
    proto = model(nodes, [x], [y], constants, opset)
    graph = import_model(proto)
    (node,) = graph.of(ops.Dequantize)
    expected = "uint8" if kind.startswith("U") else "int8"
    assert graph.constants[node.data].dtype == expected
    np.testing.assert_array_equal(graph.constants[node.data], integers)


@pytest.mark.parametrize("opset", [10, 13, 21])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_onnxruntimes_own_quantization_is_onnxs(opset, dtype):
    """Of the domain com.microsoft, which has types that older opsets of ONNX haven't."""
    constants = {"s": np.float32(0.1), "z": np.array(7, dtype)}
    nodes = [
        helper.make_node(op, [data, "s", "z"], [end], domain="com.microsoft")
        for op, data, end in (("QuantizeLinear", "x", "i"), ("DequantizeLinear", "i", "y"))
    ]
    x, y = (("x", TensorProto.FLOAT, [6]), ("y", TensorProto.FLOAT, [6]))
    proto = model(nodes, [x], [y], constants, opset)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    graph = import_model(proto)
    assert not any(isinstance(node, ops.External) for node in graph.nodes)
    (want,) = ort_run(proto, {"x": VALUES}, fuse=False).values()
    np.testing.assert_array_equal(result(proto, {"x": VALUES}, "cpu"), want)
