"""Order of the host's work: on inputs first, and on results last, so that it cuts no stream of the
accelerator."""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph.ir import Graph
from vdla.compiler.placement import ACCELERATOR, Placements


def host_around(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
    """Moves nodes that need nothing of the accelerator before all others, and those that nothing on
    the accelerator needs behind them.

    before: a on vdla; y = Dequantize(a) on cpu; p = Pack(x) on cpu; b of p on vdla
    after:  p on cpu; a, b on vdla, which is one stream; y on cpu
    """
    made: set[str] = set()  # by the accelerator, or of what it makes
    for node in graph.nodes:
        if placements[node.name].device == ACCELERATOR or made & {*node.inputs}:
            made.update(node.outputs)
    needed: set[str] = set()
    for node in reversed(graph.nodes):
        if placements[node.name].device == ACCELERATOR or needed & {*node.outputs}:
            needed |= {*node.outputs, *node.inputs}
    first = [node for node in graph.nodes if node.output in needed - made]
    middle = [node for node in graph.nodes if node.output in needed & made]
    last = [node for node in graph.nodes if node.output not in needed]
    return replace(graph, nodes=(*first, *middle, *last)), placements
