"""Quantizers behind operators that keep their operand's steps: no bit is another one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, checker, helper, numpy_helper

from vdla.analysis.ort import ort_run

pytest.importorskip("torch")
from vdla.compiler.frontend.pytorch.same_steps import add_quantizers

SHAPE = (1, 4, 6, 6)
KEEPING = {
    "Relu": {},
    "MaxPool": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    "Transpose": {"perm": [0, 1, 3, 2]},
    "DepthToSpace": {"blocksize": 2},
    "SpaceToDepth": {"blocksize": 2},
}
CODES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}
OTHERS = {"Neg": {}, "Sqrt": {}}


def model(ops, kind, scale, zero, per_channel=False):
    """``ops`` in a row between a dequantizer of the input and a sum of floats."""
    constants = {
        "scale": np.float32(scale),
        "zero": np.dtype(kind).type(zero),
        "one": np.float32(1),
    }
    if per_channel:
        constants.update(scale=np.full(4, scale, "f4"), zero=np.full(4, zero, kind))
    nodes = [helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["v0"], axis=1)]
    for n, op in enumerate(ops):
        attributes = {**KEEPING, **OTHERS}[op]
        nodes.append(
            helper.make_node(op, [f"v{n}"], [f"v{n + 1}"], f"{op.lower()}{n}", **attributes)
        )
    nodes.append(helper.make_node("Add", [f"v{len(ops)}", "one"], ["y"]))
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", CODES[kind], SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, list("abcd"))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def run(proto, x):
    return ort_run(proto, {"x": x}, fuse=False)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["Relu", "MaxPool", "Transpose"]), min_size=1, max_size=3),
    st.sampled_from(["int8", "uint8"]),
    st.floats(2.0**-20, 2.0**20, width=32),
    st.data(),
)  # fmt: skip
def test_no_value_changes(ops, kind, scale, data):
    limits = np.iinfo(kind)
    proto = model(ops, kind, scale, data.draw(st.integers(limits.min, limits.max)))
    x = np.arange(144).reshape(SHAPE).astype(kind)
    before = run(proto, x)
    add_quantizers(proto)
    checker.check_model(proto, full_check=True)
    assert [node.op_type for node in proto.graph.node].count("QuantizeLinear") == len(ops)
    assert np.array_equal(run(proto, x)["y"], before["y"])


@pytest.mark.parametrize(
    ("ops", "per_channel"), [(["Neg"], False), (["Neg", "Relu"], False), (["Relu"], True)]
)
def test_others_stay_as_they_are(ops, per_channel):
    proto = model(ops, "int8", 0.5, 0, per_channel)
    before = proto.SerializeToString()
    add_quantizers(proto)
    assert proto.SerializeToString() == before


def test_a_result_of_the_model_keeps_its_name():
    proto = model(["Relu"], "int8", 0.5, 3)
    proto.graph.output.append(helper.make_tensor_value_info("v1", TensorProto.FLOAT, SHAPE))
    x = np.arange(144).reshape(SHAPE).astype("i1")
    before = run(proto, x)
    add_quantizers(proto)
    assert [node.op_type for node in proto.graph.node].count("QuantizeLinear") == 1
    assert np.array_equal(run(proto, x)["v1"], before["v1"])
