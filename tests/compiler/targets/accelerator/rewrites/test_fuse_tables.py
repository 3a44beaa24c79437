"""Functions of a convolution's result: which are looked up before it is stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vdla.compiler.build import Options, accelerator_layers, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

PLUS = load_config("paper-plus")
X, Y = (1, 16, 9, 7), (1, 32, 9, 7)


def network(residual=False, outputs=("y",), readers=1, data="v") -> Graph:
    """A convolution, with a residual or without, and tables that read it; or, with another
    ``data``, a table that reads that."""
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.integers(-128, 128, (32, 16, 1, 1)).astype(np.int8),
        "b": rng.integers(-3000, 3000, 32).astype(np.int32),
        "t": rng.integers(-128, 128, 256).astype(np.int8),
    }
    conv = ops.QConv2d(
        name="v", output="v", data="x", weight="w", bias="b", zeros=(5,),
        requant=Requant((0.004,) * 32, -9, -100),
    )  # fmt: skip
    tensors = {"x": TensorType(X, "int8"), "v": TensorType(Y, "int8"), "y": TensorType(Y, "int8")}
    inputs = ["x"]
    if residual:
        addition = ops.AddStep(addend="r", zeros=(-9, 4), requant=Requant((0.7, 1.1), 2))
        conv = replace(conv, epilogue=(addition,))
        inputs.append("r")
        tensors["r"] = TensorType(Y, "int8")
    if data == "x":
        tensors["y"] = TensorType(X, "int8")
    nodes = [conv, ops.QTable(name="y", output="y", data=data, table="t")]
    if readers > 1:
        nodes.append(ops.QTable(name="z", output="z", data="v", table="t"))
        tensors["z"], outputs = TensorType(Y, "int8"), ("y", "z")
    tensors |= {name: TensorType(a.shape, str(a.dtype)) for name, a in constants.items()}
    return verify(Graph(tuple(inputs), outputs, tuple(nodes), tensors, constants))


@pytest.mark.parametrize("residual", [False, True])
def test_a_table_behind_a_convolution_is_looked_up_there(residual):
    graph = network(residual)
    rng = np.random.default_rng(1)
    inputs = {
        name: rng.integers(-128, 128, graph.tensors[name].shape, np.int8) for name in graph.inputs
    }
    want = evaluate(graph, inputs)["y"]
    module = compile_graph(graph, PLUS, Options())
    kind = "QConv2d+Add+Table" if residual else "QConv2d+Table"
    assert [layer["op"] for layer in module.metadata["layers"]] == [kind]
    got = Executor(module, SimDevice(PLUS)).run(inputs).outputs["y"]
    np.testing.assert_array_equal(got, want)
    (reason,) = {each["reason"] for each in module.metadata["placement"] if each["op"] == kind}
    assert reason.endswith("and function of its result on int8")


@pytest.mark.parametrize(
    "changes", [{"outputs": ("y", "v")}, {"readers": 2}, {"outputs": ("y", "v"), "data": "x"}],
    ids=str,
)  # fmt: skip
def test_tables_of_what_others_read_stay(changes):
    operators, _ = accelerator_layers(network(**changes), PLUS, Options())
    assert {operator.node.op for operator in operators} == {"QConv2d", "QTable"}


def test_a_config_without_tables_leaves_them_to_the_host():
    operators, placements = accelerator_layers(network(), load_config("paper"), Options())
    assert [operator.node.op for operator in operators] == ["QConv2d"]
    assert "no tables" in placements["y"].reason
