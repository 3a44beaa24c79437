"""Ranges of float tensors that follow from a file: no number that it computes is outside of them.

Integers are bounded by their type, constants by themselves, a sum by the sums of its operands'
bounds, a normalization of C channels by √C deviations, and a function of one tensor, element by
element, by its values. So no tensor has to be measured. What follows from nothing has no range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.clusters.matcher import Deviation, deviation_of, shares_of
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.measured import Ends
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.quantize import AnyDequantize
from vdla.compiler.graph.types import Array

POINTS = 8192  # of a tensor's range, at which functions of it are computed
MOST_ELEMENTS = 1 << 22  # of a tensor whose bounds differ by elements
LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}
MARGIN = 1 / 16  # of a measured range, on either side: what other samples may have
MOVES = (ops.Reshape, ops.Transpose, ops.Take)


@dataclass(frozen=True)
class Range:
    """The least and the greatest number of each element, or of those that share one: arrays that
    broadcast to the tensor's shape."""

    low: Array
    high: Array

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest number of all elements."""
        return float(self.low.min()), float(self.high.max())

    @property
    def whole(self) -> Range:
        """One range for all elements."""
        return Range(*map(np.asarray, self.ends))

    @classmethod
    def of(cls, corners: Sequence[Array]) -> Range:
        """The range between the extremes of several arrays."""
        some = np.broadcast_arrays(*corners)
        return cls(np.minimum.reduce(some), np.maximum.reduce(some))


class Ranges:
    """The ranges of a graph's tensors, by their names.

    Attributes:
        known: the ranges.
        roots: by a tensor's name, the tensor of its shape that it is a function of, element by
            element; itself where it is a function of none.
        normalized: normalizations by the names of their results.
        inside: what a normalization reads, by the names of the tensors that are nothing but parts
            of it, which have no range.
        shared: what softmax reads, by the names of results.
    """

    def __init__(self, graph: Graph, measured: Ends | None = None) -> None:
        """The ranges of a graph; ``measured`` are the least and the greatest number that tensors of
        floats have on samples, inputs included."""
        self.graph = graph = graph.copy(constants=_terms(graph))
        self.around = Neighbours(graph)
        self.known: dict[str, Range] = {}
        self.roots: dict[str, str] = {}
        self.normalized: dict[str, Deviation] = {}
        self.shared: dict[str, str] = {}
        for name, array in graph.constants.items():
            if graph.tensors[name].dtype == "float32" and array.size:
                self.known[name] = Range(array, array)
        self.measured = measured or {}
        for name in graph.inputs:
            if name in self.measured and graph.tensors[name].dtype == "float32":
                self.known[name] = Range(*map(np.asarray, self.measured[name]))
        for node in graph.nodes:
            self._follow(node)
        whole = self.normalized.items()
        self.inside = {n: each.data for name, each in whole for n in self._inside(name, each.data)}
        for name in self.inside:
            self.known.pop(name, None)

    def _inside(self, result: str, data: str) -> Iterator[str]:
        """The tensors between a normalization's data and its result."""
        left, seen = [result], {data}
        while left:
            if (name := left.pop()) in seen:
                continue
            seen.add(name)
            if node := self.around.maker(name, Node):
                left += node.inputs
                if name != result:
                    yield name

    def _follow(self, node: Node) -> None:
        name = node.output
        self.roots[name] = self._root(node)
        with np.errstate(all="ignore"):
            own = self._within(node, self._range(node))
        if own is None or not np.isfinite(own.ends).all():
            return
        large = own.low.size > MOST_ELEMENTS
        self.known[name] = own.whole if large else own

    def _within(self, node: Node, own: Range | None) -> Range | None:
        """The part of a result's range that samples reach, with a margin; integers' is their
        own."""
        ends = self.measured.get(node.output)
        if ends is None or isinstance(node, AnyDequantize):
            return own
        margin = MARGIN * (ends[1] - ends[0] or abs(ends[0]))
        low, high = ends[0] - margin, ends[1] + margin
        if own is None:
            return Range(np.asarray(low), np.asarray(high))
        return Range(np.clip(own.low, low, high), np.clip(own.high, low, high))

    def _root(self, node: Node) -> str:
        """The tensor that a node's result is a function of."""
        known, name = self.graph.constants, node.output
        operands = [n for n in node.inputs if not (n in known and known[n].size == 1)]
        by_element = node.by_element and not isinstance(node, ops.Quantize | AnyDequantize)
        roots = {self.roots.get(n, n) for n in operands}
        if not by_element or len(roots) != 1:
            return name
        (root,) = roots
        alike = self.around.shape(root) == self.around.shape(name)
        return root if alike and root not in known else name

    def _range(self, node: Node) -> Range | None:
        """The range of a node's result."""
        if node.output in self.graph.constants:
            return self.known[node.output]
        if isinstance(node, AnyDequantize):
            return self._dequantized(node)
        if shares := shares_of(node.output, self.around):
            self.shared[node.output] = shares.data
            return Range(np.zeros(()), np.ones(()))
        if whole := deviation_of(node.output, self.around):
            self.normalized[node.output] = whole
            return self._deviation(whole)
        if isinstance(node, ops.Add | ops.Binary):
            return self._combined(node)
        if isinstance(node, ops.Relu | ops.Clip | ops.Unary):
            return self.values(node.output)
        if isinstance(node, ops.Where):
            return self._either([node.a, node.b])
        if isinstance(node, ops.Concat):
            return self._either(node.parts)
        if isinstance(node, MOVES) and node.inputs[0] in self.known:
            return self.known[node.inputs[0]].whole
        return None

    def _dequantized(self, node: AnyDequantize) -> Range | None:
        """The range of what integers stand for."""
        limits = LIMITS.get(self.graph.tensors[node.data].dtype)
        if node.axis is not None or limits is None:
            return None
        return Range(*(np.asarray((n - node.zero_point[0]) * node.scale[0]) for n in limits))

    def _deviation(self, whole: Deviation) -> Range | None:
        """The range of a normalization: no channel is further from the mean than √C deviations."""
        most = sqrt(whole.gamma.size) * np.abs(whole.gamma)
        rank = len(self.around.shape(whole.data))
        if whole.axes != (rank - 1,):
            return Range(whole.beta - most, whole.beta + most).whole
        return Range(whole.beta - most, whole.beta + most)

    def _either(self, names: Sequence[str]) -> Range | None:
        """The range of several tensors together."""
        ends = [self.known[name].ends for name in names if name in self.known]
        if len(ends) < len(names):
            return None
        return Range(np.asarray(min(a for a, _ in ends)), np.asarray(max(b for _, b in ends)))

    def _combined(self, node: ops.Add | ops.Binary) -> Range | None:
        """The range of a function of two tensors, or of one that it reads twice."""
        root = self.roots[node.output]
        if root != node.output:
            return self.values(node.output)
        a, b = self.known.get(node.a), self.known.get(node.b)
        if a is None or b is None:
            return None
        if isinstance(node, ops.Add):
            return Range(a.low + b.low, a.high + b.high)
        if node.function == "sub":
            return Range(a.low - b.high, a.high - b.low)
        if node.function in ("max", "min"):
            larger = np.maximum if node.function == "max" else np.minimum
            return Range(larger(a.low, b.low), larger(a.high, b.high))
        if node.function == "mul":
            return Range.of([x * y for x in (a.low, a.high) for y in (b.low, b.high)])
        return None

    def path(self, name: str) -> set[str]:
        """The names of the nodes by which a tensor is a function of its root."""
        result, left, root = set[str](), [name], self.roots.get(name, name)
        while left:
            node = self.around.maker(name := left.pop(), Node)
            if name != root and node is not None and node.name not in result:
                result.add(node.name)
                left += [n for n in node.inputs if n not in self.graph.constants]
        return result

    # Functions of one tensor -------------------------------------------------------------------

    def points(self, root: str) -> Array | None:
        """Numbers all over a tensor's range: all that it can be where that is int8."""
        if root not in self.known:
            return None
        low, high = self.known[root].ends
        maker = self.around.maker(root, ops.Dequantize)
        count = POINTS
        if maker is not None and self.graph.tensors[maker.data].dtype in ("int8", "uint8"):
            count = 256
        return np.linspace(low, high, count).astype(np.float32)

    def at(self, name: str, points: Array) -> Array:
        """A tensor's values where its root's are points."""
        values = {self.roots[name]: points}
        left = [name]
        while left:
            node = self.around.maker(left[-1], Node)
            if left[-1] in values or node is None:
                left.pop()
                continue
            missing = [n for n in node.inputs if n not in values and n not in self.graph.constants]
            if missing:
                left += missing
                continue
            args = [self._operand(n, values) for n in node.inputs]
            kind = replace(self.graph.tensors[left.pop()], shape=points.shape)
            with np.errstate(all="ignore"):
                values[node.output] = np.asarray(node.evaluate(args, kind))
        return values[name]

    def _operand(self, name: str, values: dict[str, Array]) -> Array:
        """A tensor's values, or the number that it is."""
        return values[name] if name in values else self.graph.constants[name].reshape(())

    def values(self, name: str) -> Range | None:
        """The range of a function of one tensor: what it is between two points is no further than
        both are from each other."""
        points = self.points(self.roots.get(name, name))
        if points is None or self.roots[name] == name:
            return None
        values = self.at(name, points).astype(np.float64)
        slack = np.abs(np.diff(values)).max() if len(values) == POINTS else 0.0
        return Range(np.asarray(values.min() - slack), np.asarray(values.max() + slack))


def _terms(graph: Graph) -> dict[str, Array]:
    """The real numbers of integers that are constants and what works by element reads."""
    result, uses = {}, graph.uses
    for node in graph.of(ops.Dequantize):
        read = any(isinstance(each, ops.Add | ops.Binary) for each in uses[node.output])
        if read and node.data in graph.constants:
            kind = graph.tensors[node.output]
            result[node.output] = node.evaluate([graph.constants[node.data]], kind)
    return result
