"""Scores, their softmax and what it takes of the values become one operator.

before: s = QMatMul(k, q); p = QSoftmax(s); t = QTransposeImage(p); y = QMatMul(t, v)
after:  y = QAttention(k, q, v){s; p; t; y}

Scores then stay on chip, and GEMM, ALU and STORE work on blocks of queries side by side. As the
products run on the accelerator, lanes without a channel are zeros in all that they read.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

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
    makers, uses = graph.producers(), graph.uses()
    alone = {name for name, users in uses.items() if len(users) == 1} - set(graph.outputs)
    placed, joined = dict(placements), dict[str, QAttention]()
    taken = set[str]()
    for node in graph.nodes:
        parts = _chain(node, makers, alone)
        devices = {placements[part.name].device for part in parts}
        if len(parts) < len(CHAIN) or devices != {ACCELERATOR}:
            continue
        whole = fuse(parts, node.name)
        made = QAttention(**whole.values())
        if Attention.refusal(made, graph, config) is None:
            joined[node.name] = made
            placed[node.name] = Placement(ACCELERATOR, Attention.placed(made))
            taken |= {part.name for part in parts[:-1]}
    nodes = (joined.get(node.name, node) for node in graph.nodes if node.name not in taken)
    return replace(graph, nodes=tuple(nodes)), placed


def _chain(node: Node, makers: Mapping[str, Node], alone: Container[str]) -> list[Node]:
    """The nodes that end with ``node``, as far as they are a chain: tensors ``alone`` have one
    reader."""
    chain: list[Node] = []
    last: Node | None = node
    for kind in CHAIN:
        if last is None or type(last) is not kind or (chain and last.output not in alone):
            break
        chain.insert(0, last)
        last = makers.get(last.inputs[0])
    return chain
