"""Where the time goes: every step, its work, and a timeline."""

from __future__ import annotations

import json
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import vdla
from vdla import api
from vdla.analysis import profile
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.processor import peak
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.isa.config import load_config
from vdla.options import Run


def test_every_step_has_its_share(vdla):
    done = vdla("run", "digits", "--device", "cpu", "--threads", 1, "--profile", "--json")
    found = done.json
    names = [step["name"] for step in found["steps"]]
    assert "conv1" in names
    assert sum(step["share"] for step in found["steps"]) == pytest.approx(1)
    assert found["threads"] == 1
    assert found["peaks"]["float32"] > 0.1
    conv = found["steps"][names.index("conv1")]
    assert conv["op"] == "QConv2d"
    assert conv["operations"] > 1000
    assert conv["gops"] == pytest.approx(conv["operations"] / conv["seconds"] / 1e9)


def test_a_table(vdla):
    done = vdla("run", "digits", "--device", "cpu", "--profile")
    assert "of peak" in done.out
    assert "Gop/s of float32" in done.out


def test_a_simulated_accelerator_has_cycles_and_no_time(vdla):
    """How long its simulation takes is no part of the host's time."""
    found = vdla("run", "digits", "-c", "tiny", "--profile", "--json").json
    (program,) = (step for step in found["steps"] if step["device"] == "vdla")
    assert (program["operations"], program["gops"], program["of_peak"]) == (None, None, None)
    assert (program["seconds"], program["share"]) == (None, None)
    assert program["cycles"] == vdla("run", "digits", "-c", "tiny", "--json").json["cycles"] / 360
    host = [step for step in found["steps"] if step["device"] != "vdla"]
    assert sum(step["share"] for step in host) == pytest.approx(1)
    assert all(step["cycles"] is None for step in host)
    told = vdla("run", "digits", "-c", "tiny", "--profile").out
    assert "the accelerator is simulated: its steps have cycles, and no share of the time" in told


def test_an_accelerator_that_is_there_has_its_time(monkeypatch):
    """On a board the seconds are the board's."""
    module = vdla.compile("digits", "tiny")
    ready, _ = api.prepare(module, Run())
    monkeypatch.setattr(type(ready.device), "name", "board")
    found = profile.profile(ready, api.random_inputs(module), runs=2)
    assert sum(step.share for step in found.steps) == pytest.approx(1)


def test_calls_are_no_part_of_the_peak(monkeypatch):
    """A core that does two vectors a cycle at 4 GHz, where calling a function takes 10 µs."""
    clock = SimpleNamespace(now=0.0)

    def jit(funcs):
        (func,) = funcs
        out = func.params[-1]

        def run(*arrays):
            clock.now += 10e-6 + out.shape[0] * peak.STEPS / (2 * 4e9)

        return {"peak": run}

    monkeypatch.setattr(peak.llvm, "jit", jit)
    monkeypatch.setattr(peak.time, "perf_counter", lambda: clock.now)
    lanes = NATIVE.vectors.lanes
    for dtype, most in (("float32", 2 * lanes * 8e9), ("int8", 4 * 2 * lanes * 8e9)):
        assert 0.97 * most < peak.peak(dtype) <= most


def test_no_layer_is_faster_than_the_peak():
    """An int8 product that fills the lanes; several looks, since others work on the machine."""
    node = ops.QDense(
        name="d",
        output="y",
        data="x",
        weight="w",
        bias="b",
        zeros=(0,),
        requant=Requant((0.01,) * 512, 0),
    )
    rng = np.random.default_rng(0)
    values = {"w": rng.integers(-128, 128, (512, 512)).astype(np.int8),
              "b": np.zeros(512, np.int32)}  # fmt: skip
    kinds = {"x": "int8", "y": "int8", "w": "int8", "b": "int32"}
    shapes = {"x": (512, 512), "y": (512, 512), "w": (512, 512), "b": (512,)}
    tensors = {n: TensorType(shapes[n], kinds[n]) for n in kinds}
    graph = verify(Graph(("x",), ("y",), (node,), tensors, values))
    module = compile_graph(graph, load_config("paper"), Options(device="cpu"))
    found = [vdla.profile(module, device="cpu", threads=1).steps[0].of_peak for _ in range(3)]
    assert 0 < min(found) <= 1


def test_a_timeline_of_host_steps(vdla, tmp_path):
    path = tmp_path / "t.json"
    vdla("run", "digits", "--device", "cpu", "--trace", path)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    assert "conv1" in [e["name"] for e in events]
    for one, following in pairwise(events):
        assert following["ts"] == pytest.approx(one["ts"] + one["dur"])


def work(node, *shapes, result):
    return node.work(shapes, result)


def test_what_operators_take():
    conv = ops.Conv2d(name="c", output="y", data="x", weight="w", groups=2)
    assert work(conv, (1, 8, 6, 6), (4, 4, 3, 3), result=(1, 4, 4, 4)) == 2 * 4 * 16 * 4 * 9
    product = ops.MatMul(name="m", output="y", a="a", b="b")
    assert work(product, (3, 4, 5), (5, 6), result=(3, 4, 6)) == 2 * 3 * 4 * 5 * 6
    einsum = ops.Einsum(name="e", output="y", parts=("a", "b"), equation="ij,jk->ik")
    assert work(einsum, (4, 5), (5, 6), result=(4, 6)) == 2 * 4 * 5 * 6
    pool = ops.MaxPool(name="p", output="y", data="x", kernel=(3, 2))
    assert work(pool, (1, 2, 6, 6), result=(1, 2, 4, 5)) == 2 * 20 * 6
    mean = ops.Reduce(name="r", output="y", data="x", function="mean", axes=(1,))
    assert work(mean, (4, 7), result=(4, 1)) == 28
    assert work(ops.Relu(name="z", output="y", data="x"), (4, 7), result=(4, 7)) == 28


def test_a_function_of_several_operators_takes_what_they_take():
    values = {"w": np.zeros((8, 6), np.float32), "b": np.zeros(6, np.float32)}
    shapes = {"x": (5, 8), "w": (8, 6), "b": (6,), "y": (5, 6), "z": (5, 6)}
    nodes = (
        ops.MatMul(name="m", output="y", a="x", b="w"), ops.Add(name="a", output="z", a="y", b="b"),
    )  # fmt: skip
    tensors = {name: TensorType(shape, "float32") for name, shape in shapes.items()}
    graph = verify(Graph(("x",), ("z",), nodes, tensors, values))
    module = compile_graph(graph, load_config("paper"), Options(device="cpu"))
    assert module.metadata["work"] == {"m": 2 * 5 * 8 * 6 + 30}
    found = vdla.profile(module, device="cpu")
    assert [step.operations for step in found.steps] == [510]
