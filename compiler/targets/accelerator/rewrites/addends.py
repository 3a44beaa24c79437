"""Constant addends and factors of dense layers, as their biases and the scales of their weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Array, Graph, Node, TensorType
from vdla.compiler.graph.passes.fold import remove_dead
from vdla.compiler.targets.accelerator.rewrites.neighbours import Neighbours


def fold_addends(graph: Graph) -> Graph:
    """Gives a dense layer the addend or factor of each feature that nothing quantizes, where its
    product is quantized first.

    before: p = Q(Dense(x, w)); y = Q(DQ(p) + c)    after: y = Q(Dense(x, w, c))
    before: p = Q(Dense(x, w)); y = Q(DQ(p) * f)    after: y = Q(Dense(x, w * f)), w of int8

    There are no integers for a sum of int8 and floats; a bias has more bits than int8. Addends that
    a file quantizes are sums of integers.
    """
    layers = _Layers(graph)
    for name in [n.name for n in graph.nodes if isinstance(n, ops.Add | ops.Binary)]:
        if folded := layers.folded(name):
            layers = _Layers(folded)
    return layers.graph


@dataclass
class _Layers:
    """The dense layers of a graph; what changes of it goes by the nodes' names."""

    graph: Graph
    around: Neighbours = field(init=False)

    def __post_init__(self) -> None:
        self.around = Neighbours(self.graph)

    def folded(self, name: str) -> Graph | None:
        """The graph with one sum or product folded; None where that is none of a layer's."""
        node = self.graph.node(name)
        match = self.layer(node) if node.output not in self.graph.outputs else None
        if match is None:
            return None
        (layer, product, value), before = match, self.graph
        self.graph = before.copy()
        change = self.added if isinstance(node, ops.Add) else self.scaled
        if not (changed := change(layer, value)):
            self.graph = before
            return None
        nodes = (changed.get(each.name, each) for each in before.nodes if each.name != name)
        return remove_dead(self.graph.copy(n.renamed({node.output: product}) for n in nodes))

    def layer(self, node: Node) -> tuple[ops.Dense, str, Array] | None:
        """The dense layer whose quantized product a node combines with a constant, the product, and
        the constant, one value for each feature."""
        known = self.graph.constants
        if not isinstance(node, ops.Add | ops.Binary) or (node.a in known) == (node.b in known):
            return None
        if isinstance(node, ops.Binary) and node.function != "mul":
            return None
        data, constant = (node.b, node.a) if node.a in known else (node.a, node.b)
        maker = self.only(data)
        before = self.only(maker.data) if isinstance(maker, ops.Dequantize) else None
        if not isinstance(before, ops.Quantize):
            return None
        layer = self.only(before.data)
        layer = self.only(layer.data) if isinstance(layer, ops.Reshape) else layer
        value = known[constant].astype(np.float64)
        each = value.size in (1, value.shape[-1] if value.ndim else 1)
        alike = self.around.shape(node.output) == self.around.shape(before.data)
        if not isinstance(layer, ops.Dense) or not (each and alike):
            return None
        features = self.around.shape(layer.output)[-1:]
        return layer, before.data, np.broadcast_to(value.reshape(-1), features)

    def only(self, name: str) -> Node | None:
        """What makes a tensor that one node reads."""
        alone = len(self.around.uses[name]) == 1 and name not in self.graph.outputs
        return self.around.makers.get(name) if alone else None

    def bias(self, layer: ops.Dense) -> Array | None:
        """The bias of a layer, zeros where it has none; None where it is none of floats."""
        if layer.bias is None:
            return np.zeros(self.around.shape(layer.output)[-1:])
        return self.graph.constants.get(layer.bias)

    def added(self, layer: ops.Dense, value: Array) -> dict[str, Node]:
        """A layer with an addend in its bias."""
        if (bias := self.bias(layer)) is None:
            return {}
        return {
            layer.name: replace(layer, bias=self.constant(f"{layer.name}.addend", bias + value))
        }

    def scaled(self, layer: ops.Dense, value: Array) -> dict[str, Node]:
        """A layer with factors in the scales of its weights and in its bias."""
        bias, weight = self.bias(layer), self.only(layer.weight)
        array = (
            self.graph.constants.get(weight.data) if isinstance(weight, ops.Dequantize) else None
        )
        if bias is None or array is None or not isinstance(weight, ops.Dequantize):
            return {}
        plain = not any(weight.zero_point) and array.min() > np.iinfo(np.int8).min
        if weight.axis not in (None, 0) or not plain or not value.all():
            return {}
        integers = f"{layer.name}.signed"
        signed = (array * np.sign(value)[:, np.newaxis]).astype(array.dtype)
        self.graph.constants[integers] = signed
        self.graph.tensors[integers] = self.graph.tensors[weight.data]
        scale = np.broadcast_to(np.array(weight.scale), value.shape) * np.abs(value)
        numbers = tuple(float(np.float32(each)) for each in scale)
        made = replace(weight, data=integers, scale=numbers, zero_point=(0,) * len(numbers), axis=0)
        bias_name = self.constant(f"{layer.name}.factored", bias * value)
        return {weight.name: made, layer.name: replace(layer, bias=bias_name)}

    def constant(self, name: str, array: Array) -> str:
        """A new constant of float32."""
        self.graph.constants[name] = array.astype(np.float32)
        self.graph.tensors[name] = TensorType(array.shape, "float32")
        return name
