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
    return rewrite(graph, _exchanged)


def _exchanged(node: ops.Quantize | ops.Relu | ops.Clip, editor: Editor) -> Made:
    """A node on each part, and the parts' results interleaved."""
    source = editor.own_maker(node.data, ops.Interleave)
    quantizes = isinstance(node, ops.Quantize)
    if source is None or (isinstance(node, ops.Quantize) and node.axis not in (None, 1)):
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
    joined = ops.QInterleave if quantizes else ops.Interleave
    after = joined(
        name=source.name,
        output=node.output,
        parts=tuple(each.output for each in before),
        rows=source.rows,
        columns=source.columns,
    )
    editor.erase(source)
    return *before, after
