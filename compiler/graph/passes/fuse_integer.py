"""Integer operators that become one: :func:`fuse_clip`, :func:`fuse_residual`.

Both keep the arithmetic bit for bit; they save a pass over the data.
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node


def fuse_clip(graph: Graph) -> Graph:
    """Lets an operator clip its own result.

    before: v = QConv2d(x, lo=-128, hi=127); y = QClip(v, scale=1, lo=3)
    after:  y = QConv2d(x, lo=3, hi=127)

    Only a QClip that keeps scale and zero point, and a result with no other use.
    """
    return rewrite(graph, _clipped)


def _clipped(node: ops.QClip, editor: Editor) -> Made:
    """The operator that makes a clip's data, with its limits."""
    maker = editor.own_maker(node.data, Node)
    if maker is None or not maker.CLIPS or node.scale != 1.0 or node.in_zp != node.out_zp:
        return None
    limits = {k: min(max(getattr(maker, k), node.lo), node.hi) for k in ("lo", "hi")}
    editor.erase(maker)
    return replace(maker, output=node.output, **limits)


def fuse_residual(graph: Graph) -> Graph:
    """Joins an addition to what makes one of its operands, where ``Node.with_addition`` says how.

    before: v = QConv2d(x); y = QAdd(v, r)           after: y = QConv2dAdd(x, residual=r)
    The operand must have no other use; of two, the later one is taken, so that the other one is
    there. The arithmetic is that of the two nodes, bit for bit.
    """
    return rewrite(graph, _added)


def _added(node: ops.QAdd, editor: Editor) -> Made:
    """The operator that makes the later operand and adds the other one."""
    makers = (editor.own_maker(name, Node) for name in (node.a, node.b))
    for maker in sorted(filter(None, makers), key=editor.position, reverse=True):
        joined = maker.with_addition(node)
        if joined is not None:
            editor.erase(maker)
            return joined
    return None
