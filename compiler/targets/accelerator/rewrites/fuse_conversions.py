"""Nodes that only move bytes join their neighbour on the processor: the boundary is one pass.

before: q = Quantize(x); p = Im2col(q); p.packed = Pack(p)     after: p.packed = Quantize(x) + …
before: l = Unpack(l.packed); y = Dequantize(l)                after: y = Dequantize(l.packed) + …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.fused import fuse
from vdla.compiler.placement import PROCESSOR, Placements


def fuse_conversions(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
    """The laid-out graph with every chain of such nodes as one :class:`ops.Fused`."""
    placements, uses = dict(placements), graph.uses
    chains: dict[str, list[Node]] = {}  # by what the chain writes
    order: list[list[Node]] = []
    for node in graph.nodes:
        chain = chains.pop(node.inputs[0], None) if _only_use(node, graph, uses) else None
        if chain is None or placements[node.name].device != PROCESSOR or not _joins(chain, node):
            if chain is not None:
                chains[node.inputs[0]] = chain
            chain = []
            order.append(chain)
        chain.append(node)
        if placements[node.name].device == PROCESSOR:
            chains[node.output] = chain
    nodes = []
    for chain in order:
        if len(chain) == 1:
            nodes.append(chain[0])
            continue
        lead = next(each for each in chain if each.CONVERTS == "numbers")
        fused = fuse(chain, lead.name)
        placements[fused.name] = placements[lead.name]
        nodes.append(fused)
    return replace(graph, nodes=tuple(nodes)), placements


def _only_use(node: Node, graph: Graph, uses: Mapping[str, Sequence[Node]]) -> bool:
    name = node.inputs[0] if node.inputs else ""
    return bool(name) and len(uses.get(name, ())) == 1 and name not in graph.outputs


def _joins(chain: list[Node], node: Node) -> bool:
    """Whether a node may follow a chain: one that converts numbers, Unpack before it, changes of
    layout behind it."""
    if node.CONVERTS == "layout" and not isinstance(node, ops.Unpack):
        return any(each.CONVERTS == "numbers" for each in chain)
    return node.CONVERTS == "numbers" and all(isinstance(each, ops.Unpack) for each in chain)
