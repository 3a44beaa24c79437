"""Every attribute of an operator that is imported is used, harmless or refused."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.compiler.frontend import import_model
from vdla.compiler.frontend.attributes import ALL, HARMLESS, asked_for
from vdla.compiler.frontend.converters import CONVERTERS
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph import ops

REFUSED = {  # where a file has them with another value than ONNX's default
    ("Add", "axis"), ("Add", "broadcast"), ("BatchNormalization", "spatial"), ("Pad", "paddings"),
    ("Pow", "broadcast"), ("GroupNormalization", "stash_type"),
    ("LayerNormalization", "stash_type"), ("RMSNormalization", "stash_type"),
}  # fmt: skip
FOLDED = {"Constant"}  # ONNX's own implementation computes it, and no converter


def attributes():
    """By operator, the attributes that some opset gives it."""
    result = defaultdict(set)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            result[schema.name] |= schema.attributes.keys()
    return result


def left():
    """The attributes that no converter asks for and that aren't harmless: refused where met."""
    for op_type, names in attributes().items():
        asked = asked_for(CONVERTERS[op_type]) if op_type in CONVERTERS else {ALL}
        if ALL not in asked:
            harmless = {*HARMLESS["*"], *HARMLESS.get(op_type, ())}
            yield from ((op_type, name) for name in sorted(names - asked - harmless))


def test_nothing_is_overlooked():
    refused = {pair for pair in left() if pair[0] not in FOLDED}
    unread = refused - REFUSED
    print(f"attributes of imported operators that nothing reads: {len(unread)}")
    assert not unread
    assert refused == REFUSED


def test_what_is_harmless_is_an_attribute():
    """And nothing asks for it, so that no line of the table is in vain."""
    known = attributes()
    for op_type, names in HARMLESS.items():
        if op_type != "*":
            assert {*names} <= known[op_type], op_type
            assert not {*names} & asked_for(CONVERTERS[op_type]), op_type


def one(kind, opset, *, x=(1, 3, 4, 4), constants=None, **attributes):
    """A model of one node, named it."""
    known = {f"c{n}": np.asarray(a, np.float32) for n, a in enumerate(constants or [])}
    node = helper.make_node(kind, ["x", *known], ["y"], name="it", **attributes)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, x) for n in "xy"]
    weights = [numpy_helper.from_array(a, n) for n, a in known.items()]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


RUN_BY_ONNXRUNTIME = ("spatial = 0", "stash_type = 10")
VECTORS = [np.ones(48)] * 4


@pytest.mark.parametrize(
    ("proto", "actual"),
    [
        (one("BatchNormalization", 7, constants=VECTORS, spatial=0), "spatial = 0"),
        (one("LayerNormalization", 17, constants=[np.ones(4)], stash_type=10), "stash_type = 10"),
        (one("Add", 6, x=(1, 4, 4, 4), constants=[np.ones(4)], axis=1, broadcast=1), "axis = 1"),
    ],
    ids=["BatchNormalization", "LayerNormalization", "Add"],
)
def test_others_are_refused(proto, actual):
    """Or onnxruntime gets them, with that reason."""
    expected = f"expected attributes that vdla knows, found {actual}"
    if actual in RUN_BY_ONNXRUNTIME:
        (node,) = import_model(proto, "m.onnx").nodes
        assert isinstance(node, ops.External)
        assert expected in node.reason
        return
    with pytest.raises(ModelError) as error:
        import_model(proto, "m.onnx")
    assert str(error.value) == f"m.onnx: node it ({proto.graph.node[0].op_type}): {expected}"


def test_a_default_is_no_difference():
    proto = one("LayerNormalization", 17, constants=[np.ones(4)], stash_type=1, axis=-1)
    assert not any(isinstance(node, ops.External) for node in import_model(proto).nodes)


def test_what_a_converter_asks_for_is_in_its_helpers_and_tables():
    assert "output_dtype" in asked_for(CONVERTERS["QuantizeLinear"])
    assert "output_dtype" in asked_for(CONVERTERS["DequantizeLinear"])
    assert {"alpha", "gamma"} <= asked_for(CONVERTERS["Selu"])
    assert "clip" in asked_for(CONVERTERS["LSTM"])
    assert "block_size" not in asked_for(CONVERTERS["Relu"])
