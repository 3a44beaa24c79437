"""A graph once more, under other names, so that its nodes can stand in another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from vdla.compiler.graph.ir import Graph, Node


def clone(graph: Graph, prefix: str, given: Mapping[str, str]) -> Graph:
    """A copy of a graph whose own tensors and nodes have a prefix, in its regions, too.

    Args:
        graph: a region or a function.
        prefix: of all names.
        given: the tensors that stand for some of its inputs.
    """
    names = {name: given.get(name, f"{prefix}{name}") for name in graph.tensors}
    return Graph(
        tuple(names[name] for name in graph.inputs),
        tuple(names[name] for name in graph.outputs),
        tuple(_cloned(node, prefix, names) for node in graph.nodes),
        {names[name]: kind for name, kind in graph.tensors.items()},
        {names[name]: array for name, array in graph.constants.items()},
        f"{prefix}{graph.name}",
        {f"{prefix}{name}": reason for name, reason in graph.reasons.items()},
    )


def _cloned(node: Node, prefix: str, names: Mapping[str, str]) -> Node:
    """A node of a copy."""
    changes: dict[str, Any] = {"name": f"{prefix}{node.name}", "output": names[node.output]}
    if len(node.outputs) > 1:
        changes["others"] = tuple(names[name] for name in node.outputs[1:])
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Graph):
            changes[field.name] = clone(value, prefix, {})
    return replace(node.renamed(names), **changes)
