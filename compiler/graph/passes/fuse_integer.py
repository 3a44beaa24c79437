"""Integer operators that become one: :func:`fuse_clip`, :func:`fuse_residual`.

Both keep the arithmetic bit for bit; they save a pass over the data.
"""

from __future__ import annotations

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node


def fuse_clip(graph: Graph) -> Graph:
    """Lets an operator clip its own result.

    before: v = QConv2d(x), low=-128, high=127; y = QClip(v), scale=1, low=3
    after:  y = QConv2d(x), low=3, high=127

    Only a QClip that keeps scale and zero point, and a result with no other use.
    """
    return rewrite(graph, _clipped)


def _clipped(node: ops.QClip, editor: Editor) -> Made:
    """The operator that makes a clip's data, with its limits."""
    maker, requant = editor.own_maker(node.data, Node), node.requant
    if maker is None or (requant.scale, node.zeros) != ((1.0,), (requant.zero,)):
        return None
    clipped = maker.clipped(requant.low, requant.high)
    if clipped is None:
        return None
    editor.erase(maker)
    return clipped.writing(node.output)


def fuse_residual(graph: Graph) -> Graph:
    """Joins an addition to what makes one of its operands, where ``Node.with_step`` says how.

    before: v = QConv2d(x); y = QAdd(v, r)           after: y = QConv2d(x, + r)
    The operand must have no other use; of two, the later one is taken, so that the other one is
    there. The arithmetic is that of the two nodes, bit for bit.
    """
    return rewrite(graph, _added)


def _added(node: ops.QAdd, editor: Editor) -> Made:
    """The operator that makes the later operand and adds the other one."""
    makers = (editor.own_maker(name, Node) for name in (node.a, node.b))
    for maker in sorted(filter(None, makers), key=editor.position, reverse=True):
        joined = maker.with_step(node)
        if joined is not None:
            editor.erase(maker)
            return joined
    return None
