"""Layers without their zero tiles say so in the placement report."""

from __future__ import annotations

from vdla.compiler.graph.ir import Graph
from vdla.compiler.placement import ACCELERATOR, Placement, Placements
from vdla.compiler.targets.accelerator.operators.sparse import SparseConv2d
from vdla.isa.config import Config


def name_sparse(graph: Graph, placements: Placements, config: Config) -> tuple[Graph, Placements]:
    """Adds the share of zero tiles to the placements of layers that leave them out; the graph
    stays."""
    named = dict(placements)
    for node in graph.nodes:
        if placements[node.name].device != ACCELERATOR or type(node) not in SparseConv2d.INSTEAD:
            continue
        if SparseConv2d.instead(node, graph, config) is not None:
            text = SparseConv2d.placed_with_share(node, graph, config)
            named[node.name] = Placement(ACCELERATOR, text)
    return graph, named
