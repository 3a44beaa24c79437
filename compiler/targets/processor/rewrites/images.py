"""Layout of images for a processor: channels in blocks wherever operators work on vectors of them.

before: y = Conv2d(x, w); z = MaxPool(y); r = Reshape(z)
after:  y = Conv2d(x, w): float32[…]/16; z = MaxPool(y): float32[…]/16; z.plain = Unpack(z);
        r = Reshape(z.plain)

Each operator's template says which block its result takes, else its node (``Node.channel_block``).
A convolution reads plain images and blocks, so that nothing is packed; what can't read blocks gets
a plain copy. A result of the graph is plain.
"""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.types import TensorType
from vdla.compiler.targets.processor.description.processor import Vectors
from vdla.compiler.targets.processor.operators import channel_block

DTYPES = ("float32", "int8")


def block_images(graph: Graph, vectors: Vectors) -> Graph:
    """The graph with images of floats and of int8 in blocks of as many channels as a vector has
    lanes, or half as many."""
    return _Blocker(graph, vectors).run()


class _Blocker:
    def __init__(self, graph: Graph, vectors: Vectors) -> None:
        self.graph, self.vectors = graph, vectors
        self.tensors = dict(graph.tensors)
        self.plain: dict[str, str] = {}  # what lies in blocks, to a plain copy of it
        self.blocked: dict[str, str] = {}  # a result of the graph, to its form in blocks
        self.nodes: list[Node] = []

    def run(self) -> Graph:
        for node in self.graph.nodes:
            if block := self.block(node):
                self.add_blocked(node, block)
            else:
                self.nodes.append(node.renamed({n: self.unpacked(n) for n in node.inputs}))
        return replace(self.graph, nodes=tuple(self.nodes), tensors=self.tensors)

    def block(self, node: Node) -> int:
        """Number of channels of a node's result that lie side by side."""
        kind = self.tensors[node.output]
        if kind.dtype not in DTYPES or len(kind.shape) != 4:
            return 0
        operands = [self.tensors[self.blocked.get(name, name)] for name in node.inputs]
        return channel_block(node, operands, self.graph.constants, self.vectors)

    def add_blocked(self, node: Node, block: int) -> None:
        name, kind = node.output, self.tensors[node.output]
        blocked = f"{name}.blocks" if name in self.graph.outputs else name
        self.tensors[blocked] = replace(kind, block=block)
        self.nodes.append(replace(node.renamed(self.blocked), output=blocked))
        if blocked != name:
            self.blocked[name] = blocked
            self.unpack(blocked, name, kind)

    def unpacked(self, name: str) -> str:
        """A tensor as N, C, H, W."""
        kind = self.tensors[name]
        if not kind.block:
            return name
        if name not in self.plain:
            self.unpack(name, f"{name}.plain", replace(kind, block=0))
        return self.plain[name]

    def unpack(self, source: str, target: str, kind: TensorType) -> None:
        block = self.tensors[source].block
        self.plain[source], self.tensors[target] = target, kind
        self.nodes.append(
            ops.Unpack(name=f"{source}.unpacked", output=target, data=source, block=block)
        )
