"""Scores, their softmax and what it takes of the values become one operator.

before: s = QMatMul(k, q); p = QSoftmax(s); t = QTransposeImage(p); y = QMatMul(t, v)
after:  y = QAttention(k, q, v){s; p; t; y}

Scores then stay on chip, and GEMM, ALU and STORE work on blocks of queries side by side. As the
products run on the accelerator, lanes without a channel are zeros in all that they read.
"""

from __future__ import annotations

from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.attention import QAttention
from vdla.compiler.graph.ops.fused import fuse
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.placement import ACCELERATOR, Placement, Placements
from vdla.compiler.targets.accelerator.operators.attention import Attention
from vdla.compiler.targets.accelerator.options.forwarding import no_forwarding
from vdla.compiler.targets.accelerator.options.reciprocals import no_reciprocals
from vdla.isa.config import Config

CHAIN = (QMatMul, QTransposeImage, QSoftmax, QMatMul)  # from the result back to the scores


def attends(config: Config) -> bool:
    """Whether a config has what the joined operator needs beside tables."""
    return not (no_reciprocals(config) or no_forwarding(config))


def fuse_attention(
    graph: Graph, placements: Placements, config: Config
) -> tuple[Graph, Placements]:
    """Joins each chain of which the buffers hold a tile."""
    placed = dict(placements)

    def joined(node: QMatMul, editor: Editor) -> Made:
        parts = _chain(node, editor)
        devices = {placed[part.name].device for part in parts}
        if len(parts) < len(CHAIN) or devices != {ACCELERATOR}:
            return None
        made = QAttention(**fuse(parts, node.name).values())
        if Attention.refusal(made, editor.graph(), config) is not None:
            return None
        placed[node.name] = Placement(ACCELERATOR, Attention.placed(made))
        for part in parts[:-1]:
            editor.erase(part)
        return made

    return rewrite(graph, joined), placed


def _chain(node: Node, editor: Editor) -> list[Node]:
    """The nodes that end with a node, as far as they are a chain: one reads what another makes."""
    chain: list[Node] = []
    last: Node | None = node
    for kind in CHAIN:
        if last is None or type(last) is not kind:
            break
        chain.insert(0, last)
        last = editor.own_maker(last.inputs[0], Node)
    return chain
