"""Which nodes the accelerator runs, and why it leaves the others to the host."""

from __future__ import annotations

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import ACCELERATOR, HOST, ONNXRUNTIME, Placement, Placements
from vdla.compiler.targets.accelerator.operators.template import BY_NODE
from vdla.compiler.user import registered
from vdla.isa.config import Config

MIN_FILL = 0.5  # below this share of the input lanes, a convolution is better off on the host


def partition(
    graph: Graph, config: Config | None, device: str = ACCELERATOR, min_fill: float = MIN_FILL
) -> Placements:
    """Node name to its placement.

    Args:
        graph: an optimized graph.
        config: the accelerator; None where there is none.
        device: ``cpu`` puts everything on the host.
        min_fill: the share of the input lanes a convolution must fill to go on the accelerator.
    """
    machine = None if device == HOST else config
    return {n.name: place(n, graph, machine, min_fill) for n in graph.nodes}


def place(node: Node, graph: Graph, config: Config | None, min_fill: float) -> Placement:
    """The placement of one node."""
    if isinstance(node, ops.External):
        return Placement(ONNXRUNTIME, node.reason)
    if isinstance(node, ops.Custom) and registered(node.operator).schedule is None:
        return Placement(HOST, "a user's operator without a schedule")
    if config is None:
        return Placement(HOST, "device cpu has no accelerator")
    reason = refusal(node, graph, config, min_fill)
    if reason is None:
        return Placement(ACCELERATOR, BY_NODE[type(node)].placed(node))
    return Placement(HOST, reason)


def refusal(node: Node, graph: Graph, config: Config, min_fill: float = MIN_FILL) -> str | None:
    """Why ``node`` can't or shouldn't run on the accelerator; None if it should."""
    if template := BY_NODE.get(type(node)):
        return template.refusal(node, graph, config, min_fill)
    if node.HOST_REASON:
        return node.HOST_REASON
    name = f"float operator {getattr(node, 'function', node.op)}"
    return f"{name}: {graph.reasons[node.name]}" if node.name in graph.reasons else name
