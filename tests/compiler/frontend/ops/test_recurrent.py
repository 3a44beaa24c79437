"""Recurrent layers: step by step, as onnxruntime computes them."""

from __future__ import annotations

import pytest
from onnx import helper
from onnx_operators import agrees, real


@pytest.mark.parametrize("way", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_layers(op, gates, way):
    steps, batch, size, hidden, sides = 4, 2, 3, 5, 2 if way == "bidirectional" else 1
    constants = {
        "w": real(sides, gates * hidden, size), "r": real(sides, gates * hidden, hidden),
        "b": real(sides, 2 * gates * hidden),
    }  # fmt: skip
    x = {"x": real(steps, batch, size), "h": real(sides, batch, hidden)}
    names, results = ["x", "w", "r", "b", "", "h"], ["y", "last"]
    settings = {"linear_before_reset": 1} if op == "GRU" else {}
    if op == "LSTM":
        x["c"], constants["p"] = real(sides, batch, hidden), real(sides, 3 * hidden)
        names, results = [*names, "c", "p"], [*results, "cell"]
    node = helper.make_node(op, names, results, hidden_size=hidden, direction=way, **settings)
    agrees([node], x, constants, tuple(results), opset=14)
