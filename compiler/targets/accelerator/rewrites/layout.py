"""Channel blocks for the accelerator, N, C, H, W for the processor, and the copies between them."""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.blocks import pack
from vdla.compiler.placement import (
    ACCELERATOR,
    PROCESSOR,
    Placement,
    Placements,
)


def layout(graph: Graph, placements: Placements, block: int) -> tuple[Graph, Placements]:
    """Gives accelerator tensors channel blocks and inserts Pack and Unpack at the boundaries.

    before: a = Quantize(x) on cpu; b = QConv2d(a) on vdla; c = QClip(b) on cpu
    after:  a.packed = Pack(a); b = QConv2d(a.packed): int8[…]/16; b.unpacked = Unpack(b);
            c = QClip(b.unpacked)

    An output of the graph that the accelerator writes keeps its name: it becomes the result of the
    Unpack, and the accelerator writes ``NAME.packed``. A constant operand is packed now.
    """
    return _Layout(graph, placements, block).run()


class _Layout:
    def __init__(self, graph: Graph, placements: Placements, block: int) -> None:
        self.graph, self.placements, self.block = graph, dict(placements), block
        self.tensors, self.constants = dict(graph.tensors), dict(graph.constants)
        self.blocked: dict[str, str] = {}  # logical name to its blocked form, once there is one
        self.plain: dict[str, str] = {}
        self.nodes: list[Node] = []

    def run(self) -> tuple[Graph, Placements]:
        for node in self.graph.nodes:
            accelerated = self.placements[node.name].device == ACCELERATOR
            accelerated &= not isinstance(node, ops.Custom)  # its tensors lie as the user says
            names = {n: self.operand(node, n, accelerated) for n in node.inputs}
            node = node.renamed(names)
            self.nodes.append(self.blocked_result(node) if accelerated else node)
            if accelerated and node.output in self.graph.outputs:
                self.unpack(node.output, node.output)
        graph = replace(
            self.graph,
            nodes=tuple(self.nodes),
            tensors=self.tensors,
            constants=self.constants,
        )
        return graph, self.placements

    def operand(self, node: Node, name: str, accelerated: bool) -> str:
        if name in node.parameters:
            return name
        if accelerated:
            return self.blocked.get(name) or self.pack(name)
        only_blocks = self.blocked.get(name) == name  # the accelerator wrote it
        if only_blocks and name not in self.plain:
            return self.unpack(name, f"{name}.unpacked")
        return self.plain.get(name, name)

    def blocked_result(self, node: Node) -> Node:
        name = node.output
        kind = replace(self.graph.tensors[name], block=self.block)
        if name in self.graph.outputs:
            node = node.writing(f"{name}.packed")
        self.blocked[name] = node.output
        self.tensors[node.output] = kind
        return node

    def pack(self, name: str) -> str:
        """A blocked copy of a plain tensor."""
        target = f"{name}.packed"
        self.blocked[name] = target
        self.tensors[target] = replace(self.graph.tensors[name], block=self.block)
        if name in self.constants:
            self.constants[target] = pack(self.constants[name], self.block)
            return target
        self.add(ops.Pack(name=target, output=target, data=name, block=self.block))
        return target

    def unpack(self, name: str, target: str) -> str:
        """A plain copy of a blocked tensor."""
        self.plain[name] = target
        self.tensors[target] = self.graph.tensors[name]
        source = self.blocked[name]
        node = ops.Unpack(name=f"{name}.unpacked", output=target, data=source, block=self.block)
        self.add(node)
        return target

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        self.placements[node.name] = Placement(PROCESSOR, node.NOT_ACCELERATED)
