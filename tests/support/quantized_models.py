"""Models behind a quantized input, which vdla has to import and to compute as onnxruntime does."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate

QUANT = {"s": np.array(0.05, np.float32), "z": np.array(3, np.int8)}
RNG = np.random.default_rng(1)
W = RNG.standard_normal((6, 4, 3, 2)).astype(np.float32)


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


def same_results(proto, seed=0, atol=1e-5):
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
