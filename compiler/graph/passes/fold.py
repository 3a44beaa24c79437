"""Passes that compute, merge or drop what is known before run time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Array, Graph, Node, Shape, TensorType
from vdla.compiler.graph.ops.products import FloatProducts
from vdla.compiler.graph.reference import evaluate_node


def fold_scales(graph: Graph) -> Graph:
    """Moves a factor and an offset of each channel into the weights of what they are applied to.

    before: y = BatchNorm(Conv2d(x, w, b), f, o)     after: y = Conv2d(x, w*f, b*f + o)
    before: y = Add(Mul(Conv2d(x, w, b), f), o)      after: y = Conv2d(x, w*f, b*f + o)
    """
    uses, constants, tensors = graph.uses(), dict(graph.constants), dict(graph.tensors)
    makers: dict[str, Node] = {}  # by what they write, in the graph's order
    for node in graph.nodes:
        makers[node.output] = node
        scales = _scales(node, graph)
        maker = makers.get(scales[0]) if scales else None
        if scales is None or not isinstance(maker, FloatProducts):
            continue
        data, factor, offset = scales
        known = maker.weight in constants and (maker.bias is None or maker.bias in constants)
        if not known or len(uses[data]) != 1 or data in graph.outputs:
            continue
        with np.errstate(all="ignore"):
            folded = maker.scaled(factor, offset, constants)
        if not all(np.isfinite(value).all() for value in folded):
            continue  # a sum of infinities is no number where a sum times infinity is one
        weight, bias = f"{maker.name}.weight.folded", f"{maker.name}.bias.folded"
        for name, value in zip((weight, bias), folded, strict=True):
            constants[name], tensors[name] = value, TensorType(value.shape, "float32")
        del makers[data]
        makers[node.output] = replace(maker, output=node.output, weight=weight, bias=bias)
    return replace(graph, nodes=tuple(makers.values()), tensors=tensors, constants=constants)


def _scales(node: Node, graph: Graph) -> tuple[str, Array, Array] | None:
    """Tensor that a node multiplies by a factor and adds an offset to, with these two, one of each
    for every channel; None for another node."""
    if isinstance(node, ops.BatchNorm):
        return node.data, graph.constants[node.factor], graph.constants[node.offset]
    function = node.function if isinstance(node, ops.Binary) else "add"
    if not isinstance(node, ops.Add | ops.Binary) or function not in ("add", "sub", "mul", "div"):
        return None
    shape, (a, b) = graph.tensors[node.output].shape, (node.a, node.b)
    if a in graph.constants and function in ("add", "mul"):
        a, b = b, a
    value = _by_channel(graph, b, shape)
    if value is None or graph.tensors[a].shape != shape:
        return None
    if function in ("mul", "div"):
        with np.errstate(all="ignore"):
            return a, value if function == "mul" else 1 / value, np.zeros_like(value)
    return a, np.ones_like(value), value if function == "add" else -value


def _by_channel(graph: Graph, name: str, shape: Shape) -> Array | None:
    """One value of a constant for every channel of a result; None where it isn't so."""
    value = graph.constants.get(name)
    if value is None or value.dtype != np.float32 or len(shape) < 2 or value.ndim > len(shape):
        return None
    whole = value.reshape((1,) * (len(shape) - value.ndim) + value.shape)
    if whole.size != whole.shape[1]:
        return None
    return np.ascontiguousarray(np.broadcast_to(whole.reshape(-1), shape[1:2]))


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
    """Computes nodes whose operands are all constants, but for the integers of a product's factor.

    before: w = Dequantize(c)     after: w is a constant
    """
    constants, uses = dict(graph.constants), graph.uses()
    nodes: list[Node] = []
    for node in graph.nodes:
        known = all(name in constants for name in node.inputs) and node.output not in graph.outputs
        factor = any(isinstance(user, ops.MatMul) for user in uses[node.output])
        if known and not (factor and isinstance(node, ops.Dequantize)):
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
