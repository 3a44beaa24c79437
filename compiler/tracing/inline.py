"""Graphs that exist already, written out in a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.control import Control
from vdla.compiler.tracing.arrays import STACK, Array


def inline(graph: Graph, operands: Sequence[Array]) -> list[Array]:
    """The results of a graph's nodes, written out in the innermost trace.

    Args:
        graph: calls no named functions.
        operands: what its inputs are, in their order.
    """
    trace = STACK.traces[-1]
    names = {name: trace.constant(value) for name, value in graph.constants.items()}
    names |= zip(graph.inputs, map(trace.own, operands), strict=True)
    for node in graph.nodes:
        for output in node.outputs:
            names[output] = trace.tensor(f"{trace.stem}.{output}", graph.tensors[output])
        made = replace(node.renamed(names), name=names[node.output]).writing(names[node.output])
        if isinstance(made, Control):
            made = replace(made, others=tuple(names[each] for each in made.others))
        trace.nodes.append(made)
    return [Array(trace, names[output]) for output in graph.outputs]
