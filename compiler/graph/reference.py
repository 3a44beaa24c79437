"""Interpreter of graphs, in numpy: the oracle for every target.

Each operator says what it means (``Node.evaluate``). Integer nodes are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, IntegerNode, Node
from vdla.compiler.graph.ops.blocks import pack, unpack
from vdla.compiler.graph.ops.control import results_of
from vdla.compiler.graph.types import Array

Functions = Mapping[str, Graph]


def evaluate(
    graph: Graph, inputs: Mapping[str, Array], functions: Functions | None = None
) -> dict[str, Array]:
    """Every tensor's value, by name; blocked tensors in their physical shape.

    ``functions`` are those that its nodes call by their names, where they aren't its own.
    """
    values = {**graph.constants, **{name: inputs[name] for name in graph.inputs}}
    values.update(iter_values(graph, values, functions))
    return values


def iter_values(
    graph: Graph, known: Mapping[str, Array], functions: Functions | None = None
) -> Iterator[tuple[str, Array]]:
    """The names and values of what nodes write, one after another; a value is forgotten behind the
    last node that reads it. ``known`` are those of inputs and constants, and maybe of others, whose
    nodes don't run."""
    values, last = (
        {**known},
        {name: n for n, node in enumerate(graph.nodes) for name in node.inputs},
    )
    for number, node in enumerate(graph.nodes):
        if node.output in known:
            continue
        operands = [values[name] for name in node.inputs]
        results: Sequence[Array]
        if isinstance(node, ops.Control):
            results = _evaluate_control(
                node, operands, graph.functions if functions is None else functions
            )
        else:
            results = [evaluate_node(graph, node, operands)]
        values.update(zip(node.outputs, results, strict=True))
        yield from zip(node.outputs, results, strict=True)
        for name in {*node.inputs, *node.outputs}:
            if last.get(name, number) == number:
                del values[name]


def _results(graph: Graph, operands: Sequence[Array], functions: Functions) -> list[Array]:
    """The results of a region or a function for operands in the order of its inputs."""
    values = evaluate(graph, dict(zip(graph.inputs, operands, strict=True)), functions)
    return [values[name] for name in graph.outputs]


def _evaluate_control(
    node: ops.Control, operands: Sequence[Array], functions: Functions
) -> Sequence[Array]:
    """The results of a node that holds graphs.

    Raises:
        GraphError: a loop goes on after as many turns as it has at most.
    """
    if isinstance(node, ops.If):
        condition, *captured = operands
        return _results(node.then if condition.all() else node.otherwise, captured, functions)
    if isinstance(node, ops.Call):
        return _results(functions[node.function], operands, functions)
    assert isinstance(node, ops.Loop)
    rows = [
        np.zeros((node.turns, *kind.shape), kind.dtype)
        for kind in results_of(node.body)[isinstance(node, ops.While) + node.carried :]
    ]
    go, operands = (operands[0], operands[1:]) if isinstance(node, ops.While) else (None, operands)
    carried, others = list(operands[: node.carried]), operands[node.carried :]
    scanned = node.scanned if isinstance(node, ops.Scan) else 0
    for turn in range(node.turns):
        if go is not None and not go.all():
            break
        slices = [each[turn] for each in others[:scanned]]
        inputs = [np.array(turn, np.int64), *carried, *slices, *others[scanned:]]
        results = _results(node.body, inputs, functions)
        if go is not None:
            go, *results = results
        carried = results[: node.carried]
        for row, value in zip(rows, results[node.carried :], strict=True):
            row[turn] = value
    else:
        if go is not None and go.all():
            raise node.error(f"an end after at most {node.turns} turns", "none")
    return [*carried, *rows]


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
