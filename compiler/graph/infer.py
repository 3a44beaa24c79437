"""The rules of a graph: what every pass leaves behind has to be well typed, and of its kinds.

Each operator has its own rule (``Node.result_shape``), each pass says which kinds of nodes it may
leave (``spec.py``); :func:`verify` checks a whole graph by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.graph.spec import Spec, unfused
from vdla.compiler.graph.types import TENSOR_DTYPES, TensorType


def verify(graph: Graph, spec: Spec | None = None, before: Graph | None = None) -> Graph:
    """Checks every rule of :mod:`vdla.compiler.graph.ir` and returns the graph.

    Args:
        graph: of any pass.
        spec: what it may hold after that pass; without it, any kinds of nodes.
        before: the graph that the pass was given, if it was checked; nodes of it whose tensors
            have kept their types aren't checked again.

    Raises:
        GraphError: names the node or tensor, what was expected and what was found.
    """
    known = set(graph.inputs) | set(graph.constants)
    names: set[str] = set()
    if spec is not None:
        spec.check(graph)
    changed = _changed(graph, before)
    checked = {id(node) for node in unfused(before.nodes)} if before else set()
    _verify_tensors(graph, changed)
    for node in unfused(graph.nodes):
        if node.name in names:
            raise GraphError(f"expected one node called {node.name}, found two")
        names.add(node.name)
        for name in node.inputs:
            if name not in known:
                raise node.error("operands defined before their use", name)
        if node.output in known:
            raise node.error("a tensor written once", node.output)
        known.add(node.output)
        if id(node) not in checked or not changed.isdisjoint((*node.inputs, node.output)):
            _verify_node(graph, node)
    for name in graph.outputs:
        if name not in known:
            raise GraphError(f"expected output {name} to be written by a node, found none")
    return graph


def _changed(graph: Graph, before: Graph | None) -> set[str]:
    """The tensors whose types aren't those of a graph that was checked before."""
    types: Mapping[str, TensorType] = before.tensors if before else {}
    return {name for name, kind in graph.tensors.items() if types.get(name) is not kind}


def _verify_tensors(graph: Graph, changed: Iterable[str]) -> None:
    for name in changed:
        kind = graph.tensors[name]
        if kind.dtype not in TENSOR_DTYPES:
            raise GraphError(
                f"tensor {name}: expected one of {', '.join(TENSOR_DTYPES)}, found {kind.dtype}"
            )
        if any(size < 0 for size in kind.shape):
            raise GraphError(f"tensor {name}: expected positive sizes, found {list(kind.shape)}")
    for name, array in graph.constants.items():
        kind = graph.tensors[name]
        if array.shape != kind.physical or str(array.dtype) != kind.dtype:
            actual = f"{array.dtype}{list(array.shape)}"
            raise GraphError(
                f"constant {name}: expected {kind.dtype}{list(kind.physical)}, found {actual}"
            )


def _verify_node(graph: Graph, node: Node) -> None:
    """Checks the types of what a node reads and writes."""
    for name in (*node.inputs, node.output):
        kind = graph.tensors[name]
        if 0 in kind.shape:
            raise GraphError(f"tensor {name}: expected positive sizes, found {list(kind.shape)}")
    kind = graph.tensors[node.output]
    shapes = [graph.tensors[name].shape for name in node.inputs]
    shape = node.result_shape(shapes)
    if shape is None:
        count = prod(kind.shape)
        if count != prod(shapes[0]):
            raise node.error(f"an output of {prod(shapes[0])} elements", list(kind.shape))
    elif shape != kind.shape:
        raise node.error(f"an output of shape {list(shape)}", list(kind.shape))
    verify_dtypes(graph.tensors, node)


def verify_dtypes(tensors: Mapping[str, TensorType], node: Node) -> None:
    """Checks the element types that ``node`` reads and writes.

    Raises:
        GraphError: one of them isn't for this operator.
    """
    out, result = tensors[node.output].dtype, _data_dtypes(tensors, node)
    reads, writes = node.READS, node.WRITES
    if isinstance(node, ops.Foreign):
        reads, writes = frozenset(result), frozenset({node.dtype})
    if not result <= reads:
        raise node.error(f"{' or '.join(sorted(reads))} data", ", ".join(sorted(result)))
    if out not in writes:
        raise node.error(f"a {' or '.join(sorted(writes))} result", out)


def _data_dtypes(tensors: Mapping[str, TensorType], node: Node) -> set[str]:
    """The dtypes of the operands that carry data; weights and biases have their own."""
    return {tensors[name].dtype for name in node.inputs if name not in node.parameters}
