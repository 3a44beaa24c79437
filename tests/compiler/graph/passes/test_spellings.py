"""Einsum, choices by masks and constant factors in the spelling that other rewrites know."""

from __future__ import annotations

import numpy as np
import pytest
from qdq import QdqModel

from vdla.compiler.frontend import import_model
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.passes.spellings import respell
from vdla.compiler.graph.reference import evaluate

A, B = (2, 5, 3, 4), (2, 6, 3, 4)


def operators(graph):
    return [getattr(node, "function", node.op) for node in graph.nodes]


def einsum(equation, *shapes):
    m = QdqModel(5)
    parts = [m.input(f"x{n}", shape, 0.03) for n, shape in enumerate(shapes)]
    left, right = equation.split("->")
    letters = "".join(left.split(","))
    sizes = dict(zip(letters, [n for shape in shapes for n in shape], strict=True))
    y = m.node("Einsum", parts, tuple(sizes[letter] for letter in right), equation=equation)
    m.output(m.quantized(y, 0.1, 0))
    graph = import_model(m.model())
    rng = np.random.default_rng(2)
    return graph, {f"x{n}": rng.normal(0, 1, s).astype(np.float32) for n, s in enumerate(shapes)}


@pytest.mark.parametrize("equation", ["bihd,bjhd->bhij", "bihd,bjhd->hjbi", "bihd,bjhd->bijh"])
def test_one_sum_of_two_factors_is_a_product(equation):
    graph, x = einsum(equation, A, B)
    made = respell(graph)
    assert "Einsum" not in operators(made)
    assert operators(made).count("MatMul") == 1
    result, wanted = (evaluate(g, x)[g.outputs[0]] for g in (made, graph))
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("ij,kj->i", [(3, 4), (5, 4)]), ("bij,bij->bi", [A[:3], A[:3]]), ("ijk->ikj", [A[:3]])],
)
def test_other_sums_stay(equation, shapes):
    graph, _ = einsum(equation, *shapes)
    assert respell(graph) is graph


@pytest.mark.parametrize(("value", "kinds"), [(-1e4, ["min"]), (0.5, ["min", "max"])])
@pytest.mark.parametrize("kept", [True, False])
def test_a_choice_is_the_least_and_the_greatest(value, kinds, kept):
    """Bit for bit; where the other one is the least there is, the least of two alone."""
    shape, m = (1, 2, 6, 6), QdqModel(5)
    x = m.input("x", shape, 0.03)
    mask = np.tril(np.ones((6, 6), bool))
    names = m.constant("mask", mask if kept else ~mask), m.constant("value", np.float32(value))
    operands = (x, names[1]) if kept else (names[1], x)
    y = m.node("Where", [names[0], *operands], shape)
    m.output(m.quantized(y, 0.025, 3))
    graph = import_model(m.model())
    made = respell(graph)
    assert [name for name in operators(made) if name in ("min", "max", "Where")] == kinds
    inputs = {"x": np.random.default_rng(1).normal(0, 1, shape).astype(np.float32)}
    result, wanted = (evaluate(g, inputs)[g.outputs[0]] for g in (made, graph))
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("whole", [True, False])
def test_a_mask_is_integers(whole):
    """So is any constant that int8 has exactly, and no other one; results are the same."""
    shape, m = (1, 2, 6, 6), QdqModel(5)
    mask = np.triu(np.full((6, 6), -50.0), 1)
    array = mask if whole else mask + np.random.default_rng(3).normal(0, 1, (6, 6))
    y = m.node("Add", [m.input("x", shape, 0.03), m.constant("m", array.astype(np.float32))], shape)
    m.output(m.quantized(y, 0.03, 100))
    graph = import_model(m.model())
    made = respell(graph)
    assert (made is graph) == (not whole)
    assert ("QAdd" in operators(optimize(made))) == whole
    inputs = {"x": np.random.default_rng(1).normal(0, 1, shape).astype(np.float32)}
    result, wanted = (evaluate(g, inputs)[g.outputs[0]] for g in (made, graph))
    np.testing.assert_array_equal(result, wanted)
