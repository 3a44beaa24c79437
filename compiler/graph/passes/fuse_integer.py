"""Integer operators that become one: :func:`fuse_clip`, :func:`fuse_residual`.

Both keep the arithmetic bit for bit; they save a pass over the data.
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node


def fuse_clip(graph: Graph) -> Graph:
    """Lets an operator clip its own result.

    before: v = QConv2d(x, lo=-128, hi=127); y = QClip(v, scale=1, lo=3)
    after:  y = QConv2d(x, lo=3, hi=127)

    Only a QClip that keeps scale and zero point, and a result with no other use.
    """
    uses, makers = graph.uses(), graph.producers()
    fused: dict[str, Node] = {}
    taken: set[str] = set()
    for node in graph.nodes:
        if not isinstance(node, ops.QClip) or node.scale != 1.0 or node.in_zp != node.out_zp:
            continue
        maker = makers.get(node.data)
        if maker is None or not maker.CLIPS:
            continue
        if len(uses[node.data]) != 1 or node.data in graph.outputs or maker.name in taken:
            continue
        limits = {k: min(max(getattr(maker, k), node.lo), node.hi) for k in ("lo", "hi")}
        fused[node.name] = replace(maker, output=node.output, **limits)
        taken.add(maker.name)
    nodes = [fused.get(n.name, n) for n in graph.nodes if n.name not in taken]
    return replace(graph, nodes=tuple(nodes))


def fuse_residual(graph: Graph) -> Graph:
    """Joins an addition to what makes one of its operands, where ``Node.with_addition`` says how.

    before: v = QConv2d(x); y = QAdd(v, r)           after: y = QConv2dAdd(x, residual=r)
    The operand must have no other use; of two, the later one is taken, so that the other one is
    there. The arithmetic is that of the two nodes, bit for bit.
    """
    uses, makers = graph.uses(), graph.producers()
    order = {node.name: i for i, node in enumerate(graph.nodes)}
    taken: set[str] = set()
    fused: dict[str, Node] = {}
    for node in graph.nodes:
        if not isinstance(node, ops.QAdd):
            continue
        ours = (n for n in (node.a, node.b) if len(uses[n]) == 1 and n not in graph.outputs)
        result = [
            (order[maker.name], maker.name, joined)
            for maker in map(makers.get, ours)
            if maker is not None and (joined := maker.with_addition(node)) is not None
        ]
        if result:
            _, maker_name, fused[node.name] = max(result, key=lambda each: each[0])
            taken.add(maker_name)
    nodes = [fused.get(n.name, n) for n in graph.nodes if n.name not in taken]
    return replace(graph, nodes=tuple(nodes))
