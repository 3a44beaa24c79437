"""Distance of each layer from onnxruntime, each fed onnxruntime's own input tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.reference import evaluate_node, iter_layers
from vdla.compiler.graph.rounding import undecided
from vdla.compiler.graph.types import Array

MAX_SHARE = 0.001  # elements of a layer that may differ from the reference, by at most 1
Evaluate = Callable[[Graph, Node, Sequence[Array]], Array]


@dataclass(frozen=True)
class LayerDifference:
    """One layer's result against the reference's: counts of elements, and the largest step.

    ``ties`` of the ``different`` are one step apart where float32 may round either way; ``most`` is
    the part of the elements that may be one step apart for another reason.
    """

    name: str
    op: str
    elements: int
    different: int
    largest: int
    ties: int
    most: float = MAX_SHARE

    @property
    def share(self) -> float:
        """The part of the elements that differ and are no ties."""
        return (self.different - self.ties) / self.elements if self.elements else 0.0

    @property
    def holds(self) -> bool:
        """Whether elements differ by at most one step, seldom."""
        return self.largest <= 1 and self.share <= self.most

    @classmethod
    def of(
        cls, node: Node, got: Array, want: Array, either: Array | None, most: float = MAX_SHARE
    ) -> LayerDifference:
        """The difference of a node's result, where ``either`` of two neighbours may be right."""
        gap = np.abs(got.astype(np.int32) - want.astype(np.int32))
        ties = 0 if either is None else int(((gap == 1) & either).sum())
        different, largest = int((gap > 0).sum()), int(gap.max(initial=0))
        return cls(node.name, node.op, gap.size, different, largest, ties, most)


def layer_differences(
    graph: Graph, tensors: Mapping[str, Array], evaluate: Evaluate = evaluate_node
) -> list[LayerDifference]:
    """Compares every integer layer of ``graph`` with the tensors of ``ort_tensors``.

    Args:
        graph: a graph whose tensors still have their ONNX names (before layout).
        tensors: the reference's values.
        evaluate: what computes a node; the numpy reference unless given.
    """
    report = []
    values = {**graph.constants, **tensors}
    for node in iter_layers(graph):
        if node.output not in tensors or any(name not in values for name in node.inputs):
            continue
        operands = [as_int8(values[name], graph, name) for name in node.inputs]
        got = evaluate(graph, node, operands)
        want = as_int8(tensors[node.output], graph, node.output)
        report.append(LayerDifference.of(node, got, want, undecided(node, operands)))
    return report


def as_int8(array: Array, graph: Graph, name: str) -> Array:
    """A reference tensor as the graph has it: uint8 activations are 128 lower."""
    if array.dtype == np.uint8 and graph.tensors[name].dtype == "int8":
        return (array ^ np.uint8(0x80)).view(np.int8)
    return array


def unmatched(graph: Graph, tensors: Mapping[str, Array]) -> list[str]:
    """Layers :func:`layer_differences` can't compare, for lack of a reference tensor."""
    known = {*graph.constants, *tensors}
    return [
        n.name
        for n in iter_layers(graph)
        if n.output not in tensors or not known.issuperset(n.inputs)
    ]


def isolate(graph: Graph, node: Node) -> Graph:
    """``node`` alone: its activations are inputs (int8, as they are), its result the output."""
    names = {*node.inputs, node.output}
    return Graph(
        tuple(dict.fromkeys(graph.activations(node))),
        (node.output,),
        (node,),
        {n: t for n, t in graph.tensors.items() if n in names},
        {n: a for n, a in graph.constants.items() if n in names},
        node.name,
    )
