"""Scores: what outputs are worth beside the floats', or beside labels."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.models.calibration import Arrays
from vdla.compiler.models.scoring import MOST_DECIBELS, SignalToNoise, Task, metric_of


def scaled(*factors):
    """A model whose outputs y0, y1 … are its input times factors."""
    nodes = [helper.make_node("Mul", ["x", f"f{n}"], [f"y{n}"]) for n in range(len(factors))]
    shape = (2, 3)
    return helper.make_model(
        helper.make_graph(
            nodes, "scaled", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [
                helper.make_tensor_value_info(f"y{n}", TensorProto.FLOAT, shape)
                for n in range(len(factors))
            ],
            [numpy_helper.from_array(np.float32(f), f"f{n}") for n, f in enumerate(factors)],
        ),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
    )  # fmt: skip


@pytest.fixture
def samples():
    data = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    return Arrays({"x": data}, {"x": (2, 3)}, "test")


def test_the_output_that_loses_most_counts(samples):
    score = SignalToNoise(scaled(1.0, 1.0), samples)
    assert score(scaled(1.0, 1.0)) == MOST_DECIBELS
    assert score(scaled(1.0, 1.1)) == pytest.approx(20, abs=0.01)
    assert score(scaled(1.01, 1.1)) == pytest.approx(20, abs=0.01)


def test_the_share_of_right_classes(samples):
    labels = np.argmax(samples.arrays["x"], axis=1)
    labels[0] = (labels[0] + 1) % 3
    assert Task(samples, labels)(scaled(2.0)) == pytest.approx(80)


def test_a_function_of_the_users_sees_every_sample_once(samples):
    def total(outputs, labels):
        assert labels.shape == (5, 2, 2)
        np.testing.assert_allclose(outputs["y0"], 3 * samples.arrays["x"], rtol=1e-6)
        return outputs["y0"].shape[0]

    task = Task(samples, np.zeros((5, 2, 2)), total)
    assert task.unit == "total"
    assert task(scaled(3.0)) == 5


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda outputs, labels: outputs["z"], "found KeyError: 'z'"),
        (lambda outputs, labels: float("nan"), "found nan"),
        (lambda outputs, labels: "many", "found ValueError"),
    ],
)
def test_functions_that_do_not_work(function, said, samples):
    with pytest.raises(ModelError, match=f"expected a number of the function --score, {said}"):
        Task(samples, np.zeros(5), function)(scaled(1.0))


def test_functions_in_files(tmp_path):
    path = tmp_path / "metrics.py"
    path.write_text("def miou(outputs, labels):\n    return 0.5\nWIDTH = 3\n")
    assert metric_of(f"{path}:miou")({}, np.zeros(1)) == 0.5
    for text, said in (
        (f"{path}:WIDTH", "a class or a function WIDTH, found only miou"),
        (f"{path}:", "found no name behind a colon"),
        (f"{tmp_path / 'none.py'}:miou", "a file of Python, found no file"),
    ):
        with pytest.raises(ModelError, match=said):
            metric_of(text)
