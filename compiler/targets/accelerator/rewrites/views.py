"""Concatenations and slices without copies.

One image's channels lie in blocks one behind another, and so do images. A part of a concatenation
that ends with a whole block is a range of the result's bytes: what writes it writes it there. A
slice of whole blocks is a range of its data's bytes.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.types import Requant, Shape
from vdla.compiler.targets.accelerator.capability import Capability


def view_slices(graph: Graph, accelerator: Capability) -> Graph:
    """Makes slices of addresses, where the accelerator writes the data.

    before: y = QTake(x), channels 16 to 31 of all pixels    after: y = QTakeView(x)
    before: y = Take(x), rows 4 to 7 of all, int32           after: y = QTakeView(x)
    """

    def viewed(node: ops.QTake | ops.Take, editor: Editor) -> Made:
        maker = editor.maker(node.data, Node)
        ranges = _is_range(node, editor, accelerator.block)
        views = ranges and accelerator.takes(maker, editor)
        return ops.QTakeView(**node.values()) if views else None

    return rewrite(graph, viewed)


def _is_range(node: ops.QTake | ops.Take, editor: Editor, block: int) -> bool:
    """Whether a node takes all of some blocks of one image's channels, one behind another, or all
    of some vectors of int32."""
    shape = editor.shape(node.data)
    if type(node) is ops.Take and editor.tensors[node.output].dtype == "int32":
        return _is_range_of_rows(node, shape)
    if type(node) is not ops.QTake:
        return False
    if len(shape) not in (2, 4) or shape[0] != 1:
        return False
    batch, channels, *image = node.tables()
    first, end = channels[0], channels[0] + len(channels)
    whole = first % block == 0 and (end % block == 0 or end == shape[1])
    others = zip((batch, *image), (1, *shape[2:]), strict=True)
    return (
        first >= 0
        and whole
        and channels == tuple(range(first, end))
        and all(table == tuple(range(size)) for table, size in others)
    )


def _is_range_of_rows(node: ops.Take, shape: Shape) -> bool:
    """Whether a node takes whole vectors, one behind another."""
    return len(shape) == 2 and node.shape[1] == shape[1] and node.start_of_run(shape) is not None


def view_parts(graph: Graph, accelerator: Capability) -> Graph:
    """Makes concatenations of addresses; only parts that can't be views are copied.

    before: y = QConcat(a, b), a of 32 channels at the scale of y, b at another one
    after:  b' = QClip(b), at the scale of y; y = QConcatView(a, b')

    A tensor can be a part of one result alone, once; other results get a copy of it. A
    concatenation stays where none of its parts would be a view that the accelerator writes.
    """
    taken = set[str]()

    def joined(node: ops.QConcat, editor: Editor) -> Made:
        """Copies of some parts, and the result's addresses."""
        together = node.axis == 0 or (node.axis == 1 and editor.shape(node.output)[0] == 1)
        if type(node) is not ops.QConcat or not together or not accelerator.takes(node, editor):
            return None
        views = {n for n in range(len(node.parts)) if _may_be_view(node, n, taken, editor)}
        makers = (editor.maker(node.parts[n], Node) for n in views)
        if not any(accelerator.takes(maker, editor) for maker in makers):
            return None
        copies = {n: _copy(node, n, editor) for n in range(len(node.parts)) if n not in views}
        parts = [copies[n].output if n in copies else part for n, part in enumerate(node.parts)]
        taken.update(parts)
        fields = {
            **node.values(),
            "parts": tuple(parts),
            "zeros": (node.requant.zero,) * len(parts),
            "requant": Requant((1.0,) * len(parts), node.requant.zero),
        }
        return *copies.values(), ops.QConcatView(**fields)

    return rewrite(graph, joined)


def _may_be_view(node: ops.QConcat, number: int, taken: Container[str], editor: Editor) -> bool:
    """Whether a part is in the result as it is, and no view of another one, as those taken are."""
    name = node.parts[number]
    sliced = editor.maker(name, ops.QTakeView) is not None
    free = not sliced and name not in taken and name not in editor.constants
    return node.is_copy(number) and free and node.parts.index(name) == number


def _copy(node: ops.QConcat, number: int, editor: Editor) -> ops.QClip:
    """A part at the result's scale and within its limits, bit for bit as the node has it."""
    part, quant = node.parts[number], editor.tensors[node.output].quant
    kind = replace(editor.tensors[part], quant=quant)
    name = editor.tensor(f"{node.name}.part{number}", kind)
    return ops.QClip(
        name=name,
        output=name,
        data=part,
        zeros=node.zeros[number : number + 1],
        requant=replace(node.requant, scale=node.requant.scale[number : number + 1]),
    )
