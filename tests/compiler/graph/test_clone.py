"""A graph once more, under other names."""

from __future__ import annotations

import numpy as np
from control_texts import CHOICE, SUMS, graph_of

from vdla.compiler.graph.clone import clone
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.reference import evaluate


def names_of(graph):
    """All tensors and nodes, those in regions, too."""
    parts = [*graph.whole()]
    return {n for part in parts for n in (*part.tensors, *(node.name for node in part.nodes))}


def test_all_names_have_the_prefix():
    graph = graph_of(CHOICE)
    copy = verify(clone(graph, "again.", {}))
    assert names_of(copy) == {f"again.{name}" for name in names_of(graph)}
    assert copy.inputs == tuple(f"again.{name}" for name in graph.inputs)


def test_given_tensors_stand_for_inputs():
    graph = graph_of(CHOICE)
    first, second = graph.inputs
    copy = clone(graph, "again.", {second: "outside"})
    assert copy.inputs == (f"again.{first}", "outside")
    assert copy.nodes[0].operands[1] == "outside"
    assert "outside" in copy.tensors


def test_a_copy_computes_the_same():
    graph = graph_of(SUMS)
    copy = verify(clone(graph, "p.", {}))
    rng = np.random.default_rng(0)
    inputs = {
        name: rng.integers(0, 3, graph.tensors[name].shape).astype(graph.tensors[name].dtype)
        for name in graph.inputs
    }
    wanted = evaluate(graph, inputs)
    actual = evaluate(copy, {f"p.{name}": value for name, value in inputs.items()})
    for name in graph.outputs:
        np.testing.assert_array_equal(actual[f"p.{name}"], wanted[name])
