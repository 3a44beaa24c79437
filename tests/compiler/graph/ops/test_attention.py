"""Attention as one operator: its parts by name, and their numbers."""

from __future__ import annotations

import numpy as np
from nodes import run_kernel

from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.numbers import f32
from vdla.compiler.graph.ops.attention import QAttention
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType

SCORES = {"zeros": (3, -7), "requant": Requant((f32(0.005),), 5)}
SHARES = {"step": f32(0.04), "zeros": (0,), "requant": Requant((f32(1 / 256),), -128)}
MIXED = {"zeros": (-128, 9), "requant": Requant((f32(0.006),), -9)}
PARTS = (
    QMatMul(name="s", output="s", a="k", b="q", **SCORES),
    QSoftmax(name="p", output="p", data="s", **SHARES),
    QTransposeImage(name="t", output="t", data="p"),
    QMatMul(name="y", output="y", a="t", b="v", **MIXED),
)
SHAPES = {
    "k": (2, 16, 1, 9), "q": (2, 16, 1, 6), "v": (2, 9, 1, 12), "s": (2, 6, 1, 9),
    "p": (2, 6, 1, 9), "t": (2, 9, 1, 6), "y": (2, 12, 1, 6),
}  # fmt: skip
TYPES = {name: TensorType(shape, "int8") for name, shape in SHAPES.items()}
NODE = QAttention(name="n", output="y", operands=("k", "q", "v"), parts=PARTS)


def test_its_parts():
    assert NODE.op == "QAttention"
    assert (NODE.scores, NODE.shares, NODE.mixed) == (PARTS[0], PARTS[1], PARTS[3])
    assert NODE.inner_tensors == ("s", "p", "t")


def test_numbers_are_those_of_its_parts():
    rng = np.random.default_rng(2)
    x = {name: rng.integers(-128, 128, SHAPES[name]).astype(np.int8) for name in "kqv"}
    wanted = evaluate(verify(Graph(tuple("kqv"), ("y",), PARTS, TYPES)), x)["y"]
    graph = Graph(tuple("kqv"), ("y",), (NODE,), TYPES)
    np.testing.assert_array_equal(evaluate(graph, x)["y"], wanted)
    np.testing.assert_array_equal(run_kernel(graph, NODE, x), wanted)
