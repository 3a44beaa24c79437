"""A node on the accelerator, on the processor and in numpy."""

from __future__ import annotations

import numpy as np

from vdla import api
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType


def check(node, inputs, constants, kind, config):
    """Compiles a node for the accelerator and the processor, and compares both with numpy."""
    arrays = {**inputs, **constants}
    tensors = {name: TensorType(a.shape, str(a.dtype)) for name, a in arrays.items()}
    graph = Graph(tuple(inputs), ("y",), (node,), {**tensors, "y": kind}, constants)
    wanted = evaluate(graph, inputs)["y"]
    for device in ("vdla", "cpu"):
        module = compile_graph(graph, config, Options(device=device))
        (row,) = (row for row in module.metadata["placement"] if row["name"] == "n")
        assert row["device"] == device
        np.testing.assert_array_equal(api.run(module, inputs).outputs["y"], wanted)
    return wanted
