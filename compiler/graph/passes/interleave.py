"""Quantization, and operators by elements, moved from interleaved images to their parts."""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph


def move_interleave(graph: Graph) -> Graph:
    """Moves an Interleave behind the ReLU, the clip and the rounding that follow it.

    before: y = Quantize(Relu(Interleave(a, b)))
    after:  y = QInterleave(Quantize(Relu(a)), Quantize(Relu(b)))

    It is exact, since all of them work pixel by pixel.
    """
    return rewrite(graph, _rounded, _limited)


def _rounded(node: ops.Quantize, editor: Editor) -> Made:
    return _exchanged(node, editor, ops.QInterleave) if node.axis in (None, 1) else None


def _limited(node: ops.Relu | ops.Clip, editor: Editor) -> Made:
    return _exchanged(node, editor, ops.Interleave)


def _exchanged(
    node: ops.Quantize | ops.Relu | ops.Clip,
    editor: Editor,
    joins: type[ops.Interleave | ops.QInterleave],
) -> Made:
    """A node on each part, and the parts' results interleaved."""
    source = editor.own_maker(node.data, ops.Interleave)
    if source is None:
        return None
    kind = replace(editor.tensors[node.output], shape=editor.shape(source.parts[0]))
    before = [
        replace(
            node,
            name=f"{node.name}.{number}",
            output=editor.tensor(f"{node.output}.part{number}", kind),
            data=part,
        )
        for number, part in enumerate(source.parts)
    ]
    after = joins(
        name=source.name,
        output=node.output,
        parts=tuple(each.output for each in before),
        rows=source.rows,
        columns=source.columns,
    )
    editor.erase(source)
    return *before, after
