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
    """Joins an addition to the convolution that makes one of its operands.

    before: v = QConv2d(x); y = QAdd(v, r)           after: y = QConv2dAdd(x, residual=r)
    The convolution's result must have no other use; of two, the later one is taken, so that the
    other operand is there. The arithmetic is that of the two nodes, bit for bit.
    """
    uses, makers = graph.uses(), graph.producers()
    order = {node.name: i for i, node in enumerate(graph.nodes)}
    taken: set[str] = set()
    fused: dict[str, Node] = {}
    for node in graph.nodes:
        if not isinstance(node, ops.QAdd):
            continue
        convs = [
            maker
            for name in (node.a, node.b)
            if type(maker := makers.get(name)) is ops.QConv2d
            and len(uses[name]) == 1
            and name not in graph.outputs
        ]
        if convs:
            conv = max(convs, key=lambda n: order[n.name])
            assert isinstance(conv, ops.QConv2d)
            fused[node.name] = _with_residual(conv, node)
            taken.add(conv.name)
    nodes = [fused.get(n.name, n) for n in graph.nodes if n.name not in taken]
    return replace(graph, nodes=tuple(nodes))


def _with_residual(conv: ops.QConv2d, add: ops.QAdd) -> ops.QConv2dAdd:
    first = add.a == conv.output
    values = dict(conv.attributes())
    return ops.QConv2dAdd(
        name=conv.name,
        output=add.output,
        data=conv.data,
        weight=conv.weight,
        bias=conv.bias,
        residual=add.b if first else add.a,
        add_scales=add.scales if first else (add.scales[1], add.scales[0]),
        res_zp=add.b_zp if first else add.a_zp,
        add_zp=add.out_zp,
        add_lo=add.lo,
        add_hi=add.hi,
        **values,
    )
