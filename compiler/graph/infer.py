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
        for name in node.outputs:
            if name in known:
                raise node.error("a tensor written once", name)
            known.add(name)
        if id(node) not in checked or not changed.isdisjoint((*node.inputs, *node.outputs)):
            _verify_node(graph, node)
    for name in graph.outputs:
        if name not in known:
            raise GraphError(f"expected output {name} to be written by a node, found none")
    return graph


def verify_whole(graph: Graph) -> Graph:
    """Checks a graph with its regions and functions: each by the rules of :func:`verify`, and that
    no two of their tensors or nodes have one name.

    A graph without functions may be a part of one that has them: what its calls say is taken.

    Raises:
        GraphError: as :func:`verify`, or a function calls one that isn't there.
    """
    tensors, nodes = set[str](), set[str]()
    for each in (graph, *graph.functions.values()):
        for part in each.whole():
            verify(part)
            _verify_names(part, tensors, nodes)
            for call in part.of(ops.Call) if graph.functions else ():
                _verify_call(call, part, graph.functions)
    return graph


def _verify_names(graph: Graph, tensors: set[str], nodes: set[str]) -> None:
    """Adds the names of a part of a graph to those of the parts before it."""
    for known, names in ((tensors, [*graph.tensors]), (nodes, [n.name for n in graph.nodes])):
        if twice := known.intersection(names):
            raise GraphError(f"{graph.name}: expected names of its own, found {min(twice)} again")
        known.update(names)


def _verify_call(node: ops.Call, graph: Graph, functions: Mapping[str, Graph]) -> None:
    """Checks that a function is there, and takes and gives what a call of it says."""
    if node.function not in functions:
        known = ", ".join(functions) or "none"
        raise node.error(f"a function of the graph ({known})", node.function)
    function = functions[node.function]
    node.check_inputs(function, [graph.tensors[name] for name in node.inputs])
    results = ops.control.results_of(function)
    if len(results) != len(node.shapes):
        raise node.error(f"{len(node.shapes)} results of {node.function}", len(results))
    for kind, name in zip(results, node.outputs, strict=True):
        node.check(f"a result of {node.function}", graph.tensors[name], kind)


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
    for name in (*node.inputs, *node.outputs):
        kind = graph.tensors[name]
        if 0 in kind.shape:
            raise GraphError(f"tensor {name}: expected positive sizes, found {list(kind.shape)}")
    if isinstance(node, ops.Control):
        _verify_control(graph, node)
        return
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


def _verify_control(graph: Graph, node: ops.Control) -> None:
    """Checks the types of what a node with regions reads and writes, and its regions."""
    kinds = node.result_types([graph.tensors[name] for name in node.inputs])
    if len(kinds) != len(node.outputs):
        raise node.error(f"{len(kinds)} results", len(node.outputs))
    for kind, name in zip(kinds, node.outputs, strict=True):
        node.check(f"a result {name}", kind, graph.tensors[name])
    for region in node.regions:
        verify(region)


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
    own = node.parameters
    return {tensors[name].dtype for name in node.inputs if name not in own}
