"""Reverse mode: gradients of a result in the tensors that it follows from.

Nodes are met from the last one to the first. What reaches a node is the gradient of its result,
the sum of what all its readers gave; its rule (``rules``) gives that of its operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vdla.compiler.autodiff import (  # whose rules enter themselves
    elements,
    moves,
    scatter,
    sums,
    windows,
)
from vdla.compiler.autodiff.control import back_through
from vdla.compiler.autodiff.rules import RULES
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Node
from vdla.compiler.tracing.arrays import Array, Trace
from vdla.compiler.tracing.errors import TraceError
from vdla.compiler.tracing.shapes import full_like

ROOMS = elements, moves, scatter, sums, windows
WITHOUT = (ops.ArgReduce,)  # results that are places, or whose slope is zero wherever it is defined


class Reverse:
    """One walk over nodes of a trace, from the last to the first.

    Attributes:
        trace: the innermost trace, which has the nodes and gets the gradients.
        gradients: by the names of tensors, the sum so far.
        follows: the tensors that follow from those whose gradients are wanted.
    """

    def __init__(self, trace: Trace, nodes: Sequence[Node], wanted: Iterable[str]) -> None:
        self.trace, self.nodes = trace, nodes
        self.gradients: dict[str, Array] = {}
        self.follows = set(wanted)
        for node in nodes:
            if not self.follows.isdisjoint(node.inputs):
                self.follows.update(node.outputs)

    def give(self, name: str, gradient: Array | None) -> None:
        """Adds to the gradient of a tensor that follows from those which are wanted."""
        if gradient is None or name not in self.follows:
            return
        before = self.gradients.get(name)
        self.gradients[name] = gradient if before is None else before + gradient

    def gradient(self, array: Array) -> Array:
        """The gradient of a tensor; zeros where the result doesn't follow from it."""
        known = self.gradients.get(array.name)
        return full_like(array, 0) if known is None else known

    def run(self) -> None:
        """Meets all nodes, from the last to the first.

        Raises:
            TraceError: a result follows from one by an operator that has no rule.
        """
        for node in reversed(self.nodes):
            if self.gradients.keys().isdisjoint(node.outputs):
                continue
            if not self.follows.isdisjoint(node.inputs):
                self._meet(node)

    def _meet(self, node: Node) -> None:
        """Gives its operands what follows from the gradient of a node's result."""
        kind = type(node)
        if kind in WITHOUT:
            return
        if isinstance(node, ops.Control):
            if not back_through(self, node, Reverse):
                raise _refusal(node)
            return
        operands = [Array(self.trace, name) for name in node.inputs]
        result, given = Array(self.trace, node.output), self.gradients[node.output]
        own = RULES.get(kind)
        parts = own(node, operands, result, given) if own else None
        if parts is None:
            raise _refusal(node)
        for name, part in zip(node.inputs, parts, strict=True):
            self.give(name, part)


def _refusal(node: Node) -> TraceError:
    """The error of a node that has no gradient."""
    actual = f"{node.op}, which is {node.name}"
    if isinstance(node, ops.While):
        actual += "; vdla.scan is a loop that has one"
    return TraceError("grad", "operators that have a gradient", actual)
