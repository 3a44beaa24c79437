"""Constant addends of dense layers, as their biases."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node, TensorType
from vdla.compiler.graph.passes.fold import remove_dead
from vdla.compiler.targets.accelerator.rewrites.neighbours import Neighbours


def fold_addends(graph: Graph) -> Graph:
    """Gives a dense layer the addend that nothing quantizes, where its product is quantized first.

    before: p = Q(Dense(x, w)); y = Q(DQ(p) + c)    after: y = Q(Dense(x, w, c))

    There are no integers for a sum of int8 and floats; a bias has more bits than int8. Addends that
    a file quantizes are sums of integers.
    """
    addends = _Addends(graph.copy())
    for node in graph.nodes:
        if isinstance(node, ops.Add):
            addends.visit(node)
    if not addends.biases:
        return graph
    nodes = [addends.made(node) for node in graph.nodes if node.output not in addends.sums]
    return remove_dead(replace(addends.graph, nodes=tuple(nodes)))


@dataclass
class _Addends:
    """``biases`` are layers' new ones by their names, ``sums`` the tensors that sums were."""

    graph: Graph
    biases: dict[str, str] = field(default_factory=dict)
    sums: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.around = Neighbours(self.graph)

    def visit(self, node: ops.Add) -> None:
        """Notes a sum that a layer's bias can be."""
        known = self.graph.constants
        pairs = [pair for pair in ((node.a, node.b), (node.b, node.a)) if pair[1] in known]
        maker = self.around.makers.get(pairs[0][0]) if pairs else None
        if not isinstance(maker, ops.Dequantize) or not self.alone(maker.output):
            return
        before = self.around.makers.get(maker.data)
        if not isinstance(before, ops.Quantize) or not self.alone(before.output):
            return
        product, layer = before.data, self.around.makers.get(before.data)
        if isinstance(layer, ops.Reshape) and self.alone(layer.output):
            layer = self.around.makers.get(layer.data)
        if not isinstance(layer, ops.Dense) or layer.bias or not self.alone(layer.output):
            return
        shape, value = self.around.shape(layer.output), known[pairs[0][1]]
        last = value.size in (1, value.shape[-1] if value.ndim else 1)
        alike = self.around.shape(node.output) == self.around.shape(product)
        if last and alike and node.output not in self.graph.outputs:
            bias = f"{layer.name}.addend"
            array = np.broadcast_to(value.reshape(-1), shape[-1:]).astype(np.float32)
            self.graph.constants[bias] = array
            self.graph.tensors[bias] = TensorType(array.shape, "float32")
            self.biases[layer.name], self.sums[node.output] = bias, product

    def alone(self, name: str) -> bool:
        """Whether one node reads a tensor."""
        return len(self.around.uses[name]) == 1 and name not in self.graph.outputs

    def made(self, node: Node) -> Node:
        """A node that reads what was added, or has it as its bias."""
        if node.name in self.biases:
            assert isinstance(node, ops.Dense)
            node = replace(node, bias=self.biases[node.name])
        return node.renamed(self.sums)
