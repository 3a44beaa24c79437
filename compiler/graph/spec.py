"""Named passes over a graph, and which kinds of nodes may exist after each.

What the frontend makes may exist from the beginning. Kinds that only passes make, ``MADE``, may
exist from the pass on that says so: :attr:`Pass.adds`. Images lie as N, C, H, W up to a pass that
gives them blocks of channels. ``verify(graph, spec)`` checks that, beside the types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import BY_OP, Graph, GraphError, IntegerNode, Node, Reader
from vdla.compiler.graph.ops.attention import QAttention
from vdla.compiler.graph.ops.epilogue import STEPS

F = TypeVar("F", bound=Callable[..., Any])
Kinds = frozenset[type[Reader]]

# A file's Reshape is on int8 at once where its tensor is; Im2col is made by a target alone.
_INTEGER = (kind for kind in BY_OP.values() if issubclass(kind, IntegerNode))
INTEGER: Kinds = frozenset(_INTEGER) - {ops.QReshape, ops.Im2col}
LAYOUT: Kinds = frozenset((ops.Pack, ops.Unpack))
MADE: Kinds = INTEGER | LAYOUT | {*STEPS, ops.FlipSign, ops.Im2col, ops.Fused, QAttention}


@dataclass(frozen=True)
class Pass(Generic[F]):
    """A pass over graphs; ``adds`` are the kinds of nodes that may exist from it on.

    ``blocks`` says that it gives images blocks of channels.
    """

    name: str
    run: F
    adds: Kinds = frozenset()
    blocks: bool = False


@dataclass(frozen=True)
class Spec:
    """Nodes and types that a graph may hold after the pass called ``name``: of the kinds in
    ``MADE``, those of ``made``; images in blocks of channels where ``blocks`` says so."""

    name: str = "imported"
    made: Kinds = frozenset()
    blocks: bool = False

    def after(self, done: Pass[Any]) -> Spec:
        """Specification after one more pass."""
        return Spec(done.name, self.made | done.adds, self.blocks or done.blocks)

    def check(self, graph: Graph) -> None:
        """Raises GraphError where a graph holds a node or a tensor that it may not hold."""
        later = MADE - self.made
        for node in with_parts(graph):
            if early := [kind.__name__ for kind in node.classes if kind in later]:
                known = ", ".join(sorted(kind.__name__ for kind in self.made)) or "none"
                raise GraphError(
                    f"after {self.name}: expected no kinds of nodes that passes make but {known}, "
                    f"found {node.name} ({early[0]})"
                )
        for name, kind in graph.tensors.items():
            if kind.block and not self.blocks:
                raise GraphError(
                    f"after {self.name}: expected images as [N, C, H, W], found {name} in blocks "
                    f"of {kind.block} channels"
                )


def spec_of(graph: Graph) -> Spec:
    """The spec of a graph that passes may have changed already: with the kinds that it has."""
    return Spec(made=MADE.intersection(kind for node in with_parts(graph) for kind in node.classes))


def with_parts(graph: Graph) -> tuple[Node, ...]:
    """A graph's nodes, fused ones with their parts behind all of them."""
    parts = (part for node in graph.nodes if isinstance(node, ops.Fused) for part in node.parts)
    return (*graph.nodes, *parts)


def unfused(nodes: Iterable[Node]) -> Iterator[Node]:
    """Nodes, with the parts of fused ones in their place."""
    for node in nodes:
        yield from node.parts if isinstance(node, ops.Fused) else (node,)
