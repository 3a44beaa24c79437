"""Adjoints of operators, by their classes: what the gradient of a result says of the operands.

A rule gets a node, its operands ``x``, its result ``y`` and the gradient ``d`` of the result, all
of them arrays of the trace that grows, and gives the gradient of each operand, or None where there
is none. It is written in numpy's functions, which add nodes to the trace; so gradients are graphs
like any other, and have gradients themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Node
from vdla.compiler.tracing import elements as elements  # what is traced of numpy's functions
from vdla.compiler.tracing import shapes as shapes
from vdla.compiler.tracing.arrays import Array, Trace
from vdla.compiler.tracing.nodes import add
from vdla.compiler.tracing.shapes import SUM

Gradients = Sequence[Array | None] | None  # None where a node of such fields has no gradient
Rule = Callable[..., Gradients]  # of a node, its operands, its result, the result's gradient
R = TypeVar("R", bound=Rule)


class Walk(Protocol):
    """A walk over nodes of a trace, from the last to the first (``reverse``)."""

    trace: Trace
    gradients: dict[str, Array]

    def give(self, name: str, gradient: Array | None) -> None:
        """Adds to the gradient of a tensor."""

    def gradient(self, array: Array) -> Array:
        """The gradient of a tensor; zeros where the result doesn't follow from it."""

    def run(self) -> None:
        """Meets all nodes, from the last to the first."""


Begin = Callable[[Trace, Sequence[Node], Iterable[str]], Walk]  # by the names of what is wanted

RULES: dict[type[Node], Rule] = {}


def rule(*kinds: type[Node]) -> Callable[[R], R]:
    """Decorator of the rule of some operators."""

    def enter(function: R) -> R:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return enter


def variable(given: Array) -> Array:
    """A tensor of its own with an array's elements, to have a gradient of its own."""
    return add("variable", ops.Reshape, [given], given.type)


def gathered(d: Array, shape: Sequence[int]) -> Array:
    """The gradient of an operand of a shape that was broadcast: summed where it was repeated."""
    front = d.ndim - len(shape)
    pairs = zip(shape, d.shape[front:], strict=True)
    axes = (*range(front), *(front + n for n, (own, all_) in enumerate(pairs) if own != all_))
    return SUM(d, axis=axes, keepdims=True).reshape(*shape) if axes else d.reshape(*shape)
