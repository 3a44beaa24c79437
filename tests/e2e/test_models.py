"""Small whole models as users have them: every device gives the same, near onnxruntime's numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

import vdla as api
from vdla.compiler.graph.compare import ort_run
from vdla.compiler.models.qdq import QdqModel


def mlp() -> QdqModel:
    """A vector into two dense layers."""
    m = QdqModel(seed=1)
    m.output(m.dense(m.dense(m.input("x", (1, 100)), 40), 10))
    return m


def tanh_head() -> QdqModel:
    """Linear, Tanh in float, Linear."""
    m = QdqModel(seed=2)
    x = m.dense(m.input("x", (3, 24)), 33)
    x = m.quantized(m.node("Tanh", [x], m.shapes[x]), 0.0075)
    m.output(m.dense(x, 5))
    return m


def halved() -> QdqModel:
    """A quantized scalar operand: ``x * 0.5``."""
    m = QdqModel(seed=3)
    x = m.dense(m.input("x", (2, 16)), 16)
    half = m.constant("half", np.array(100, np.int8))
    scale = m.constant("half.scale", np.array(0.005, np.float32))
    c = m.node("DequantizeLinear", [half, scale], ())
    x = m.quantized(m.node("Mul", [x, c], m.shapes[x]), 0.5 * m.scales[x])
    m.output(m.dense(x, 8))
    return m


MODELS: dict[str, Callable[[], QdqModel]] = {"mlp": mlp, "tanh": tanh_head, "halved": halved}


@pytest.fixture(params=MODELS)
def saved(request, tmp_path):
    """A model's file, an input, and onnxruntime's output."""
    proto = MODELS[request.param]().model()
    path = tmp_path / f"{request.param}.onnx"
    onnx.save(proto, path)
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    x = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    (want,) = ort_run(proto, x).values()
    return path, x, want


def test_devices_agree(saved, vdla):
    path, x, want = saved
    (on_sim,) = api.run(path, x, config="tiny").outputs.values()
    (on_cpu,) = api.run(path, x, device="cpu").outputs.values()
    np.testing.assert_array_equal(on_sim, on_cpu)
    step = np.diff(np.unique(want)).min()
    assert np.abs(on_sim - want).max() <= 1.01 * step


def test_commands_take_it(saved, vdla, tmp_path):
    path, _, _ = saved
    assert vdla("compile", path, "-c", "tiny", "-o", tmp_path / "m.vdla").code == 0
    assert vdla("run", tmp_path / "m.vdla").code == 0
    assert vdla("run", path, "-c", "tiny", "--check").code == 0
    assert vdla("compare", path, "-c", "tiny", "--out", tmp_path / "out").code == 0


def test_lockstep(saved, vdla):
    done = vdla("lockstep", "-c", "tiny", "--model", saved[0], "--json")
    assert done.code == 0, done.err
    assert done.json["programs"] > 0
    assert done.json["mismatches"] == 0
