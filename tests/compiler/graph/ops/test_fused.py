"""Operators in a row as one function: what it reads, its name, and that numbers stay."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import RNG, run_kernel

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.fused import fuse
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType

PARTS = (
    ops.Dequantize(name="d", data="x", output="r", scale=(0.5,), zero_point=(3,)),
    ops.Add(name="a", a="r", b="o", output="s"),
    ops.Relu(name="u", data="s", output="y"),
)
REAL = TensorType((2, 3, 4), "float32")
TYPES = {"x": TensorType(REAL.shape, "int8"), "o": REAL, "r": REAL, "s": REAL, "y": REAL}


def test_it_reads_what_none_of_its_parts_writes():
    node = fuse(PARTS, "all")
    assert (node.inputs, node.inner_tensors, node.output) == (("x", "o"), ("r", "s"), "y")
    assert node.op == "Dequantize"  # which is no mere move
    assert fuse(PARTS[1:], "all").op == "Add"


def test_other_names():
    node = fuse(PARTS, "all").renamed({"o": "q", "x": "p"}).writing("z")
    assert (node.inputs, node.output) == (("p", "q"), "z")
    assert (node.parts[0].data, node.parts[1].b, node.parts[2].output) == ("p", "q", "z")


def test_numbers_are_those_of_its_parts():
    node = fuse(PARTS, "all")
    together = Graph(("x", "o"), ("y",), (node,), TYPES)
    apart = verify(Graph(("x", "o"), ("y",), PARTS, TYPES))
    x = {
        "x": RNG.integers(-128, 128, REAL.shape).astype(np.int8),
        "o": RNG.standard_normal(REAL.shape).astype(np.float32),
    }
    wanted = evaluate(apart, x)["y"]
    np.testing.assert_array_equal(evaluate(together, x)["y"], wanted)
    np.testing.assert_array_equal(run_kernel(together, node, x), wanted)
    with pytest.raises(NotImplementedError):  # its inner tensors' types are the graph's
        node.evaluate([x["x"], x["o"]], REAL)
