"""Operators for onnxruntime beside one another become one island: :func:`join_external`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made
from vdla.compiler.graph.ir import Graph

if TYPE_CHECKING:
    import onnx


def join_external(graph: Graph) -> Graph:
    """Joins Externals whose results only Externals of one island read.

    before: a = Resize(x); y = Pad(a)     after: y = Resize+Pad(x)
    onnxruntime then optimizes across all of them, and nothing between them is kept.
    """
    editor = Editor(graph)
    sinks: dict[str, str] = {}  # an External to the last one of its island
    for node in reversed(graph.of(ops.External)):
        readers = {sinks.get(user.name) for user in editor.readers(node.output)}
        (sink,) = readers if len(readers) == 1 else (None,)
        sinks[node.name] = node.name if sink is None or node.output in graph.outputs else sink
    islands: dict[str, list[ops.External]] = {}

    def joined(node: ops.External) -> Made:
        """The island of the last of its nodes; nothing in the place of others."""
        island = islands.setdefault(sinks[node.name], [])
        island.append(node)
        if sinks[node.name] != node.name:
            return ()
        return None if len(island) == 1 else _joined(island)

    return editor.walk(joined)


def _joined(island: Sequence[ops.External]) -> ops.External:
    """Nodes in their order as one, whose result is the last one's."""
    import onnx

    joint: Any = None
    inner: dict[str, str] = {}  # the graph's tensors to the joint model's
    operands: list[str] = []
    for number, node in enumerate(island):
        part = onnx.load_from_string(node.model)
        values = list(zip(node.operands, part.graph.input, strict=True))
        shared = {value.name: inner[operand] for operand, value in values if operand in inner}
        del part.graph.input[:]
        part.graph.input.extend(value for _, value in values if value.name not in shared)
        new = [operand for operand, _ in values if operand not in inner]
        _rename(part.graph, shared, f"{number}.")
        inner.update(zip(new, (value.name for value in part.graph.input), strict=True))
        operands += new
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


def _rename(graph: onnx.GraphProto, names: Mapping[str, str], prefix: str) -> None:
    """Gives a graph's own tensors and nodes a prefix, and other names to what it reads from
    outside; in the graphs inside its nodes, too.

    ``onnx.compose.add_prefix`` leaves what graphs inside nodes read from outside as it was.
    """
    values = (*graph.initializer, *graph.input)
    own = {each.name for each in values} | {n for node in graph.node for n in node.output if n}
    names = {**names, **{name: f"{prefix}{name}" for name in own}}
    for each in (*values, *graph.output, *graph.value_info):
        each.name = names.get(each.name, each.name)
    for node in graph.node:
        node.name = f"{prefix}{node.name}" if node.name else ""  # which several nodes may have
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                _rename(body, names, prefix)
