"""Functions of float32 in numpy against onnxruntime's."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from vdla.analysis.ort import ort_run
from vdla.compiler.graph.ops import approximations

COUNT = 1 << 16


@pytest.mark.parametrize(
    ("op", "function", "apart"),
    [
        ("Sigmoid", approximations.sigmoid, 1e-4),  # now and then its last step rounds otherwise
        ("Tanh", approximations.tanh, 0.0),
        ("Erf", approximations.erf, 0.0),
    ],
)
def test_the_bits_are_onnxruntimes(op, function, apart):
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            rng.uniform(-20, 20, COUNT),
            rng.normal(0, 1, COUNT),
            rng.normal(0, 1e-3, COUNT),
            [0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30, np.inf, -np.inf],
        ]
    ).astype(np.float32)
    node = helper.make_node(op, ["x"], ["y"])
    ends = [helper.make_tensor_value_info(name, 1, x.shape) for name in "xy"]
    graph = helper.make_graph([node], "one", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    want = ort_run(model, {"x": x}, fuse=False)["y"]
    got = function(x)
    assert np.mean(got != want) <= apart
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
