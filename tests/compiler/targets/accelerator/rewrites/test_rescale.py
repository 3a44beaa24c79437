"""Tables that give the scale of a concatenation: which do, and that the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Quant, Requant, TensorType
from vdla.compiler.targets.accelerator.rewrites.rescale import rescale_tables
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

PLUS = load_config("paper-plus")
SHAPE = 1, 16, 16, 16


def network(outputs=("y",), low=-128) -> Graph:
    """Two tables of one input, one behind another, and a reader; all 256 values come in."""
    rng = np.random.default_rng(0)
    constants = {f"t{n}": rng.integers(-128, 128, 256).astype(np.int8) for n in range(2)}
    tables = [ops.QTable(name=f"p{n}", output=f"p{n}", data="x", table=f"t{n}") for n in range(2)]
    requant = Requant((1.0, 0.53), -119, low)
    joined = ops.QConcat(
        name="j", output="j", parts=("p0", "p1"), axis=1, zeros=(-119, 7), requant=requant
    )
    last = ops.QClip(name="y", output="y", data="j", zeros=(3,), requant=Requant((0.9,), -4))
    shapes = {"x": SHAPE, "p0": SHAPE, "p1": SHAPE, "j": (1, 32, 16, 16), "y": (1, 32, 16, 16)}
    tensors = {name: TensorType(shape, "int8") for name, shape in shapes.items()}
    tensors["j"] = TensorType(shapes["j"], "int8", Quant(0.5, -119))
    tensors.update((name, TensorType((256,), "int8")) for name in constants)
    return verify(Graph(("x",), outputs, (*tables, joined, last), tensors, constants))


def test_a_table_rounds_twice():
    graph = network()
    after = verify(rescale_tables(graph))
    assert after.node("j").requant.scale == (1.0, 1.0)
    assert after.node("j").zeros == (-119, -119)
    assert after.node("p0") == graph.node("p0")
    assert after.node("p1").table == "p1.rescaled"
    assert after.tensors["p1"].quant == Quant(0.5, -119)
    inputs = {"x": np.arange(4096).astype(np.int8).reshape(SHAPE)}
    want = evaluate(graph, inputs)["y"]
    np.testing.assert_array_equal(evaluate(after, inputs)["y"], want)
    for vthreads in (1, 2):
        module = compile_graph(graph, PLUS, Options(vthreads=vthreads))
        got = Executor(module, SimDevice(PLUS)).run(inputs).outputs["y"]
        np.testing.assert_array_equal(got, want)
        layers = [layer["name"] for layer in module.metadata["layers"]]
        assert layers == ["p0", "p1", "y"]  # no copy


@pytest.mark.parametrize("changes", [{"outputs": ("y", "p1")}, {"low": -100}], ids=str)
def test_other_tables_stay(changes):
    graph = network(**changes)
    assert rescale_tables(graph).nodes == graph.nodes


def test_a_table_stays_that_others_read():
    graph = network()
    more = ops.QClip(name="z", output="z", data="p1", zeros=(3,), requant=Requant((0.9,), -4))
    graph = graph.copy((*graph.nodes, more), {"z": TensorType(SHAPE, "int8")})
    graph.outputs = ("y", "z")
    assert rescale_tables(graph).nodes == graph.nodes
