"""Operators that give elements other places and leave their values."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_operators import F, agrees, check_refusal, one, real
from quantized_models import QUANT, quantized_input, same_results, single
from quantized_models import model as quantized_model

from vdla.compiler.graph.editor import remove_dead


@pytest.mark.parametrize(("op", "extra", "constants", "attributes", "shape"), [
    ("Flatten", [], {}, {}, (1, 168)),
    ("Flatten", [], {}, {"axis": -1}, (24, 7)),
    ("Reshape", ["r"], {"r": np.array([0, -1, 7])}, {}, (1, 24, 7)),
    ("Transpose", [], {}, {"perm": [0, 2, 3, 1]}, (1, 6, 7, 4)),
    ("Squeeze", ["a"], {"a": np.array([0])}, {}, (4, 6, 7)),
    ("Unsqueeze", ["a"], {"a": np.array([1])}, {}, (1, 1, 4, 6, 7)),
    ("Identity", [], {}, {}, (1, 4, 6, 7)),
])  # fmt: skip
def test_behind_a_quantized_input(op, extra, constants, attributes, shape):
    constants = {k: np.asarray(v) for k, v in constants.items()}
    same_results(single(op, shape, extra=extra, constants=constants, **attributes))


@pytest.mark.parametrize("axes", [[0, 3], [-1, 0], [-1]])
def test_axes_as_attributes(axes):
    shape = tuple(n for i, n in enumerate((1, 4, 6, 1)) if i not in [a % 4 for a in axes])
    graph = same_results(single("Squeeze", shape, (1, 4, 6, 1), opset=11, axes=axes))
    assert graph.tensors["y"].shape == shape


def test_axes_without_a_dimension():
    """As ONNX's own definitions have them."""
    agrees(one("Unsqueeze", "x", "a"), {"x": real(2, 3)}, {"a": np.array(1)})


def test_concat():
    nodes = [*quantized_input(), helper.make_node("Concat", ["xq", "xq", "c"], ["y"], axis=1)]
    constants = {**QUANT, "c": np.ones((1, 2, 3, 3), np.float32)}
    same_results(quantized_model(nodes, {"x": (1, 4, 3, 3)}, {"y": (1, 10, 3, 3)}, constants))


def test_identity_and_dropout_disappear():
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Dropout", ["a"], ["b"]),
        helper.make_node("QuantizeLinear", ["b", "s", "z"], ["i"]),
        helper.make_node("DequantizeLinear", ["i", "s", "z"], ["y"]),
    ]
    proto = quantized_model(nodes, {"x": (2, 3)}, {"y": (2, 3)}, QUANT)
    assert [n.op for n in same_results(proto).nodes] == ["Quantize", "Dequantize"]


@pytest.mark.parametrize(("op", "operands", "dtype", "attributes", "text"), [
    ("Concat", "xx", F, {"axis": 3}, "expected an axis from -2 to 1, found 3"),
    ("DepthToSpace", "v", F, {"blocksize": 2},
     "expected channels in blocks of blocksize², found 3 and 2"),
    ("Dropout", "xft", F, {}, "expected training_mode = 0: vdla runs inference, found 1"),
])  # fmt: skip
def test_refusals(op, operands, dtype, attributes, text):
    check_refusal(op, operands, dtype, attributes, text)


@pytest.mark.parametrize(("op", "attributes"), [
    ("SpaceToDepth", {}), ("DepthToSpace", {}), ("DepthToSpace", {"mode": "CRD"}),
])  # fmt: skip
def test_pixels_and_channels(op, attributes):
    agrees(one(op, "x", blocksize=2, **attributes), {"x": real(2, 8, 4, 6)})


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize(("op", "extra", "attributes", "shape", "kept"), [
    ("Transpose", [], {"perm": [2, 0, 1]}, (3, 6, 4), True),
    ("Reshape", ["r"], {}, (6, 2, 2, 3), None),
    ("Reshape", ["r"], {}, (24, 3), None),
    ("Unsqueeze", ["a"], {}, (6, 4, 1, 3), True),
    ("Flatten", [], {"axis": 1}, (6, 12), None),
])  # fmt: skip
def test_what_integers_stand_for_moves_as_integers(op, extra, attributes, shape, kept, axis):
    """Constants alone; where a scale for each channel has no axis left, they stay behind."""
    rng = np.random.default_rng(4)
    size = () if axis is None else ((6, 4, 3)[axis],)
    constants = {
        "w": rng.integers(-99, 99, (6, 4, 3)).astype(np.int8), "r": np.array(shape),
        "a": np.array([2]), "ws": rng.choice([0.25, 0.5], size).astype(F),
        "wz": rng.integers(-9, 9, size).astype(np.int8),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["f"], axis=axis or 0),
        helper.make_node(op, ["f", *extra], ["m"], **attributes),
        helper.make_node("Add", ["x", "m"], ["y"]),
    ]
    graph = same_results(quantized_model(nodes, {"x": shape}, {"y": shape}, {**QUANT, **constants}))
    whole = axis is None or kept or (axis == 0 and shape[0] == 6)
    kinds = [node.op for node in remove_dead(graph).nodes]
    assert kinds == ["Dequantize", *["Reshape"] * (not whole), "Add"]
