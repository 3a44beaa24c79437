"""Attention as one operator: of which chains it is made, and that the numbers stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vdla.compiler.build import Options, accelerator_layers, compile_graph
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.numbers import f32
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

FULL = load_config("paper-full")
KINDS = ["QTransposeImage", "QMatMul", "QSoftmax", "QTransposeImage", "QMatMul"]


def network(outputs=("y",)) -> Graph:
    """Two heads; the values come with their channels in lanes, and ``w`` has their keys there."""
    nodes = (
        QTransposeImage(name="w", output="w", data="v"),
        QMatMul(
            name="s", output="s", a="k", b="q", zeros=(3, -7), requant=Requant((f32(0.005),), 5)
        ),
        QSoftmax(
            name="p",
            output="p",
            data="s",
            step=f32(0.04),
            zeros=(0,),
            requant=Requant((f32(1 / 256),), -128),
        ),
        QTransposeImage(name="t", output="t", data="p"),
        QMatMul(
            name="y", output="y", a="t", b="w", zeros=(-128, 9), requant=Requant((f32(0.006),), -9)
        ),
    )
    shapes = {
        "k": (2, 32, 1, 21), "q": (2, 32, 1, 18), "v": (2, 24, 1, 21),
        "w": (2, 21, 1, 24), "s": (2, 18, 1, 21), "p": (2, 18, 1, 21), "t": (2, 21, 1, 18),
        "y": (2, 24, 1, 18),
    }  # fmt: skip
    tensors = {name: TensorType(shape, "int8") for name, shape in shapes.items()}
    return verify(Graph(("k", "q", "v"), outputs, nodes, tensors, {}))


def kinds(graph: Graph, config=FULL) -> list[str]:
    operators, _ = accelerator_layers(graph, config, Options())
    return [operator.node.op for operator in operators]


@pytest.mark.parametrize("vthreads", [1, 2])
def test_scores_shares_and_what_they_take_are_one(vthreads):
    graph, rng = network(), np.random.default_rng(0)
    inputs = {n: rng.integers(-128, 128, graph.tensors[n].shape, np.int8) for n in graph.inputs}
    module = compile_graph(graph, FULL, Options(vthreads=vthreads))
    assert [layer["op"] for layer in module.metadata["layers"]] == ["QTransposeImage", "QAttention"]
    got = Executor(module, SimDevice(FULL)).run(inputs).outputs["y"]
    np.testing.assert_array_equal(got, evaluate(graph, inputs)["y"])
    (reason,) = {p["reason"] for p in module.metadata["placement"] if p["op"] == "QAttention"}
    assert reason == "attention on int8"


@pytest.mark.parametrize("between", ["s", "p", "t"])
def test_what_others_read_stays(between):
    assert kinds(network(outputs=("y", between))) == KINDS


def test_a_config_without_the_way_to_inp_has_its_parts():
    assert kinds(network(), replace(FULL, forwarding=0)) == KINDS
