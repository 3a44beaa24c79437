"""Passes that compute, merge or drop what is known before run time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node, TensorType
from vdla.compiler.graph.ops.products import FloatProducts
from vdla.compiler.graph.reference import evaluate_node


def fold_batch_norm(graph: Graph) -> Graph:
    """Moves a BatchNorm into the weights of what it normalizes.

    before: y = BatchNorm(Conv2d(x, w, b), f, o)     after: y = Conv2d(x, w*f, b*f + o)
    """
    uses, makers = graph.uses(), graph.producers()
    constants, tensors = dict(graph.constants), dict(graph.tensors)
    swallowed: set[str] = set()
    folded: dict[str, Node] = {}
    for node in graph.nodes:
        maker = makers.get(node.data) if isinstance(node, ops.BatchNorm) else None
        if not (isinstance(node, ops.BatchNorm) and isinstance(maker, FloatProducts)):
            continue
        known = maker.weight in constants and (maker.bias is None or maker.bias in constants)
        if not known or len(uses[maker.output]) != 1 or maker.output in graph.outputs:
            continue
        weight, bias = f"{maker.name}.weight.folded", f"{maker.name}.bias.folded"
        factor, offset = constants[node.factor], constants[node.offset]
        constants[weight], constants[bias] = maker.scaled(factor, offset, constants)
        for name in (weight, bias):
            tensors[name] = TensorType(constants[name].shape, "float32")
        swallowed.add(maker.name)
        folded[node.name] = replace(maker, output=node.output, weight=weight, bias=bias)
    kept = tuple(folded.get(n.name, n) for n in graph.nodes if n.name not in swallowed)
    return replace(graph, nodes=kept, tensors=tensors, constants=constants)


def merge_duplicates(graph: Graph) -> Graph:
    """Keeps one of several nodes that compute the same thing.

    before: a = Quantize(x, s, z); b = Quantize(x, s, z)     after: a, and a wherever b was read
    """
    seen: dict[tuple[object, ...], str] = {}
    names: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        node = node.renamed(names)
        key = (type(node), node.inputs, tuple(node.attributes()), graph.tensors[node.output])
        if key in seen and node.output not in graph.outputs:
            names[node.output] = seen[key]
            continue
        seen.setdefault(key, node.output)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def fold_constants(graph: Graph) -> Graph:
    """Computes nodes whose operands are all constants.

    before: w = Dequantize(c)     after: w is a constant
    """
    constants = dict(graph.constants)
    nodes: list[Node] = []
    for node in graph.nodes:
        if all(name in constants for name in node.inputs) and node.output not in graph.outputs:
            operands = [constants[name] for name in node.inputs]
            constants[node.output] = np.asarray(evaluate_node(graph, node, operands))
        else:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes), constants=constants)


def fold_flatten(graph: Graph) -> Graph:
    """Lets a dense layer read a pooled 1x1 image as it is.

    before: QDense(QReshape(x[N, C, 1, 1]))     after: QDense(x)
    """
    makers = graph.producers()
    nodes: list[Node] = []
    for node in graph.nodes:
        source = makers.get(node.data) if isinstance(node, ops.QDense) else None
        if isinstance(source, ops.QReshape) and isinstance(node, ops.QDense):
            shape = graph.tensors[source.data].shape
            if len(shape) == 4 and shape[2:] == (1, 1) and _flat(graph, node, shape):
                node = replace(node, data=source.data)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _flat(graph: Graph, node: ops.QDense, shape: tuple[int, ...]) -> bool:
    return graph.tensors[node.data].shape == shape[:2]


def remove_dead(graph: Graph) -> Graph:
    """Drops nodes nobody reads, and the tensors and constants only they read."""
    live = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.output in live:
            kept.append(node)
            live.update(node.inputs)
    live.update(graph.inputs)
    return replace(
        graph,
        nodes=tuple(reversed(kept)),
        tensors={n: t for n, t in graph.tensors.items() if n in live},
        constants={n: a for n, a in graph.constants.items() if n in live},
    )
