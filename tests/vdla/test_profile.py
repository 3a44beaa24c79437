"""Where the time goes: every step, its work, and a timeline."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

import vdla
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, TensorType
from vdla.isa.config import load_config


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


def test_steps_of_the_accelerator_have_a_time_alone(vdla):
    found = vdla("run", "digits", "-c", "tiny", "--profile", "--json").json
    (program,) = (step for step in found["steps"] if step["device"] == "vdla")
    assert (program["operations"], program["gops"], program["of_peak"]) == (None, None, None)
    assert program["seconds"] > 0


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
