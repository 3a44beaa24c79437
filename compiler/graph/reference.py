"""Interpreter of graphs, in numpy: the oracle for every target.

Each operator says what it means (``Node.evaluate``). Integer nodes are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, IntegerNode, Node
from vdla.compiler.graph.ops.blocks import pack, unpack
from vdla.compiler.graph.types import Array


def evaluate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor's value, by name; blocked tensors in their physical shape."""
    values = {**graph.constants, **{name: inputs[name] for name in graph.inputs}}
    for node in graph.nodes:
        operands = [values[name] for name in node.inputs]
        values[node.output] = evaluate_node(graph, node, operands)
    return values


def evaluate_node(graph: Graph, node: Node, operands: Sequence[Array]) -> Array:
    """The value ``node`` writes when it reads ``operands`` (physical shapes in and out)."""
    kind = graph.tensors[node.output]
    if isinstance(node, ops.Fused):
        values = dict(zip(node.inputs, operands, strict=True))
        for part in node.parts:
            values[part.output] = evaluate_node(graph, part, [values[n] for n in part.inputs])
        return values[node.output]
    if isinstance(node, ops.Pack | ops.Unpack):
        return node.evaluate(operands, kind)
    logical = [
        unpack(value, graph.tensors[name].shape) if graph.tensors[name].block else value
        for name, value in zip(node.inputs, operands, strict=True)
    ]
    result = node.evaluate(logical, kind)
    return pack(result, kind.block) if kind.block else result


def iter_layers(graph: Graph) -> Iterator[Node]:
    """The nodes that do integer arithmetic: what a per-layer report lists."""
    return (n for n in graph.nodes if isinstance(n, IntegerNode) and not n.CONVERTS)
