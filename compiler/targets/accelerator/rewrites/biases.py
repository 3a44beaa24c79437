"""Residuals that are known, and the same at all pixels, become one value for each channel.

before: y = QConv2dAdd(x, residual=r): [1, 512, 1, 128], r = a constant [1, 512, 1, 128]
after:  y = QConv2dAdd(x, residual=r'): [1, 512, 1, 128], r' = a constant [1, 512, 1, 1]

That is what the biases of dense layers are where they have a scale of their own. ACC then keeps
them beside the other numbers of each channel, and nothing is loaded for a pixel.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import ACCELERATOR, Placements


def fix_biases(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
    """Stores what accelerated nodes add by channel, where it is known and pixels don't differ."""
    graph = graph.copy()
    nodes = [
        _fixed(node, graph) if node.ADDEND and placements[node.name].device == ACCELERATOR else node
        for node in graph.nodes
    ]
    return replace(graph, nodes=tuple(nodes)), placements


def _fixed(node: Node, graph: Graph) -> Node:
    """The node with one value for each channel; itself, where it needs more or has that already."""
    addend: str = getattr(node, node.ADDEND)
    whole = graph.constants.get(addend)
    if whole is None or whole.size == whole.shape[1]:
        return node
    channels = whole[:1, :, :1, :1]
    if not np.array_equal(whole, np.broadcast_to(channels, whole.shape)):
        return node
    name = f"{addend}.channels"
    graph.constants[name] = channels.copy()
    graph.tensors[name] = replace(graph.tensors[addend], shape=channels.shape)
    return node.renamed({addend: name})
