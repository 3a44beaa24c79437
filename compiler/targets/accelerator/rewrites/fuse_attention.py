"""Scores, their softmax and what it takes of the values become one operator.

before: s = QMatMul(k, q); p = QSoftmax(s); t = QTransposeImage(p); y = QMatMul(t, v)
after:  y = QAttention(k, q, v){s; p; t; y}

Scores then stay on chip, and GEMM, ALU and STORE work on blocks of queries side by side. As the
products run on the accelerator, lanes without a channel are zeros in all that they read.
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.attention import QAttention
from vdla.compiler.graph.ops.fused import fuse
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.placement import ACCELERATOR, Placement, Placements
from vdla.compiler.targets.accelerator.operators.attention import Attention
from vdla.isa.config import Config

CHAIN = (QMatMul, QTransposeImage, QSoftmax, QMatMul)  # from the result back to the scores


def fuse_attention(
    graph: Graph, placements: Placements, config: Config
) -> tuple[Graph, Placements]:
    """Joins each chain of which the buffers hold a tile."""
    placed, joined = dict(placements), dict[str, QAttention]()
    taken = set[str]()
    for node in graph.nodes:
        parts = _chain(node, graph, placements)
        if parts is None:
            continue
        whole = fuse(parts, node.name)
        made = QAttention(**whole.values())
        if Attention.refusal(made, graph, config) is None:
            joined[node.name] = made
            placed[node.name] = Placement(ACCELERATOR, Attention.placed(made))
            taken |= {part.name for part in parts[:-1]}
    nodes = (joined.get(node.name, node) for node in graph.nodes if node.name not in taken)
    return replace(graph, nodes=tuple(nodes)), placed


def _chain(node: Node, graph: Graph, placements: Placements) -> list[Node] | None:
    """The nodes that end with ``node``, if they are all accelerated and no one else reads what
    passes between them."""
    makers, uses = graph.producers(), graph.uses()
    chain: list[Node] = []
    for kind in CHAIN:
        if type(node) is not kind or placements[node.name].device != ACCELERATOR:
            return None
        if chain and (len(uses[node.output]) > 1 or node.output in graph.outputs):
            return None
        chain.insert(0, node)
        before = node.inputs[0]
        if before not in makers:
            return chain if len(chain) == len(CHAIN) else None
        node = makers[before]
    return chain
