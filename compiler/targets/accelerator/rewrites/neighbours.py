"""Makers and readers of the tensors before and behind the nodes of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor
from vdla.compiler.graph.ir import Graph, Node, Shape

EXTREMES = {"int8": (-128, 127), "uint8": (0, 255)}  # the least and the greatest of each


N = TypeVar("N", bound=Node)


@dataclass(frozen=True)
class Neighbours:
    """A graph with who makes and who reads each of its tensors."""

    graph: Graph
    makers: Mapping[str, Node] = field(init=False)
    uses: Mapping[str, Sequence[Node]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "makers", self.graph.producers())
        object.__setattr__(self, "uses", self.graph.uses())

    def shape(self, name: str) -> Shape:
        """A tensor's shape."""
        return self.graph.tensors[name].shape

    def maker(self, name: str, kinds: type[N]) -> N | None:
        """The node that writes a tensor, if it is of some kind."""
        node = self.makers.get(name)
        return node if isinstance(node, kinds) else None

    def source(self, name: str) -> ops.Dequantize | None:
        """The Dequantize that makes a tensor of int8 with one scale; None where none does."""
        maker = self.maker(name, ops.Dequantize)
        if maker is None or maker.axis is not None:
            return None
        return maker if self.graph.tensors[maker.data].dtype == "int8" else None

    def early(self, node: ops.Quantize) -> bool:
        """Whether a node quantizes what no integers were before: an input, or a part of one."""
        rest = [node.data]
        while rest:
            maker = self.makers.get(rest.pop())
            if isinstance(maker, ops.Dequantize):
                return False
            rest += maker.inputs if maker is not None else ()
        return True

    def behind(self, node: ops.Quantize) -> list[Node]:
        """The float operators that make what a node quantizes, as far as the next Dequantize."""
        result, rest = dict[str, Node](), [node.data]
        while rest:
            maker = self.makers.get(rest.pop())
            if maker is not None and not isinstance(maker, ops.Dequantize):
                result[maker.name] = maker
                rest += maker.inputs
        return list(result.values())

    def late(self, node: ops.Dequantize) -> bool:
        """Whether nothing becomes integers again behind a node."""
        return not self.meets(node.output, ops.Quantize, (Node,))

    def meets(self, name: str, kind: type[Node], passed: tuple[type[Node], ...]) -> bool:
        """Whether a node of some kind follows, behind others that work by element."""
        rest = [name]
        while rest:
            for node in self.uses.get(rest.pop(), ()):
                if isinstance(node, kind):
                    return True
                if isinstance(node, passed) or node.ELEMENTWISE:
                    rest.append(node.output)
        return False


def quantizing(node: Node, editor: Editor) -> ops.Quantize | None:
    """The Quantize node with one scale that alone reads a node's result; None where there is
    none."""
    end = editor.own_reader(node.output, ops.Quantize)
    return end if end is not None and end.axis is None else None
