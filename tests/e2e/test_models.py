"""Small whole models as users have them: all devices agree, near onnxruntime's numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from qdq import QdqModel

import vdla as api
from vdla.analysis.ort import ort_run
from vdla.isa.config import load_config
from vdla.isa.program import Program
from vdla.sim.checker import check


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


def dynamic(path, *sizes):
    """A quantized model that leaves sizes open, written by ``vdla quantize``'s own path."""
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.standard_normal((8, 4, 3, 3)).astype(np.float32), "w")
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in (("x", sizes), ("y", [None] * 4))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["y"], name="relu"),
    ]
    graph = helper.make_graph(nodes, "open", *ends, [weight])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


@pytest.mark.parametrize("size", ["batch", pytest.param(-1, marks=pytest.mark.long)])
def test_sizes_that_a_model_leaves_open(size, vdla, tmp_path, monkeypatch):
    """``--shape`` on every command; what ``quantize`` wrote is as open as what it read, and notes
    the shape that ``quantize`` was given for where none is."""
    monkeypatch.chdir(tmp_path)
    dynamic("f.onnx", size, 4, 6, 6)
    given = ("--shape", "batch=3" if size == "batch" else "x=3,4,6,6")
    assert vdla("quantize", "f.onnx", "-o", "q.onnx").code == 2
    assert vdla("quantize", "f.onnx", "-o", "q.onnx", *given).code == 0
    np.savez("c.npz", x=np.random.default_rng(0).standard_normal((3, 4, 6, 6)))
    assert vdla("quantize", "f.onnx", "-o", "open.onnx", "--calibration", "c.npz").code == 0
    small, without = ("q.onnx", "-c", "tiny"), ("open.onnx", "-c", "tiny")
    for name, *options in (
        ("compile", "-o", "m.vdla"), ("run",), ("run", "--device", "cpu"), ("run", "--check"),
        ("compare",), ("tune", "--log", "l", "--searcher", "grid", "--trials", "1"),
    ):  # fmt: skip
        done = vdla(name, *without, *options)
        assert done.code == 2
        assert done.err.count("--shape") == done.err.count("\n") == 1
        assert vdla(name, *small, *options, *given).code == 0
        if name in ("run", "compare"):
            assert vdla(name, *small, *options).code == 0
    assert api.load("m.vdla").tensors["x"].shape == (3, 4, 6, 6)
    done = vdla("lockstep", "-c", "tiny", "--model", "q.onnx", *given, "--json")
    assert done.json["mismatches"] == 0
    x = {"x": np.zeros((5, 4, 6, 6), np.float32)}
    (y,) = api.run("q.onnx", x, config="tiny").outputs.values()  # the input's own sizes
    assert y.shape == (5, 8, 4, 4)
    np.savez("x.npz", **x)
    done = vdla("run", *small, "--input", "x.npz", "--json")
    assert [o["shape"] for o in done.json["outputs"].values()] == [[5, 8, 4, 4]]
    module = api.compile("q.onnx", "tiny", shapes={"x": (2, 4, 6, 6)})
    assert module.tensors["x"].shape == (2, 4, 6, 6)


def test_lockstep(saved, vdla):
    done = vdla("lockstep", "-c", "tiny", "--model", saved[0], "--json")
    assert done.code == 0, done.err
    assert done.json["programs"] > 0
    assert done.json["mismatches"] == 0


@pytest.mark.parametrize("config", ["tiny", "paper"])
def test_streams_stay_inside_their_tensors(config):
    """Of a whole network: tensors that share bytes at different times are all in the table."""
    module = api.compile("digits", config)
    tensors = {
        name: (t.offset, t.offset + int(np.prod(t.shape)) * np.dtype(t.dtype).itemsize)
        for name, t in module.tensors.items()
    }
    dram = np.zeros(module.dram_bytes, np.uint8)
    dram[: len(module.constants)] = np.frombuffer(module.constants, np.uint8)
    for raw in module.programs.values():
        program = Program.from_bytes(raw, load_config(config))
        assert check(program.config, program.instructions, dram, program.base, tensors) == []
