"""Samples that fit a network's inputs, and those that don't."""

from __future__ import annotations

import re

import numpy as np
import pytest

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import TensorType
from vdla.compiler.models.measuring import check_samples, measuring

INPUTS = {
    "x": TensorType((2, 3), "float32"),
    "n": TensorType((2, 1), "int64"),
    "half": TensorType((), "float32"),
}


def network():
    nodes = (
        ops.Cast(name="real", output="real", data="n"),
        ops.Binary(name="p", output="p", a="x", b="real", function="mul"),
        ops.Binary(name="y", output="y", a="p", b="half", function="mul"),
    )
    tensors = {
        **INPUTS,
        "real": TensorType((2, 1), "float32"),
        "p": TensorType((2, 3), "float32"),
        "y": TensorType((2, 3), "float32"),
    }
    return verify(Graph(tuple(INPUTS), ("y",), nodes, tensors))


def given(**others):
    """Two batches of samples, one behind another."""
    arrays = {
        "x": np.arange(12.0).reshape(4, 3),
        "n": np.array([[1], [2], [3], [-4]]),
        "half": np.array([0.5, 0.25]),
    }
    return {**arrays, **others}


def test_batches_are_run_one_after_another_and_progress_is_shown():
    steps = []
    ends = measuring(given(), lambda *step: steps.append(step))(network())
    assert ends["x"] == (0.0, 11.0)
    assert ends["real"] == (-4.0, 3.0)
    assert ends["y"] == (-11.0, 6.0)  # -4 * 11 * 0.25, and 3 * 8 * 0.25
    assert steps == [("calibration", 0, 2), ("calibration", 1, 2)]


def test_a_graph_of_other_inputs_is_not_measured():
    assert measuring({"z": np.zeros((2, 3))}, lambda *step: None)(network()) == {}
    assert measuring(given(x=np.zeros((4, 5))), lambda *step: None)(network()) == {}


@pytest.mark.parametrize(("others", "line"), [
    ({"x": np.zeros((4, 5))},
     "m.onnx: expected x of shape [samples, 3] and at least 2 samples, the model's batch, "
     "found [4, 5]"),
    ({"x": np.zeros((1, 3))},
     "m.onnx: expected x of shape [samples, 3] and at least 2 samples, the model's batch, "
     "found [1, 3]"),
    ({"n": np.full((4, 1), 0.5)},
     "m.onnx: expected whole numbers in n, which is int64, found others"),
    ({"half": np.zeros(3)}, "m.onnx: expected 2 batches of half, found 3"),
    ({"z": np.zeros(3)}, "m.onnx: expected samples of the model's inputs, x, n, half, found z"),
])  # fmt: skip
def test_samples_that_do_not_fit_are_an_error_of_one_line(others, line):
    with pytest.raises(ModelError, match=re.escape(line)):
        check_samples("m.onnx", given(**others), network())


def test_an_input_without_samples_is_an_error():
    arrays = given()
    del arrays["n"]
    with pytest.raises(ModelError, match=r"m.onnx: expected an array called n, found x, half"):
        check_samples("m.onnx", arrays, network())
