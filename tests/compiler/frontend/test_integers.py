"""Operators on quantized integers: all of them become vdla's own, with onnxruntime's numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from processor import EXACT_WEIGHTS

from vdla import api
from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.runtime import Executor

CODES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8}


class Written:
    """A model of one integer operator between a QuantizeLinear and a DequantizeLinear."""

    def __init__(self, shape=(1, 8, 6, 6), dtype="uint8"):
        self.rng, self.shape, self.dtype = np.random.default_rng(5), shape, dtype
        self.nodes, self.weights = [], []
        self.x = self.quantized("x")

    def constant(self, value, dtype):
        name = f"constant{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def quant(self, scale, zero):
        return [self.constant(scale, np.float32), self.constant(zero, self.dtype)]

    def quantized(self, name):
        quant = self.quant(0.043, 117 if self.dtype == "uint8" else -11)
        self.nodes.append(helper.make_node("QuantizeLinear", [name, *quant], [f"{name}.q"]))
        return [f"{name}.q", *quant]

    def weight(self, shape, scales=0.013):
        values = self.rng.integers(-EXACT_WEIGHTS, EXACT_WEIGHTS, shape)
        zero = np.zeros(np.shape(scales), np.int8)
        quant = self.constant(scales, np.float32), self.constant(zero, np.int8)
        return [self.constant(values, np.int8), *quant]

    def bias(self, count):
        return self.constant(self.rng.integers(-900, 900, count), np.int32)

    def differences(self, op, inputs, tmp_path, domain="", outputs=("y.q",), **attributes):
        """The largest difference of the result's integers from onnxruntime's."""
        self.nodes.append(helper.make_node(op, inputs, outputs, op, domain=domain, **attributes))
        code = CODES[self.dtype]
        sizes = [f"size{n}" for n in range(len(self.shape))]
        ends = [helper.make_tensor_value_info(name, code, sizes) for name in outputs]
        start = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        graph = helper.make_graph(self.nodes, "g", [start], ends, self.weights)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        path = tmp_path / "m.onnx"
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
        module = api.compile(path, device="cpu")
        assert "onnxruntime" not in {row["device"] for row in module.metadata["placement"]}
        inputs = {"x": self.rng.normal(0, 2, self.shape).astype(np.float32)}
        ours, wanted = Executor(module).run(inputs).outputs, ort_run(path, inputs, fuse=False)
        return max(int(abs(ours[n].astype(int) - wanted[n].astype(int)).max()) for n in outputs)


MICROSOFT = {"domain": "com.microsoft"}


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("scales", [0.013, np.linspace(0.01, 0.02, 5)])
@pytest.mark.parametrize("biased", [False, True])
def test_convolutions(dtype, scales, biased, tmp_path):
    m = Written(dtype=dtype)
    inputs = [*m.x, *m.weight((5, 8, 3, 3), scales), *m.quant(0.31, 100)]
    inputs += [m.bias(5)] if biased else []
    assert m.differences("QLinearConv", inputs, tmp_path, pads=[1] * 4, strides=[2, 2]) == 0


@pytest.mark.parametrize("turned", [0, 1])
def test_dense_layers(turned, tmp_path):
    m = Written((3, 20))
    scales = np.linspace(0.01, 0.02, 7)
    weight = m.weight((7, 20) if turned else (20, 7), scales)
    inputs = [*m.x, *weight, m.bias(7), *m.quant(0.2, 99)]
    assert m.differences("QGemm", inputs, tmp_path, **MICROSOFT, transB=turned) == 0


def test_products_of_matrices(tmp_path):
    m = Written((3, 20))
    inputs = [*m.x, *m.weight((20, 7)), *m.quant(0.2, 99)]
    assert m.differences("QLinearMatMul", inputs, tmp_path) == 0


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_two_tensors(op, tmp_path):
    m = Written()
    inputs = [*m.x, *m.x, *m.quant(0.2, 99)]
    assert m.differences(op, inputs, tmp_path, **MICROSOFT) <= 1


@pytest.mark.parametrize(("op", "attributes"), [
    ("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2}), ("QLinearGlobalAveragePool", {}),
    ("QLinearSoftmax", {"axis": 1, "opset": 17}),
    ("QLinearAveragePool", {"kernel_shape": [3, 3], "count_include_pad": 1, "pads": [1] * 4}),
])  # fmt: skip
def test_one_tensor(op, attributes, tmp_path):
    m = Written()
    inputs = [*m.x, *m.quant(0.011, 99)]
    assert m.differences(op, inputs, tmp_path, **MICROSOFT, **attributes) <= 1


def test_concatenations(tmp_path):
    m = Written()
    inputs = [*m.quant(0.05, 99), *m.x, *m.x]
    assert m.differences("QLinearConcat", inputs, tmp_path, **MICROSOFT, axis=1) <= 1


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("op", ["MaxPool", "Reshape", "Transpose", "Pad", "Split", "Resize"])
def test_what_only_moves_integers(op, dtype, tmp_path):
    m, outputs = Written(dtype=dtype), ("y.q",)
    others, attributes = [], {}
    if op == "MaxPool":
        attributes = {"kernel_shape": [3, 3], "pads": [1] * 4}
    elif op == "Reshape":
        others = [m.constant([1, 8, 9, 4], np.int64)]
    elif op == "Transpose":
        attributes = {"perm": [0, 1, 3, 2]}
    elif op == "Pad":
        others = [m.constant([0, 0, 1, 1, 0, 0, 1, 1], np.int64), m.constant(33, dtype)]
    elif op == "Split":
        others, outputs, attributes = [m.constant([3, 5], np.int64)], ("y.a", "y.b"), {"axis": 1}
    else:
        others = ["", m.constant([1, 1, 2, 2], np.float32)]
        attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    inputs = [m.x[0], *others]
    assert m.differences(op, inputs, tmp_path, outputs=outputs, **attributes) == 0


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_means_of_integers(dtype, tmp_path):
    """onnxruntime rounds towards 0, unless somebody is strict."""
    m = Written(dtype=dtype)
    inputs = [m.x[0], "", m.constant([1, 1, 2, 2], np.float32)]
    assert m.differences("Resize", inputs, tmp_path, mode="linear") == 1
    model = onnx.load(tmp_path / "m.onnx")
    assert not import_model(model).of(ops.External)
    assert [n.op for n in import_model(model, strict=True).of(ops.External)] == ["Resize"]


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("ends", [(20, 90), (None, 90), (20, None)])
def test_limits_of_integers(dtype, ends, tmp_path):
    """As tools write that use fewer values than a byte has."""
    m = Written(dtype=dtype)
    inputs = [m.x[0], *(m.constant(end, dtype) if end else "" for end in ends)]
    assert m.differences("Clip", [n for n in inputs if n or inputs[-1]], tmp_path) == 0


def test_limits_that_only_a_run_knows_are_of_integers(tmp_path):
    m = Written()
    m.nodes.append(helper.make_node("ReduceMax", [m.x[0]], ["most"], keepdims=0))
    assert m.differences("Clip", [m.x[0], "", "most"], tmp_path) == 0


def test_a_graph_of_integers_alone_is_quantized_and_runs_on_the_accelerator(tmp_path):
    """No QuantizeLinear and no DequantizeLinear: inputs and outputs are integers."""
    rng = np.random.default_rng(8)
    constants = {
        "xs": np.float32(0.02), "xz": np.int8(3), "ys": np.float32(0.05), "yz": np.int8(-5),
        "ws": np.full(8, 0.01, np.float32), "wz": np.zeros(8, np.int8),
        "w": rng.integers(-60, 60, (8, 3, 3, 3)).astype(np.int8),
        "b": rng.integers(-100, 100, 8).astype(np.int32),
    }  # fmt: skip
    node = helper.make_node(
        "QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], pads=[1] * 4
    )
    graph = helper.make_graph(
        [node], "integers",
        [helper.make_tensor_value_info("x", TensorProto.INT8, (1, 3, 6, 6))],
        [helper.make_tensor_value_info("y", TensorProto.INT8, (1, 8, 6, 6))],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    path = tmp_path / "integers.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    x = {"x": rng.integers(-128, 128, (1, 3, 6, 6)).astype(np.int8)}
    result = api.run(path, x, config="tiny")
    assert result.cycles
    np.testing.assert_array_equal(result.outputs["y"], ort_run(path, x)["y"])
