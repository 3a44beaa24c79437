"""Elementwise maximum: the accelerator and the reference agree."""

import numpy as np
import pytest

from vdla import api
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.maximum import QMaximum
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.isa.config import load_config


@pytest.mark.parametrize("scales", [(0.7, 0.7), (0.7, 1.3)])
def test_maximum(scales):
    requant = Requant(scales, 1)
    node = QMaximum(name="most", output="y", a="a", b="b", zeros=(3, -8), requant=requant)
    kind = TensorType((1, 5, 3, 4), "int8")
    graph = Graph(("a", "b"), ("y",), (node,), dict.fromkeys("aby", kind))
    rng = np.random.default_rng(0)
    inputs = {name: rng.integers(-128, 128, kind.shape, np.int8) for name in "ab"}
    module = compile_graph(graph, load_config("tiny"), Options())
    (placed,) = (row for row in module.metadata["placement"] if row["name"] == "most")
    assert (placed["device"], placed["reason"]) == ("vdla", "maximum on int8")
    result = api.run(module, inputs).outputs["y"]
    np.testing.assert_array_equal(result, evaluate(graph, inputs)["y"])
