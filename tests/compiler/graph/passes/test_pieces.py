"""Normalizations and softmax in pieces, with quantizations between them, as one."""

from __future__ import annotations

import numpy as np
import pytest
from qdq import QdqModel

from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.clusters.matcher import deviation_of, shares_of
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.passes.pieces import join_pieces
from vdla.compiler.graph.reference import evaluate

SHAPE, ROWS = (1, 6, 16), (1, 6, 1)
VARIANCES = 1 / 60  # a step of a variance, which is about 1


class Pieces(QdqModel):
    """A model whose operators are quantized one by one where ``between`` says so."""

    def __init__(self, between: bool) -> None:
        super().__init__(11)
        self.between = between

    def piece(self, op, inputs, shape, scale, zero=0, **attributes):
        y = self.node(op, inputs, shape, **attributes)
        return self.quantized(y, scale, zero) if self.between else y


def of_pytorch(m, x):
    gamma, beta, epsilon = terms(m)
    above = m.piece("Sub", [x, m.node("ReduceMean", [x], ROWS, axes=[-1])], SHAPE, 0.03)
    square = m.node("ReduceMean", [m.node("Mul", [above, above], SHAPE)], ROWS, axes=[-1])
    if m.between:
        square = m.quantized(square, VARIANCES, -128)
    root = m.node("Sqrt", [m.piece("Add", [square, epsilon], ROWS, VARIANCES, -128)], ROWS)
    y = m.node("Div", [above, root], SHAPE)
    return m.node("Add", [m.node("Mul", [y, gamma], SHAPE), beta], SHAPE)


def of_tensorflow(m, x):
    gamma, beta, epsilon = terms(m)
    mean = m.node("ReduceMean", [x], ROWS, axes=[-1])
    above = m.node("Sub", [x, mean], SHAPE)
    square = m.node("ReduceMean", [m.node("Mul", [above, above], SHAPE)], ROWS, axes=[-1])
    total = m.piece("Add", [square, epsilon], ROWS, VARIANCES, -128)
    inverse = m.node("Reciprocal", [m.node("Sqrt", [total], ROWS)], ROWS)
    factor = m.piece("Mul", [inverse, gamma], SHAPE, 1 / 60)
    offset = m.node("Sub", [beta, m.piece("Mul", [mean, factor], SHAPE, 1 / 60)], SHAPE)
    return m.node("Add", [m.piece("Mul", [x, factor], SHAPE, 0.03), offset], SHAPE)


def terms(m):
    """Factors, offsets and epsilon."""
    rng = np.random.default_rng(3)
    gamma, beta = rng.uniform(0.5, 1.5, 16), rng.normal(0, 0.2, 16)
    arrays = {"gamma": gamma, "beta": beta, "epsilon": np.array(1e-3)}
    return [m.constant(name, array.astype(np.float32)) for name, array in arrays.items()]


def shares(m, x):
    top = m.node("ReduceMax", [x], ROWS, axes=[-1])
    power = m.node("Exp", [m.piece("Sub", [x, top], SHAPE, 0.05, 127)], SHAPE)
    total = m.piece("ReduceSum", [power, m.constant("axes", np.array([-1]))], ROWS, 0.1, -128)
    return m.node("Div", [power, total], SHAPE)


def network(form, between, scale=0.03):
    m = Pieces(between)
    y = form(m, m.input("x", SHAPE, 0.03))
    m.output(m.quantized(y, scale, 0))
    return import_model(m.model())


def operators(graph):
    return [getattr(node, "function", node.op) for node in graph.nodes]


@pytest.mark.parametrize("form", [of_pytorch, of_tensorflow])
def test_a_normalization_is_one_whatever_is_quantized_between(form):
    """It is that of the file without quantizations between, to a step of the result."""
    x = {"x": np.random.default_rng(1).normal(0, 1, SHAPE).astype(np.float32)}
    joined, plain = join_pieces(network(form, True)), network(form, False)
    assert operators(joined).count("Quantize") == 2
    end = [node for node in joined.nodes if isinstance(node, ops.Quantize)][-1]
    whole = deviation_of(end.data, Neighbours(joined))
    assert whole is not None
    assert (whole.axes, whole.centered, round(whole.epsilon, 6)) == ((2,), True, 1e-3)
    result, wanted = (evaluate(g, x)[g.outputs[0]] for g in (joined, plain))
    assert np.abs(result - wanted).max() <= 0.03 * 1.001


@pytest.mark.parametrize("between", [True, False])
def test_a_softmax_is_one_operator(between):
    x = {"x": np.random.default_rng(1).normal(0, 1, SHAPE).astype(np.float32)}
    joined, plain = join_pieces(network(shares, between, 1 / 128)), network(shares, False, 1 / 128)
    assert operators(joined) == ["Quantize", "Dequantize", "Softmax", "Quantize", "Dequantize"]
    end = joined.nodes[-2]
    assert shares_of(end.data, Neighbours(joined)).axis == 2
    result, wanted = (evaluate(g, x)[g.outputs[0]] for g in (joined, plain))
    np.testing.assert_array_equal(result, wanted)


def test_only_what_comes_before_the_first_end_is_joined():
    """A factor behind a quantized normalization stays a product of integers."""
    m = Pieces(True)
    x = m.input("x", SHAPE, 0.03)
    y = m.quantized(m.node("LayerNormalization", [x, *terms(m)[:2]], SHAPE, axis=-1), 0.03, 0)
    z = m.node(
        "Mul", [y, m.quantized(m.constant("more", np.full(16, 1.5, np.float32)), 0.012)], SHAPE
    )
    m.output(m.quantized(z, 0.04, 0))
    graph = import_model(m.model())
    assert join_pieces(graph) is graph


def test_data_that_are_read_before_they_are_quantized_stay():
    """The normalization is of what isn't int8."""
    m = Pieces(True)
    m.input("x", SHAPE, 0.03)
    m.shapes["x"] = SHAPE
    m.output(m.quantized(of_pytorch(m, "x"), 0.03, 0))
    graph = import_model(m.model())
    assert "Softmax" not in operators(join_pieces(graph))
    assert join_pieces(graph) is graph
