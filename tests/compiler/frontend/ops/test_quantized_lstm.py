"""com.microsoft's DynamicQuantizeLSTM computes what onnxruntime does, by vdla alone."""

from __future__ import annotations

import numpy as np
import pytest
from combinations import crossed
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import ModelError, import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate

STEPS, BATCH, SIZE, HIDDEN = 5, 2, 7, 6
F = np.float32
SIDES = {"forward": 1, "reverse": 1, "bidirectional": 2}


def model(way, dtype, columns, given, states=True):
    """A layer; ``given`` are its initializers beside weights and scales: bias, state, peepholes.

    ``columns`` says that scales and zero points are of columns; ``states`` whether the last states
    are outputs, too.
    """
    rng, sides = np.random.default_rng(11), SIDES[way]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max + 1
    count = (sides, 4 * HIDDEN) if columns else (sides,)

    def zeros():
        """One for each direction; of columns, onnxruntime wants them to be equal."""
        drawn = rng.integers(low + 90, high - 90, (1,) if columns else (sides,))
        return np.broadcast_to(drawn, count).astype(dtype)

    weights = {
        "w": rng.integers(low, high, (sides, SIZE, 4 * HIDDEN)).astype(dtype),
        "r": rng.integers(low, high, (sides, HIDDEN, 4 * HIDDEN)).astype(dtype),
        "b": rng.standard_normal((sides, 8 * HIDDEN)).astype(F),
        "h": rng.standard_normal((sides, BATCH, HIDDEN)).astype(F),
        "c": rng.standard_normal((sides, BATCH, HIDDEN)).astype(F),
        "p": rng.standard_normal((sides, 3 * HIDDEN)).astype(F),
        "ws": rng.uniform(0.002, 0.005, count).astype(F),
        "wz": zeros(),
        "rs": rng.uniform(0.002, 0.005, count).astype(F),
        "rz": zeros(),
    }
    names = ["w", "r", "b", "", "h", "c", "p", "ws", "wz", "rs", "rz"]
    inputs = [n if n in given or n not in ("b", "h", "c", "p") else "" for n in names]
    outputs = ["y", "yh", "yc"] if states else ["y"]
    node = helper.make_node(
        "DynamicQuantizeLSTM", ["x", *inputs], outputs, name="it", domain="com.microsoft",
        hidden_size=HIDDEN, direction=way,
    )  # fmt: skip
    ranks = {"y": 4, "yh": 3, "yc": 3}
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, BATCH, SIZE])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * ranks[n]) for n in outputs],
        [numpy_helper.from_array(weights[n], n) for n in inputs if n],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def check(proto, x):
    graph = optimize(import_model(proto, "m"))
    assert not any(isinstance(node, ops.External) for node in graph.nodes)
    found, want = evaluate(graph, {"x": x}), ort_run(proto, {"x": x})
    for ours, theirs in zip(graph.outputs, want.values(), strict=True):
        np.testing.assert_allclose(found[ours], theirs, atol=1e-5)


def random_input():
    return np.random.default_rng(4).standard_normal((STEPS, BATCH, SIZE)).astype(F)


@pytest.mark.parametrize(
    ("way", "dtype", "columns", "given"),
    crossed([*SIDES], ["int8", "uint8"], [False, True], ["", "b", "bhcp"]),
)
def test_as_onnxruntime_has_it(way, dtype, columns, given):
    check(model(way, dtype, columns, given), random_input())


@pytest.mark.parametrize("value", [0.0, 3.0, -3.0])
def test_data_without_a_range(value):
    """All 0, where the scale is 1; all of one sign, where 0 is one end of the range."""
    check(model("forward", "int8", False, "b"), np.full((STEPS, BATCH, SIZE), value, F))


def test_the_sequence_alone():
    check(model("reverse", "uint8", False, "b", states=False), random_input())


def test_refused_scales():
    proto = model("forward", "int8", True, "b")
    (scales,) = (t for t in proto.graph.initializer if t.name == "ws")
    scales.CopyFrom(numpy_helper.from_array(np.ones(5, F), "ws"))
    with pytest.raises(ModelError) as caught:
        import_model(proto, "m")
    assert str(caught.value) == (
        "m: node it (DynamicQuantizeLSTM): expected 1 or 24 scales and zero points of the weights, "
        "found 5"
    )


def test_a_hidden_size_that_is_not_the_weights():
    proto = model("forward", "int8", False, "b")
    next(a for a in proto.graph.node[0].attribute if a.name == "hidden_size").i = HIDDEN + 1
    with pytest.raises(ModelError) as caught:
        import_model(proto, "m")
    assert str(caught.value) == (
        f"m: node it (DynamicQuantizeLSTM): expected hidden_size {HIDDEN}, as its weights have it, "
        f"found {HIDDEN + 1}"
    )
