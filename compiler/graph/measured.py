"""Ranges that a graph's float tensors have on samples: the reference interpreter runs each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate_node, iter_values
from vdla.compiler.graph.types import Array

Ends = Mapping[str, tuple[float, float]]  # by the names of tensors
Measure = Callable[[Graph], Ends]
Progress = Callable[[str, int, int], None]


def measured(graph: Graph, samples: Sequence[Mapping[str, Array]], progress: Progress) -> Ends:
    """The least and the greatest number of each float tensor on samples, which are an array for
    each input; without those of any that is NaN somewhere.

    Samples of other inputs, as a network's are for the body of a loop, say nothing.
    """
    lows, highs = dict[str, float](), dict[str, float]()
    known = _constants(graph)
    for number in range(len(samples)):
        progress("calibration", number, len(samples))
        sample = samples[number]
        if sample.keys() != {*graph.inputs}:
            return {}
        values = {**known, **sample}
        for name, array in (*sample.items(), *iter_values(graph, values)):
            if graph.tensors[name].dtype == "float32" and array.size:
                lows[name] = float(np.minimum(lows.get(name, np.inf), array.min()))
                highs[name] = float(np.maximum(highs.get(name, -np.inf), array.max()))
    return {n: (low, highs[n]) for n, low in lows.items() if low <= highs[n]}


def _constants(graph: Graph) -> dict[str, Array]:
    """The values of constants, and of what nodes make of constants alone."""
    known = {**graph.constants}
    for node in graph.nodes:
        own = not isinstance(node, ops.Control) and node.inputs
        if own and all(name in known for name in node.inputs):
            known[node.output] = evaluate_node(graph, node, [known[name] for name in node.inputs])
    return known
