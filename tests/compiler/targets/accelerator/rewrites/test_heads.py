"""Heads of features that are no whole blocks."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.transformers import SequenceBuilder
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.heads import pad_heads
from vdla.isa.config import load_config

BLOCK, LENGTH, FEATURES = 8, 5, 24
CAPABILITY = Capability(load_config("tiny", [f"block_in={BLOCK}", f"block_out={BLOCK}"]))


@pytest.fixture(scope="module", params=[12, 6, 8])
def attention(request, tmp_path_factory):
    """Attention with heads of some size, whose queries are scaled before the product."""
    size, path = request.param, tmp_path_factory.mktemp("heads") / "m.onnx"
    x = np.random.default_rng(4).standard_normal((2, LENGTH, FEATURES)).astype(np.float32)
    b = SequenceBuilder("heads", 3, x)
    b.attention("attention", b.linear("first", "input", FEATURES), FEATURES // size)
    quantize_model(b.model("attention.out"), path, b.samples)
    return optimize(import_onnx(path)), size, b.samples[0]


def test_their_blocks_are_filled(attention):
    """The products have whole blocks then, and all results are the same."""
    graph, size, inputs = attention
    padded = pad_heads(graph, CAPABILITY)
    assert (padded is graph) == (size % BLOCK == 0)
    whole = -size % BLOCK + size
    queries = [node.a for node in padded.nodes if node.op == "MatMul"][:1]
    assert [padded.tensors[name].shape[-1] for name in queries] == [whole]
    values, wanted = evaluate(padded, inputs), evaluate(graph, inputs)
    (name,) = graph.outputs
    np.testing.assert_array_equal(values[name], wanted[name])


def test_constant_factors_stay():
    """The columns of a product's weights are no heads: nothing makes them that could be padded."""
    nodes = (
        ops.Dequantize(name="x", output="x", data="q", scale=(0.1,), zero_point=(3,)),
        ops.Dequantize(name="w", output="w", data="c", scale=(0.1,), zero_point=(0,)),
        ops.MatMul(name="y", output="y", a="x", b="w"),
        ops.Quantize(name="z", output="z", data="y", scale=(0.1,), zero_point=(0,)),
        ops.QDense(name="d", output="d", data="z", weight="v", bias="b", zeros=(0,),
                   requant=Requant((0.1,) * 4, 0)),
    )  # fmt: skip
    reals = {"x": (2, 16), "w": (16, 10), "y": (2, 10)}
    integers = {"q": (2, 16), "c": (16, 10), "z": (2, 10), "v": (4, 10), "d": (2, 4)}
    types = {name: TensorType(shape, "float32") for name, shape in reals.items()}
    types |= {name: TensorType(shape, "int8") for name, shape in integers.items()}
    types["b"] = TensorType((4,), "int32")
    constants = {name: np.ones(integers[name], np.int8) for name in "cv"}
    constants["b"] = np.zeros(4, np.int32)
    graph = verify(Graph(("q",), ("d",), nodes, types, constants))
    assert pad_heads(graph, CAPABILITY) is graph
