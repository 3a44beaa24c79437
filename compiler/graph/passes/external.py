"""Operators for onnxruntime beside one another become one island: :func:`join_external`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node


def join_external(graph: Graph) -> Graph:
    """Joins Externals whose results only Externals of one island read.

    before: a = Resize(x); y = Pad(a)     after: y = Resize+Pad(x)
    onnxruntime then optimizes across all of them, and nothing between them is kept.
    """
    uses = graph.uses()
    sinks: dict[str, str] = {}  # an External to the last one of its island
    for node in reversed(graph.nodes):
        if not isinstance(node, ops.External):
            continue
        readers = {sinks.get(user.name) for user in uses[node.output]}
        (sink,) = readers if len(readers) == 1 else (None,)
        sinks[node.name] = node.name if sink is None or node.output in graph.outputs else sink
    islands: dict[str, list[ops.External]] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if not isinstance(node, ops.External):
            nodes.append(node)
            continue
        island = islands.setdefault(sinks[node.name], [])
        island.append(node)
        if sinks[node.name] == node.name:
            nodes.append(node if len(island) == 1 else _joined(island))
    return replace(graph, nodes=tuple(nodes))


def _joined(island: Sequence[ops.External]) -> ops.External:
    """Nodes in their order as one, whose result is the last one's."""
    import onnx

    joint: Any = None
    inner: dict[str, str] = {}  # the graph's tensors to the joint model's
    operands: list[str] = []
    for number, node in enumerate(island):
        part = onnx.load_from_string(node.model)
        onnx.compose.add_prefix(part, f"{number}.", rename_functions=False, inplace=True)
        names: dict[str, str] = {}
        inputs = list(part.graph.input)
        del part.graph.input[:]
        for operand, value in zip(node.operands, inputs, strict=True):
            if operand not in inner:
                inner[operand] = value.name
                operands.append(operand)
                part.graph.input.append(value)
            names[value.name] = inner[operand]
        for each in part.graph.node:
            each.input[:] = [names.get(name, name) for name in each.input]
        inner[node.output] = part.graph.output[0].name
        if joint is None:
            joint = part
            continue
        del joint.graph.output[:]
        for key in ("node", "initializer", "input", "output"):
            getattr(joint.graph, key).extend(getattr(part.graph, key))
    last = island[-1]
    return replace(
        last,
        name=island[0].name,
        operands=tuple(operands),
        model=joint.SerializeToString(),
        kinds=tuple(kind for node in island for kind in node.kinds),
        reason="; ".join(dict.fromkeys(node.reason for node in island)),
    )
