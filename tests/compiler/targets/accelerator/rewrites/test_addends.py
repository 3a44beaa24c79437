"""Addends and factors of dense layers that nothing quantizes."""

from __future__ import annotations

import numpy as np
import pytest
from qdq import QdqModel

from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.accelerator.rewrites.addends import fold_addends

SHAPE = (1, 6, 16)


def network(addend, *, op="Add", quantized=True, twice=False):
    """A product, quantized or not, and its addend or factor."""
    m = QdqModel(5)
    x = m.input("x", SHAPE, 0.03)
    weight, scales = m.weight("w", (16, 16), per_channel=False)
    y = m.node("MatMul", [x, weight], SHAPE)
    step = float(np.float32(0.03 * scales[0] * 250))
    y = m.quantized(y, step, 0) if quantized else y
    z = m.node(op, [y, m.constant("c", addend.astype(np.float32))], SHAPE)
    m.output(m.quantized(z, step, 0))
    if twice:
        m.output(y)
    return import_model(m.model()), step


def layers(graph):
    return [node for node in graph.nodes if isinstance(node, ops.Dense)]


def test_they_are_biases():
    """The result is a rounding nearer to the floats than the file's, so within a step of it."""
    graph, step = network(np.random.default_rng(1).normal(0, 0.3, 16))
    folded = fold_addends(graph)
    (layer,) = layers(folded)
    assert layer.bias is not None
    assert not [node for node in folded.nodes if isinstance(node, ops.Add)]
    assert [node.op for node in optimize(folded).nodes].count("QDense") == 1
    x = {"x": np.random.default_rng(2).normal(0, 1, SHAPE).astype(np.float32)}
    result, wanted = (evaluate(g, x)[g.outputs[0]] for g in (folded, graph))
    assert np.abs(result - wanted).max() <= 1.001 * step


def test_factors_are_scales():
    """Their signs are those of the weights."""
    graph, step = network(np.random.default_rng(1).normal(0, 0.5, 16), op="Mul")
    folded = fold_addends(graph)
    assert not [node for node in folded.nodes if isinstance(node, ops.Binary)]
    assert [node.op for node in optimize(folded).nodes].count("QDense") == 1
    x = {"x": np.random.default_rng(2).normal(0, 1, SHAPE).astype(np.float32)}
    result, wanted = (evaluate(g, x)[g.outputs[0]] for g in (folded, graph))
    assert np.abs(result - wanted).max() <= 1.001 * step
    assert np.abs(wanted).max() > 10 * step


@pytest.mark.parametrize(
    "left",
    [
        network(np.zeros((6, 16)))[0],
        network(np.zeros(16), quantized=False)[0],
        network(np.zeros(16), twice=True)[0],
        network(np.zeros(16), op="Mul")[0],
    ],
    ids=["of each vector another", "not quantized before", "the product is read, too", "no factor"],
)
def test_other_sums_stay(left):
    assert fold_addends(left) is left
