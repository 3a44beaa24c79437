"""Channel blocks for the accelerator, N, C, H, W for the processor, and the copies between them."""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.blocks import pack
from vdla.compiler.placement import ACCELERATOR, PROCESSOR, Placement, Placements


def layout(graph: Graph, placements: Placements, block: int) -> tuple[Graph, Placements]:
    """Gives accelerator tensors channel blocks and inserts Pack and Unpack at the boundaries.

    before: a = Quantize(x) on cpu; b = QConv2d(a) on vdla; c = QClip(b) on cpu
    after:  a.packed = Pack(a); b = QConv2d(a.packed): int8[…]/16; b.unpacked = Unpack(b);
            c = QClip(b.unpacked)

    An output of the graph that the accelerator writes keeps its name: it becomes the result of the
    Unpack, and the accelerator writes ``NAME.packed``. A constant operand is packed now.
    """
    walk = _Layout(graph, placements, block)
    return walk.editor.walk(walk.unblocked, walk.node), walk.placements


class _Layout:
    """One walk over a graph; ``blocked`` and ``plain`` have a tensor's forms, by its name, once
    there are some."""

    def __init__(self, graph: Graph, placements: Placements, block: int) -> None:
        self.graph, self.placements, self.block = graph, dict(placements), block
        self.editor = Editor(graph)
        self.blocked: dict[str, str] = {}
        self.plain: dict[str, str] = {}

    def unblocked(self, node: ops.Custom) -> Node:
        """A node whose tensors lie as the user says."""
        return node.renamed({name: self.as_it_lies(name) for name in node.inputs})

    def node(self, node: Node) -> Made:
        """A node that reads and writes tensors as its device has them."""
        names = [name for name in node.inputs if name not in node.parameters]
        if self.placements[node.name].device != ACCELERATOR:
            return node.renamed({name: self.as_it_lies(name) for name in names})
        node = node.renamed({name: self.in_blocks(name) for name in names})
        name, kind = node.output, replace(self.editor.tensors[node.output], block=self.block)
        if name not in self.graph.outputs:
            self.editor.retype(name, kind)
            self.blocked[name] = name
            return node
        self.blocked[name] = self.editor.tensor(f"{name}.packed", kind)
        return node.writing(self.blocked[name]), self.unpacked(name, name)

    def as_it_lies(self, name: str) -> str:
        """A tensor in N, C, H, W."""
        if self.blocked.get(name) == name and name not in self.plain:  # the accelerator wrote it
            result = self.editor.tensor(f"{name}.unpacked", self.graph.tensors[name])
            self.editor.insert(self.unpacked(name, result))
        return self.plain.get(name, name)

    def in_blocks(self, name: str) -> str:
        """A tensor in channel blocks."""
        if name not in self.blocked:
            kind = replace(self.editor.tensors[name], block=self.block)
            result = self.blocked[name] = self.editor.tensor(f"{name}.packed", kind)
            if (array := self.editor.constants.get(name)) is not None:
                self.editor.define(result, pack(array, self.block))
            else:
                made = ops.Pack(name=result, output=result, data=name, block=self.block)
                self.editor.insert(self.copy(made))
        return self.blocked[name]

    def unpacked(self, name: str, result: str) -> Node:
        """A copy of a tensor in blocks that is in N, C, H, W."""
        self.plain[name] = result
        data, block = self.blocked[name], self.block
        made = ops.Unpack(name=f"{name}.unpacked", output=result, data=data, block=block)
        return self.copy(made)

    def copy(self, node: Node) -> Node:
        """A node between both, which the processor runs."""
        self.placements[node.name] = Placement(PROCESSOR, node.NOT_ACCELERATED)
        return node
