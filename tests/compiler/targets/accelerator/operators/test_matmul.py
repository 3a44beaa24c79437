"""Products of two images in networks: where their operands lie, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.target import place
from vdla.isa.config import load_config
from vdla.runtime import Executor
from vdla.runtime.devices.sim import SimDevice

PAPER = load_config("paper")


def product(channels, pixels, outputs) -> Graph:
    """A graph of one product."""
    node = QMatMul(
        name="product", output="y", a="a", b="b", zeros=(2, 3), requant=Requant((2.0**-10,), 3)
    )
    shapes = {
        "a": (1, channels, 1, pixels), "b": (1, channels, 1, outputs), "y": (1, outputs, 1, pixels),
    }  # fmt: skip
    tensors = {name: TensorType(shape, "int8") for name, shape in shapes.items()}
    return Graph(("a", "b"), ("y",), (node,), tensors)


@pytest.mark.parametrize(("pixels", "outputs"), [(64, 33), (100, 33), (40, 17), (64, 16)])
def test_the_last_tile_may_end_behind_all_tensors(pixels, outputs):
    """The tensor whose tiles are weights may be the last one in DRAM."""
    graph = product(64, pixels, outputs)
    module = compile_graph(graph, PAPER, Options())
    rng = np.random.default_rng(0)
    inputs = {n: rng.integers(-128, 128, graph.tensors[n].shape, np.int8) for n in graph.inputs}
    result = Executor(module, SimDevice(PAPER)).run(inputs).outputs["y"]
    np.testing.assert_array_equal(result, evaluate(graph, inputs)["y"])


def test_which_products_are_refused():
    def reason(graph, config):
        return place(graph, Options().targets(config))["product"].reason

    assert reason(product(64, 5, 7), PAPER) == "product of two images on int8"
    assert reason(product(20, 5, 7), PAPER) == "20 channels don't end with a block of 16"
    assert reason(product(64, 5, 7), load_config("narrow")) == (
        "pixels are no tiles of weights where blocks differ, 8 and 16"
    )
