"""Loops of few turns as their turns one behind another, where they compute with integers."""

from __future__ import annotations

import numpy as np
import pytest
from control_models import TURN, body, imported, model, op

from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import unroll as unrolling
from vdla.compiler.graph.passes.unroll import unroll
from vdla.compiler.graph.reference import evaluate

F = np.float32
X = {"x": np.arange(12, dtype=F).reshape(3, 4), "h": np.ones(4, F)}
SCALES = {"scale": F(0.5), "zero": np.int8(0)}
ROUND = [op("QuantizeLinear", "a scale zero", "q"), op("DequantizeLinear", "q scale zero", "t")]


def scan(nodes, rows=("t",)):
    """A Scan of three turns over x, that carries h."""
    ends = [("f t", (4,)), *((f"f {name}", (4,)) for name in rows)]
    inner = body(nodes, [("f s", (4,)), ("f e", (4,))], ends)
    names = " ".join(["y", *(f"z{n}" for n in range(len(rows)))])
    node = op("Scan", "h x", names, body=inner, num_scan_inputs=1)
    return imported(model([node], X, [f"f {name}" for name in names.split()], **SCALES))


def equal(graph, other):
    first, second = (evaluate(each, X) for each in (graph, other))
    for name in graph.outputs:
        np.testing.assert_array_equal(second[name], first[name])


def test_turns_of_quantized_tensors():
    graph = scan([op("Add", "s e", "a"), *ROUND, op("Neg", "t", "r")], ["r"])
    flat = unroll(graph)
    assert not flat.of(ops.Scan)
    assert len(flat.of(ops.Quantize)) == 3
    assert len({node.name for node in flat.nodes}) == len(flat.nodes)
    equal(graph, flat)


def test_turns_of_floats_stay():
    graph = scan([op("Add", "s e", "t"), op("Neg", "t", "r")], ["r"])
    assert unroll(graph).of(ops.Scan)


@pytest.mark.parametrize(("most", "stays"), [(6, False), (5, True)])
def test_many_nodes_stay(monkeypatch, most, stays):
    monkeypatch.setattr(unrolling, "MOST_NODES", 3 * most)
    graph = scan([op("Add", "s e", "a"), *ROUND, op("Neg", "t", "r"), op("Abs", "r", "u"),
                  op("Neg", "u", "v")], ["v"])  # fmt: skip
    assert sum(len(part.nodes) for part in graph.nodes[0].body.whole()) == 6
    assert bool(unroll(graph).of(ops.Scan)) == stays


def test_constants_of_a_turn_are_there_once():
    graph = scan([op("Add", "s e", "p"), op("Mul", "p scale", "a"), *ROUND], [])
    flat = unroll(graph)
    equal(graph, flat)
    assert len(flat.constants) <= len(graph.nodes[0].body.constants) + 3


def test_the_number_of_a_turn_is_a_constant():
    inner = body(
        [op("Identity", "go", "go2"), op("Gather", "x i", "e"), op("Add", "s e", "a"), *ROUND],
        (*TURN, ("f s", (4,))), [("b go2", []), ("f t", (4,))],
    )  # fmt: skip
    node = op("Loop", "n - h", "y", body=inner)
    graph = imported(model([node], X, ["f y"], n=np.array(3), **SCALES))
    flat = unroll(graph)
    assert not flat.of(ops.Scan)
    equal(graph, flat)


def test_turns_of_which_a_run_knows_the_number_stay():
    inner = body([op("Identity", "go", "go2"), op("Add", "s s", "a"), *ROUND],
                 (*TURN, ("f s", (4,))), [("b go2", []), ("f t", (4,))])  # fmt: skip
    inputs = {**X, "n": np.array(3)}
    graph = imported(model([op("Loop", "n - h", "y", body=inner)], inputs, ["f y"], **SCALES))
    assert unroll(graph).of(ops.While)
