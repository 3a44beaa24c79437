"""What becomes of results on the host comes last, so that it cuts no stream of the accelerator."""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph.ir import Graph
from vdla.compiler.placement import ACCELERATOR, Placements


def outputs_last(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
    """Moves nodes that nothing on the accelerator needs behind all others.

    before: a on vdla; y = Dequantize(a) on cpu; b on vdla; z = Dequantize(b) on cpu
    after:  a, b on vdla, which is one stream; y, z on cpu
    """
    needed: set[str] = set()
    for node in reversed(graph.nodes):
        if placements[node.name].device == ACCELERATOR or node.output in needed:
            needed |= {node.output, *node.inputs}
    first = [node for node in graph.nodes if node.output in needed]
    last = [node for node in graph.nodes if node.output not in needed]
    return replace(graph, nodes=(*first, *last)), placements
