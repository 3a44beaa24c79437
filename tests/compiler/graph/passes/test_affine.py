"""Sums and products with constants of floats: of images by channel, of layers by feature."""

from __future__ import annotations

import numpy as np
import pytest
from qdq import QdqModel

from vdla.compiler.build import rewritten_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.passes.affine import spell_affine
from vdla.compiler.graph.passes.spellings import respell
from vdla.compiler.graph.reference import evaluate
from vdla.isa.config import load_config

SHAPE, IMAGE = (1, 6, 16), (1, 16, 6, 5)
PER_FEATURE = np.random.default_rng(1).normal(0, 0.6, 16)
PER_CHANNEL = PER_FEATURE.reshape(16, 1, 1)


def network(constant, *, op="Add", end="Quantize", image=False, swapped=False, zero=0):
    """A quantized product, or an image, and a constant of floats. ``end`` reads the result; the
    product is cut at one end where ``zero`` is no middle."""
    m, shape = QdqModel(5), IMAGE if image else SHAPE
    y = m.input("x", shape, 0.03)
    step = 0.03
    if not image:
        weight, scales = m.weight("w", (16, 16), per_channel=False)
        y = m.node("MatMul", [y, weight], shape)
        step = float(np.float32(0.03 * scales[0] * 250))
        y = m.quantized(y, step, zero)
    operands = [y, m.constant("c", constant.astype(np.float32))]
    z = m.node(op, operands[::-1] if swapped else operands, shape)
    if end == "Quantize":
        z = m.quantized(z, step, 3)
    if end == "Add":
        z = m.node("Add", [z, "x"], shape)
    m.output(z)
    if end == "both":
        m.output(m.quantized(z, step, 0))
    return import_model(m.model()), step


def results(*graphs):
    """What graphs compute of one input, which goes beyond the ends of the quantization."""
    shape = graphs[0].tensors["x"].shape
    x = {"x": np.random.default_rng(2).normal(0, 3, shape).astype(np.float32)}
    return [evaluate(graph, x)[graph.outputs[0]] for graph in graphs]


def kinds(graph):
    return [node.op for node in optimize(graph).nodes]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
def test_constants_of_channels_are_batch_norms(op, swapped):
    """A sum rounds as the file's: ties alone may differ, and there are none here."""
    graph, _ = network(PER_CHANNEL, op=op, image=True, swapped=swapped)
    made = spell_affine(graph)
    assert kinds(made).count("QBatchNorm") == 1
    result, wanted = results(optimize(made), graph)
    np.testing.assert_array_equal(result, wanted)
    assert len(np.unique(wanted)) > 50


@pytest.mark.parametrize(
    "left",
    [
        network(PER_CHANNEL, image=True, end="nothing")[0],
        network(PER_CHANNEL, image=True, end="both")[0],
        network(PER_CHANNEL, image=True, end="Add")[0],
        network(PER_CHANNEL, image=True, op="Div")[0],
        network(np.ones((1, 1, 1)), image=True)[0],
        network(np.ones((16, 6, 1)), image=True)[0],
        network(np.ones(5), image=True)[0],
        network(PER_FEATURE)[0],
    ],
    ids=[
        "an output reads it", "an output reads it, too", "a sum of floats reads it", "a quotient",
        "one number", "one for each row", "one for each column", "of a sequence",
    ],
)  # fmt: skip
def test_others_stay(left):
    assert spell_affine(left) is left


@pytest.mark.parametrize(
    ("op", "kind", "zero"),
    [
        ("Mul", "QMultiply", 0),
        *((op, "QAdd", zero) for op in ("Add", "Sub") for zero in (0, -128, 127)),
    ],
)
def test_constants_of_features_are_integers(op, kind, zero):
    """The product keeps its quantization: results are the file's, within a step and for the most
    part the same, where the product is cut at 0, too."""
    graph, step = network(PER_FEATURE, op=op, zero=zero)
    made = optimize(respell(graph))
    names = [node.op for node in made.nodes]
    assert "QDense" in names
    assert kind in names or "QConv2d+Add" in names
    assert not [node for node in made.nodes if isinstance(node, ops.Add | ops.Binary)]
    result, wanted = results(made, graph)
    gap = np.rint(np.abs(result - wanted) / step)
    assert gap.max() <= 1
    assert gap.mean() < 0.2
    assert len(np.unique(wanted)) > 20


@pytest.mark.parametrize(
    "left",
    [
        network(PER_FEATURE, end="nothing")[0],
        network(PER_FEATURE, end="both")[0],
        network(PER_FEATURE, end="Add")[0],
        network(PER_FEATURE, op="Div")[0],
        network(PER_FEATURE * 1000)[0],
        network(PER_FEATURE * 1000, op="Mul")[0],
        network(np.ones((1, 6, 1)) * PER_FEATURE, op="Mul")[0],
        network(np.array(2.0))[0],
    ],
    ids=[
        "an output reads it", "an output reads it, too", "a sum of floats reads it", "a quotient",
        "too coarse in int8", "too coarse a factor", "of each vector another", "one number",
    ],
)  # fmt: skip
def test_constants_of_floats_stay_floats(left):
    assert respell(left) is left


def test_a_product_that_a_file_quantizes_runs_on_the_accelerator():
    """Where floats follow it, too: the usual recipe for transformers quantizes products alone."""
    graph, _ = network(PER_FEATURE, end="Add")
    rewritten, placements = rewritten_graph(graph, load_config("paper-full"))
    assert [p.device for p in placements.values() if p.reason == "convolution on int8"] == ["vdla"]
    ours, theirs = results(rewritten, graph)  # whose floats add up in the processor's own order
    assert np.count_nonzero(ours != theirs) <= 1  # a tie
    np.testing.assert_allclose(ours, theirs, atol=0.02)
