"""Makers and readers of the tensors before and behind the nodes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.types import Shape

N = TypeVar("N", bound=Node)
Kinds = type[N] | tuple[type[N], ...]


class Neighbours:
    """A graph with who makes and who reads each of its tensors.

    ``tensors``, ``constants`` and ``reasons`` are the graph's, ``outputs`` their names.
    """

    def __init__(self, graph: Graph) -> None:
        self.tensors, self.constants, self.reasons = graph.tensors, graph.constants, graph.reasons
        self.inputs, self.outputs = frozenset(graph.inputs), frozenset(graph.outputs)
        self._makers, self._readers = dict(graph.producers), dict(graph.uses)

    def shape(self, name: str) -> Shape:
        """A tensor's shape."""
        return self.tensors[name].shape

    def is_alone(self, name: str) -> bool:
        """Whether one node reads a tensor, once, and it is no output."""
        return len(self._readers[name]) == 1 and name not in self.outputs

    def readers(self, name: str) -> Sequence[Node]:
        """The nodes that read a tensor, once per read."""
        return self._readers[name]

    def readers_of(self, name: str, kinds: Kinds[N]) -> list[N]:
        """The nodes of some kinds that read a tensor, once per read."""
        return [node for node in self._readers[name] if isinstance(node, kinds)]

    def maker(self, name: str | None, kinds: Kinds[N]) -> N | None:
        """The node that writes a tensor, if it is of some kinds."""
        node = self._makers.get(name or "")
        return node if isinstance(node, kinds) else None

    def own_maker(self, name: str | None, kinds: Kinds[N]) -> N | None:
        """The node of some kinds that writes a tensor which one node alone reads."""
        node = self.maker(name, kinds)
        return node if node is not None and self.is_alone(node.output) else None

    def own_reader(self, name: str, kinds: Kinds[N]) -> N | None:
        """The node of some kinds that alone reads a tensor."""
        node = self._readers[name][0] if self.is_alone(name) else None
        return node if isinstance(node, kinds) else None
