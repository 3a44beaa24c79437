"""Parts of networks of floats, files of which products alone are quantized, and who runs them."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

FEATURES, LENGTH = 32, 20


class Block:
    """A network under construction: a method adds operators and gives their result's name."""

    def __init__(self, seed=0):
        self.rng, self.nodes, self.constants = np.random.default_rng(seed), [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def whole(self, array):
        """A constant of whole numbers: axes, places."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, np.int64), name))
        return name

    def node(self, op, *data, **attributes):
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [*data], [name], name=name, **attributes))
        return name

    def linear(self, x, inputs, outputs):
        weight = self.rng.standard_normal((inputs, outputs)) / np.sqrt(inputs)
        product = self.node("MatMul", x, self.constant(weight))
        return self.node("Add", product, self.constant(self.rng.normal(0, 0.5, outputs)))

    def norm(self, x):
        gamma, beta = self.rng.uniform(0.5, 1.5, FEATURES), self.rng.normal(0, 0.3, FEATURES)
        return self.node("LayerNormalization", x, self.constant(gamma), self.constant(beta))

    def gelu(self, x):
        half = self.node("Mul", x, self.constant(np.sqrt(0.5)))
        more = self.node("Add", self.node("Erf", half), self.constant(1.0))
        return self.node("Mul", self.node("Mul", x, more), self.constant(0.5))

    def model(self, output, shape=(1, LENGTH, FEATURES), result=(1, LENGTH, FEATURES)):
        def kind(name, sizes):
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)

        ends = [kind("x", shape)], [kind(output, result)]
        graph = helper.make_graph(self.nodes, "block", *ends, self.constants)
        opset = helper.make_opsetid("", 17)
        return helper.make_model(graph, opset_imports=[opset], ir_version=9)


def samples(count=4, seed=1, shape=(1, LENGTH, FEATURES)):
    """Random inputs."""
    rng = np.random.default_rng(seed)
    return [{"x": rng.standard_normal(shape).astype(np.float32)} for _ in range(count)]


def joined(several):
    """Samples one behind another, as ``--calibration`` has them."""
    return {"x": np.concatenate([each["x"] for each in several])}


def write(model, path, given=None, ops=("MatMul",), **options):
    """Writes a network whose products alone are quantized."""
    rest = iter(samples() if given is None else given)

    class Reader(CalibrationDataReader):
        def get_next(self):
            return next(rest, None)

    kinds = {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8, **options}
    quantize_static(model, path, Reader(), op_types_to_quantize=[*ops], **kinds)
    return path


def unfused(path, inputs):
    """The result of onnxruntime without fusion."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options).run(None, inputs)[0]


def on_host(rows):
    """The operators of the host between the accelerator's first and last."""
    places = [n for n, row in enumerate(rows) if row["device"] == "vdla"]
    return [row for row in rows[places[0] : places[-1] + 1] if row["device"] != "vdla"]
