"""Gradients of ONNX's operators, as they are imported, against differences of their results."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.gradient_operators import CASES, OPERATORS
from tests.support.gradients import check, check_node, gradient_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate

PAGE = Path(__file__).parents[3] / "docs" / "control.md"


@pytest.mark.parametrize("op", OPERATORS)
def test_gradients_are_differences(op):
    for case in CASES:
        if case.op == op:
            check(import_model(case.model(), case.name), case.numbers(), tolerance=1e-5)


def test_the_page_lists_these_operators():
    """And those with graphs and with rounding, which have tests of their own."""
    table = PAGE.read_text().partition("| operators of files |")[2].partition("\n\n")[0]
    listed = re.findall(r"`(\w+)`", table)
    others = {"If", "Scan", "QuantizeLinear", "DequantizeLinear"}
    assert len(listed) == len(set(listed))
    assert set(listed) == {*OPERATORS, *others}
    assert len(OPERATORS) >= 60


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_running_products_of_zeros(axis, reverse, exclusive):
    data = np.array([[2, 0, 3, 1], [0, 1, 0, 2], [1, 2, 3, 4]], np.float32)
    fields = {"function": "prod", "axis": axis, "reverse": reverse, "exclusive": exclusive}
    check_node(ops.Cumulate, {"data": data}, **fields)


def test_products_of_zeros_in_a_place():
    operands = {
        "data": np.array([2, 3, 0, 5], np.float32),
        "indices": np.array([[0], [0], [1], [1], [2], [1]]),
        "updates": np.array([0, 4, 0, 0, 7, 2], np.float32),
    }
    check_node(ops.ScatterND, operands, reduction="mul")
    operands["indices"] = operands["indices"].reshape(-1)
    check_node(ops.ScatterElements, operands, axis=0, reduction="mul")


def test_norms_of_zeros_have_gradients_of_zeros():
    """As those that a Relu leaves: nothing else becomes NaN."""
    case = next(case for case in CASES if case.op == "ReduceL2")
    graph = import_model(case.model(), case.name)
    made = gradient_graph(graph, [np.ones(graph.tensors[graph.outputs[0]].shape, np.float32)])
    result = evaluate(made, {"x0": np.zeros((2, 3, 4), np.float32)})[made.outputs[0]]
    np.testing.assert_array_equal(result, np.zeros((2, 3, 4)))
