"""Graphs that exist already, written out in a trace."""

from __future__ import annotations

from collections.abc import Sequence

from vdla.compiler.graph.clone import clone
from vdla.compiler.graph.ir import Graph
from vdla.compiler.tracing.arrays import STACK, Array


def inline(graph: Graph, operands: Sequence[Array], name: str = "copy") -> list[Array]:
    """The results of a graph's nodes, written out in the innermost trace.

    Args:
        graph: a region, or a graph without functions of its own.
        operands: what its inputs are, in their order.
        name: of the graph, which begins the names of its nodes and tensors.
    """
    trace = STACK.traces[-1]
    given = dict(zip(graph.inputs, map(trace.own, operands), strict=True))
    copy = clone(graph, f"{trace.session.fresh(f'{trace.stem}.{name}')}.", given)
    trace.tensors |= copy.tensors
    trace.constants |= copy.constants
    trace.nodes += copy.nodes
    return [Array(trace, output) for output in copy.outputs]
