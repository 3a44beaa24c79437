"""Slices of dense layers that are layers of their own: which become so, and that numbers stay."""

from __future__ import annotations

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.parts import part_layers
from vdla.isa.config import load_config

CAPABILITY = Capability(load_config("tiny"))


class Network:
    """A graph of vectors of int8, node by node."""

    def __init__(self, features, rows=1):
        self.rng, self.rows = np.random.default_rng(6), rows
        self.nodes, self.constants = [], {}
        self.tensors = {"x": TensorType((rows, features), "int8")}

    def constant(self, name, array):
        self.constants[name] = array
        self.tensors[name] = TensorType(array.shape, str(array.dtype))
        return name

    def add(self, node, channels):
        self.nodes.append(node)
        self.tensors[node.output] = TensorType((self.rows, channels), "int8")
        return node.output

    def dense(self, data, channels):
        name, features = f"dense{len(self.nodes)}", self.tensors[data].shape[1]
        shape = channels, features
        weight = self.constant(f"{name}.w", self.rng.integers(-127, 128, shape).astype(np.int8))
        bias = self.rng.integers(-500, 500, channels).astype(np.int32)
        node = ops.QDense(
            name=name,
            output=name,
            data=data,
            weight=weight,
            bias=self.constant(f"{name}.b", bias),
            zeros=(3,),
            requant=Requant(
                tuple(float(np.float32(s)) for s in self.rng.uniform(0.001, 0.004, channels)), -5
            ),
        )
        return self.add(node, channels)

    def total(self, a, b):
        name = f"sum{len(self.nodes)}"
        node = ops.QAdd(
            name=name, output=name, a=a, b=b, zeros=(1, 2), requant=Requant((0.5, 0.7), 3)
        )
        return self.add(node, self.tensors[a].shape[1])

    def take(self, data, first, last):
        name = f"take{len(self.nodes)}"
        places = (*range(self.rows), *range(first, last))
        shape = self.rows, last - first
        node = ops.QTake(name=name, output=name, data=data, shape=shape, places=places)
        return self.add(node, last - first)

    def graph(self, *outputs):
        graph = Graph(("x",), outputs, tuple(self.nodes), self.tensors, self.constants)
        return verify(graph)


def kinds(graph):
    return [node.op for node in graph.nodes]


def parted(graph):
    """The graph after the pass, which computes the same."""
    after = verify(part_layers(graph, CAPABILITY))
    x = np.random.default_rng(2).integers(-128, 128, graph.tensors["x"].shape, np.int8)
    wanted, result = evaluate(graph, {"x": x}), evaluate(after, {"x": x})
    for name in graph.outputs:
        np.testing.assert_array_equal(result[name], wanted[name])
    return after


def test_a_layer_in_two_parts():
    n = Network(7, rows=2)
    layer = n.dense("x", 10)
    graph = n.graph(n.take(layer, 0, 5), n.take(layer, 5, 10))
    assert kinds(parted(graph)) == ["QDense", "QDense"]


def test_parts_of_sums_of_layers():
    n = Network(7)
    layer = n.total(n.dense("x", 6), n.dense("x", 6))
    graph = n.graph(n.take(layer, 0, 3), n.take(layer, 3, 6))
    assert sorted(kinds(parted(graph))) == ["QAdd", "QAdd", *["QDense"] * 4]


def test_a_sum_with_a_constant():
    n = Network(7)
    values = n.constant("values", n.rng.integers(-128, 128, (1, 6)).astype(np.int8))
    layer = n.total(n.dense("x", 6), values)
    graph = n.graph(n.take(layer, 0, 3), n.take(layer, 3, 6))
    assert sorted(kinds(parted(graph))) == ["QAdd", "QAdd", "QDense", "QDense"]


def test_whole_blocks_are_addresses():
    n = Network(7)
    layer = n.dense("x", 10)
    graph = n.graph(n.take(layer, 0, 4), n.take(layer, 4, 10))
    assert part_layers(graph, CAPABILITY).nodes == graph.nodes


def test_a_layer_that_others_read_stays():
    n = Network(7)
    layer = n.dense("x", 10)
    whole = n.graph(layer, n.take(layer, 0, 5), n.take(layer, 5, 10))
    assert part_layers(whole, CAPABILITY).nodes == whole.nodes
    n.dense(layer, 3)
    read = n.graph(*(node.output for node in n.nodes if node.output != layer))
    assert part_layers(read, CAPABILITY).nodes == read.nodes


def test_slices_that_overlap_or_step_stay():
    n = Network(7)
    layer = n.dense("x", 10)
    graph = n.graph(n.take(layer, 0, 6), n.take(layer, 5, 10))
    assert part_layers(graph, CAPABILITY).nodes == graph.nodes
    n = Network(7)
    layer = n.dense("x", 10)
    places = (0, *range(0, 10, 2))
    step = ops.QTake(name="step", output="step", data=layer, shape=(1, 5), places=places)
    graph = n.graph(n.add(step, 5))
    assert part_layers(graph, CAPABILITY).nodes == graph.nodes
