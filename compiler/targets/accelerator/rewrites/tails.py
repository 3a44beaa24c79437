"""Ends of networks that stay on the host once they are there.

Behind a softmax of boxes, say, that the host computes, there may be a layer or two that the
accelerator could run. To bring them back takes two more copies and another program, for little
work.
"""

from __future__ import annotations

from collections.abc import Mapping

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import ACCELERATOR, PROCESSOR, Placement, Placements

LEAST = 8  # operations for each byte that comes from the host: fewer take less time there
REASON = "little work behind the host's: to bring it back would take longer"


def leave_tails(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
    """Leaves nodes to the host that are behind its own, behind the accelerator's, where all of them
    together have little work.

    before: y = QConv2d(x) on vdla; s = Softmax(y) on cpu; z = QConv2d(s) on vdla, 16 channels to 1
    after:  z on cpu

    Work is counted from the host's first node on, and from later ones, by how often numbers have
    come back to the accelerator before.
    """
    returns = _returns(graph, placements)
    for times in sorted({*returns.values()}):
        chosen = [node for node in graph.nodes if returns.get(node.name, 0) >= times]
        fixed = any(placements[node.name].fixed for node in chosen)
        if times and not fixed and _is_little(chosen, graph, placements):
            stay = {node.name: Placement(PROCESSOR, REASON) for node in chosen}
            return graph, {**placements, **stay}
    return graph, placements


def _returns(graph: Graph, placements: Placements) -> Mapping[str, int]:
    """For each of the accelerator's nodes, how often what it reads went to the host and back."""
    times: dict[str, int] = {}  # by tensors that the accelerator had a part in
    host: set[str] = set()  # those of them that the host makes
    result: dict[str, int] = {}
    for node in graph.nodes:
        accelerated = placements[node.name].device == ACCELERATOR
        known = [name for name in node.inputs if name in times]
        count = max((times[n] + (accelerated and n in host) for n in known), default=0)
        if accelerated:
            result[node.name] = count
        if accelerated or known:
            times |= dict.fromkeys(node.outputs, count)
            host |= set() if accelerated else {*node.outputs}
    return result


def _is_little(nodes: list[Node], graph: Graph, placements: Placements) -> bool:
    """Whether nodes have little work for the bytes that they read of the host's."""
    shapes = {name: kind.shape for name, kind in graph.tensors.items()}
    makers = graph.producers
    own = {name for node in nodes for name in node.outputs}
    read = {name for node in nodes for name in node.inputs if name in makers} - own
    sent = sum(
        graph.tensors[name].nbytes
        for name in read
        if placements[makers[name].name].device != ACCELERATOR
    )
    work = sum(node.work([shapes[n] for n in node.inputs], shapes[node.output]) for node in nodes)
    return work < LEAST * sent
