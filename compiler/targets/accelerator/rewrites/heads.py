"""Heads whose features end within a block, with features more that are always zero.

A product of two activations reads whole blocks of features. Heads of 24 features lie one behind
another, so that every second one begins within a block of 16: the dense layer that makes them gets
weights of zero for features that fill the blocks, and the one that reads them as many.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.types import Array, Shape
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.operators.template import unlike_blocks
from vdla.support.numbers import ceil_div

Axis = tuple[str, int]  # of a tensor


def pad_heads(graph: Graph, accelerator: Capability) -> Graph:
    """Fills the blocks of heads.

    before: d = QDense(x): [50, 48]; h = QReshape(d): [1, 50, 2, 24]; y = MatMul(DQ(h turned), ...)
    after:  d = QDense(x): [50, 64]; h = QReshape(d): [1, 50, 2, 32]; y = MatMul(DQ(h turned), ...)
    """
    block = accelerator.block
    if unlike_blocks(accelerator.config):
        return graph
    for node in graph.of(ops.MatMul):
        for name, axis in ((node.a, -1), (node.b, -1)):
            shape = graph.tensors[name].shape
            if shape[axis] % block:
                heads = _Heads(graph, shape[axis], ceil_div(shape[axis], block) * block)
                graph = heads.padded() if heads.follow((name, len(shape) + axis)) else graph
    return graph


@dataclass
class _Heads:
    """All tensors whose heads get more features: ``size`` become ``whole``.

    ``axes`` says by tensor which axis has the features, of one head or of several one behind
    another.
    """

    graph: Graph
    size: int
    whole: int
    axes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.makers, self.uses = self.graph.producers, self.graph.uses
        self.editor, self.constants = Editor(self.graph), self.graph.constants.keys()

    def shape(self, name: str) -> Shape:
        """A tensor's shape."""
        return self.graph.tensors[name].shape

    def follow(self, start: Axis) -> bool:
        """Notes all tensors that have a head's features, from dense layers to dense layers; False
        where an operator stands between that needs them as they are."""
        rest = [start]
        while rest:
            name, axis = rest.pop()
            if self.axes.setdefault(name, axis) != axis:
                return False
            nodes = [*self.uses[name], *([self.makers[name]] if name in self.makers else [])]
            inside = name in self.makers and name not in self.graph.outputs
            if not inside or self.shape(name)[axis] % self.size:
                return False
            for node in nodes:
                if (others := self.others(node, name, axis)) is None:
                    return False
                rest += [each for each in others if self.axes.get(each[0]) != each[1]]
        return True

    def others(self, node: Node, name: str, axis: int) -> list[Axis] | None:
        """Other axes at which an operator has the features of one of its tensors; None where it
        needs them as they are."""
        if isinstance(node, ops.QReshape):
            return self.of_reshape(node, name, axis)
        if isinstance(node, ops.QTake):
            return [(node.data, axis), (node.output, axis)] if self.in_runs(node, axis) else None
        tensors = *node.inputs, node.output  # whose last one is the RESULT
        shapes = list(map(self.shape, tensors))
        sets = (
            {(tensors[k], n) for k, n in axes}
            for axes in node.aligned_axes(shapes[:-1], shapes[-1])
        )
        together = [axes for axes in sets if (name, axis) in axes]
        if not together or not self.keeps_zero(node):
            return None
        own = node.parameters | (self.constants if isinstance(node, Requantized) else set())
        return [each for each in sorted(set().union(*together)) if each[0] not in own]

    def in_runs(self, node: ops.QTake, axis: int) -> bool:
        """Whether whole heads are taken along an axis."""
        parts = [np.array(node.tables()[axis][n :: self.size]) for n in range(self.size)]
        return all(np.array_equal(part, parts[0] + n) for n, part in enumerate(parts))

    def of_reshape(self, node: ops.QReshape, name: str, axis: int) -> list[Axis] | None:
        """The axis of the other shape whose elements follow one another at the same distance."""
        other = node.output if name == node.data else node.data
        before, shape = self.shape(name), self.shape(other)
        inner = prod(before[axis + 1 :])
        axes = [n for n, size in enumerate(shape) if size > 1 and prod(shape[n + 1 :]) == inner]
        return [(other, axes[0])] if axes and shape[axes[0]] % self.size == 0 else None

    def keeps_zero(self, node: Node) -> bool:
        """Whether the zero of an operator's data becomes that of its result."""
        if isinstance(node, Requantized):
            return node.requant.low <= node.requant.zero <= node.requant.high
        table = self.graph.constants.get(node.table) if isinstance(node, ops.QTable) else None
        if table is None:
            return not isinstance(node, ops.QTable)
        data, result = (self.graph.tensors[name].quant for name in (node.inputs[0], node.output))
        return bool(data and result and table[data.zero_point + 128] == result.zero_point)

    # With more features ------------------------------------------------------------------------

    def padded(self) -> Graph:
        """The graph in which all heads have whole blocks."""
        for name, axis in self.axes.items():
            kind = self.editor.tensors[name]
            sizes = [*kind.shape]
            sizes[axis] = sizes[axis] // self.size * self.whole
            self.editor.retype(name, replace(kind, shape=tuple(sizes)))
        return self.editor.walk(self.dense, self.by_element, self.take)

    def take(self, node: ops.QTake) -> Made:
        """Elements of heads with more features."""
        if node.output not in self.axes:
            return None
        shape = self.editor.shape(node.output)
        tables, axis = [list(table) for table in node.tables()], self.axes[node.output]
        starts = [first // self.size * self.whole for first in tables[axis][:: self.size]]
        tables[axis] = [start + n for start in starts for n in range(self.whole)]
        return replace(node, shape=shape, places=tuple(place for t in tables for place in t))

    def by_element(self, node: Requantized) -> Made:
        """An operator whose constant is zero where heads have more features."""
        if (axis := self.axes.get(node.output)) is None:
            return None
        editor = self.editor
        for name, zero in zip(node.own_inputs, node.zeros, strict=False):
            array = editor.constants.get(name)
            if array is not None and array.shape[axis] > 1:
                wide = (self.spread(array.astype(np.int16) - zero, axis) + zero).astype(np.int8)
                node = node.renamed({name: editor.constant(f"{node.name}.padded", wide)})
        return node

    def dense(self, node: ops.QDense) -> Made:
        """A dense layer that makes or reads heads with more features."""
        editor = self.editor
        weight, bias = editor.constants[node.weight], editor.constants[node.bias]
        scale = np.array(node.requant.scale)
        if self.axes.keys().isdisjoint((node.data, node.output)):
            return None
        if node.data in self.axes:
            weight = self.spread(weight, 1)
        if node.output in self.axes:
            weight, bias = self.spread(weight, 0), self.spread(bias, 0)
            scale = self.spread(scale, 0)
            scale[scale == 0] = node.requant.scale[0]  # of features that are zero with any
        return replace(
            node,
            weight=editor.constant(f"{node.name}.weight", np.ascontiguousarray(weight)),
            bias=editor.constant(f"{node.name}.bias", np.ascontiguousarray(bias)),
            requant=replace(node.requant, scale=tuple(float(each) for each in scale)),
        )

    def spread(self, array: Array, axis: int) -> Array:
        """An array with zeros behind the features of each head."""
        heads = np.moveaxis(array, axis, 0).reshape(-1, self.size, *np.delete(array.shape, axis))
        zeros = [(0, 0), (0, self.whole - self.size), *[(0, 0)] * (array.ndim - 1)]
        result = np.pad(heads, zeros)
        return np.moveaxis(result.reshape(-1, *result.shape[2:]), 0, axis)
