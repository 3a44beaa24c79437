"""Host nodes that only move bytes join their neighbour, so that the boundary is one pass.

before: q = Quantize(x); p = Im2col(q); p.packed = Pack(p)     after: p.packed = Quantize(x) + …
before: l = Unpack(l.packed); y = Dequantize(l)                after: y = Dequantize(l.packed) + …
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.fused import fuse
from vdla.compiler.placement import HOST, Placements

BEHIND = (ops.Im2col, ops.Pack)  # what joins a boundary node before it
BOUNDARY = (ops.Quantize, ops.Dequantize, ops.FlipSign)


def fuse_host(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
    """The laid-out graph with every chain of such nodes as one :class:`ops.Fused`."""
    placements, uses = dict(placements), graph.uses()
    chains: dict[str, list[Node]] = {}  # by what the chain writes
    order: list[list[Node]] = []
    for node in graph.nodes:
        chain = chains.pop(node.inputs[0], None) if _only_use(node, graph, uses) else None
        if chain is None or placements[node.name].device != HOST or not _joins(chain, node):
            if chain is not None:
                chains[node.inputs[0]] = chain
            chain = []
            order.append(chain)
        chain.append(node)
        if placements[node.name].device == HOST:
            chains[node.output] = chain
    nodes = []
    for chain in order:
        if len(chain) == 1:
            nodes.append(chain[0])
            continue
        lead = next(each for each in chain if isinstance(each, BOUNDARY))
        fused = fuse(chain, lead.name)
        placements[fused.name] = placements[lead.name]
        nodes.append(fused)
    return replace(graph, nodes=tuple(nodes)), placements


def _only_use(node: Node, graph: Graph, uses: dict[str, list[Node]]) -> bool:
    name = node.inputs[0] if node.inputs else ""
    return bool(name) and len(uses.get(name, [])) == 1 and name not in graph.outputs


def _joins(chain: list[Node], node: Node) -> bool:
    """Whether a node may follow a chain: one boundary node, and moves before or behind it."""
    has_boundary = any(isinstance(each, BOUNDARY) for each in chain)
    if isinstance(node, BEHIND):
        return has_boundary
    return isinstance(node, BOUNDARY) and all(isinstance(each, ops.Unpack) for each in chain)
