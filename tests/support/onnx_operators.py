"""Float models of a few nodes, which vdla has to import and to compute as onnxruntime does."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import ModelError, import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate

RNG = np.random.default_rng(7)
F = np.float32


def model(nodes, inputs, constants=None, outputs=("y",), opset=18):
    """A model of nodes; inputs are arrays, outputs have the types that onnxruntime gives them."""
    ends = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    results = [onnx.ValueInfoProto(name=n) for n in outputs]
    weights = [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", ends, results, weights)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def typed(proto):
    """With the types of its outputs, which the checker wants; float32 where nobody knows."""
    proto = onnx.shape_inference.infer_shapes(proto)
    for value in proto.graph.output:
        if not value.type.WhichOneof("value"):
            value.type.tensor_type.elem_type = TensorProto.FLOAT
        kind = value.type
        if kind.HasField("tensor_type") and not kind.tensor_type.HasField("shape"):
            kind.tensor_type.shape.dim.add()
    return proto


def agrees(nodes, inputs, constants=None, outputs=("y",), opset=18, rtol=1e-5):
    """The graph, which is vdla's own and computes what onnxruntime does."""
    proto = typed(model(nodes, inputs, constants, outputs, opset))
    graph = import_model(proto, "m")
    assert not any(isinstance(node, ops.External) for node in graph.nodes)
    want = ort_run(proto, inputs)
    found = evaluate(optimize(graph), inputs)
    for name, output in zip(graph.outputs, want.values(), strict=True):
        assert found[name].dtype == output.dtype
        np.testing.assert_allclose(found[name], output, rtol=rtol, atol=1e-5)
    return graph


def real(*shape):
    """A random array."""
    return RNG.standard_normal(shape).astype(F)


def one(op, *operands, **attributes):
    """The one node, called it, that writes y."""
    return [helper.make_node(op, operands, ["y"], name="it", **attributes)]


def check_operator(op, operands, constants, attributes):
    """One operator on x and constants: it computes what onnxruntime does."""
    known = {name: np.array(value) for name, value in constants.items()}
    x = {"x": real(3, 6, 4)}
    agrees(
        one(op, *operands, **attributes), x, {**known, "g": real(6)} if "g" in operands else known
    )


def check_refusal(op, operands, dtype, attributes, text):
    """One operator is refused, with this text."""
    constants = {
        "i": np.array([1]), "v": real(1, 3, 2, 2), "f": np.array(0.5, F), "t": np.array(True),
    }  # fmt: skip
    x = {"x": np.ones((2, 3), dtype), "w": np.ones((2, 2), F)}
    nodes = [helper.make_node("Identity", ["x"], ["unused"]), *one(op, *operands, **attributes)]
    if not {"x", "w"} & {*operands}:  # nothing is computed while importing
        x["v"], x["i"] = constants.pop("v"), constants.pop("i")
    with pytest.raises(ModelError) as caught:
        import_model(typed(model(nodes, x, constants)), "m")
    assert str(caught.value) == f"m: node it ({op}): {text}"
