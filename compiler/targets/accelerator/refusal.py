"""Reasons for which the accelerator leaves a node to the processor."""

from __future__ import annotations

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.targets.accelerator.operators.template import BY_NODE, MIN_FILL
from vdla.isa.config import Config


def refusal(node: Node, graph: Graph, config: Config, min_fill: float = MIN_FILL) -> str | None:
    """Reason for which ``node`` can't or shouldn't run on the accelerator; None if it should.

    Args:
        node: one of an optimized graph.
        graph: the graph.
        config: the accelerator's.
        min_fill: the share of the input lanes that a convolution must fill.
    """
    if isinstance(node, ops.ByAddresses):
        return None
    if template := BY_NODE.get(type(node)):
        return template.refusal(node, graph, config, min_fill)
    if node.NOT_ACCELERATED:
        return node.NOT_ACCELERATED
    name = f"float operator {getattr(node, 'function', node.op)}"
    return f"{name}: {graph.reasons[node.name]}" if node.name in graph.reasons else name
