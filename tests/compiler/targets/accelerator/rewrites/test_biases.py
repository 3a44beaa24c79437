"""Known residuals by channel: which are, that the numbers stay, and that they load less."""

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

X, Y = (1, 32, 1, 40), (1, 48, 1, 40)
PAPER = load_config("paper")


def network(pixel: int = 0) -> Graph:
    """A layer of vectors and an addition of a constant, one of whose pixels may differ."""
    rng = np.random.default_rng(0)
    addend = np.broadcast_to(rng.integers(-128, 128, (1, 48, 1, 1)), Y).astype(np.int8)
    addend[0, 0, 0, 7] ^= pixel
    constants = {
        "w": rng.integers(-128, 128, (48, 32, 1, 1)).astype(np.int8),
        "b": rng.integers(-3000, 3000, 48).astype(np.int32), "r": addend,
    }  # fmt: skip
    conv = ops.QConv2d(
        name="v", output="v", data="x", weight="w", bias="b", zeros=(5,),
        requant=Requant((0.004,) * 48, -9),
    )  # fmt: skip
    add = ops.QAdd(
        name="y", output="y", a="v", b="r", zeros=(-9, 4), requant=Requant((0.7, 0.9), 2)
    )
    tensors = {name: TensorType(shape, "int8") for name, shape in (("x", X), ("v", Y), ("y", Y))}
    tensors |= {name: TensorType(a.shape, str(a.dtype)) for name, a in constants.items()}
    return verify(Graph(("x",), ("y",), (conv, add), tensors, constants))


@pytest.mark.parametrize("pixel", [0, 1])
def test_an_addend_that_no_pixel_changes_is_kept_by_channel(pixel):
    graph = network(pixel)
    (operator,), _ = accelerator_layers(graph, PAPER, Options())
    assert operator.template.fixed == (pixel == 0)
    inputs = {"x": np.random.default_rng(1).integers(-128, 128, X, np.int8)}
    module = compile_graph(graph, PAPER, Options())
    got = Executor(module, SimDevice(PAPER)).run(inputs).outputs["y"]
    np.testing.assert_array_equal(got, evaluate(graph, inputs)["y"])


@pytest.mark.parametrize(("settings", "most"), [(["alu_groups=1"], 0.95), ([], 1)])
def test_it_takes_fewer_cycles(settings, most):
    """It loads less, but multiplies as often: the gain is large where the ALU is wide."""
    config = load_config("paper", settings)
    cycles = []
    for pixel in (0, 1):
        module = compile_graph(network(pixel), config, Options())
        run = Executor(module, SimDevice(config)).run({"x": np.zeros(X, np.int8)})
        cycles.append(run.cycles)
    assert cycles[0] < most * cycles[1]


def test_a_residual_of_another_shape_is_refused():
    graph = network()
    graph.tensors["s"] = TensorType((1, 24, 1, 1), "int8")
    addition = ops.AddStep(addend="s", zeros=(-9, 0), requant=Requant((1.0, 1.0), 0))
    node = replace(graph.nodes[0], epilogue=(addition,))
    shapes = [graph.tensors[name].shape for name in node.inputs]
    with pytest.raises(ValueError, match="expected an addend of shape"):
        node.result_shape(shapes)
