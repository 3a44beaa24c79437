"""Ranges that a graph's float tensors have on samples: the reference interpreter runs each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate_node, iter_values
from vdla.compiler.graph.types import Array

Ends = Mapping[str, tuple[float, float]]  # by the names of tensors
Measure = Callable[[Graph], Ends]


def measured(graph: Graph, samples: Iterable[Mapping[str, Array]]) -> Ends:
    """The least and the greatest number of each float tensor on samples, which are an array for
    each input; without the tensors that are NaN anywhere."""
    lows, highs = dict[str, float](), dict[str, float]()
    known = _constants(graph)
    for sample in samples:
        for name, array in chain(sample.items(), iter_values(graph, {**known, **sample})):
            if graph.tensors[name].dtype == "float32" and array.size:
                lows[name] = float(np.minimum(lows.get(name, np.inf), array.min()))
                highs[name] = float(np.maximum(highs.get(name, -np.inf), array.max()))
    return {name: (low, highs[name]) for name, low in lows.items() if low <= highs[name]}


def _constants(graph: Graph) -> dict[str, Array]:
    """The values of constants, and of what nodes make of constants alone."""
    known = {**graph.constants}
    for node in graph.nodes:
        own = not isinstance(node, ops.Control) and node.inputs
        if own and all(name in known for name in node.inputs):
            known[node.output] = evaluate_node(graph, node, [known[name] for name in node.inputs])
    return known
