"""Files as onnx's checker wants them, though onnxruntime and vdla run them as they are.

Exporters write nodes in any order, spell out the default domain ``ai.onnx``, leave out types of
outputs, list no initializer among the inputs of an IR 3 file, and use operators that ONNX has
withdrawn or never had. None of it hinders who infers types and has the operators.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush

import onnx
from onnx import helper

from vdla.compiler.frontend.draft import DEFAULT_DOMAINS, all_nodes, graphs_of, reads_of
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.shapes import Shapes, input_values

FREE_INITIALIZERS = 4  # the first IR version in which an initializer need not be an input
UNCHECKED = "vdla.unchecked"  # a domain of which onnx's checker knows no operators
CONTEXT = re.compile(r"Bad node spec for node\. Name: (.*) OpType: (\S+)")


def normalize(model: onnx.ModelProto, where: str, shapes: Shapes | None = None) -> None:
    """Makes a model one that onnx's checker takes, and that means what it did.

    Nodes come after those that write their operands, ONNX's own domain is "", the graph has a name,
    no initializer needs to be an input, and inputs without a shape have the one in ``shapes``.

    Args:
        model: a model that has nodes; changed in place.
        where: the file, which opens every error.
        shapes: sizes that the model leaves open, by the name of an input or of a dimension.

    Raises:
        ModelError: it isn't valid; names the tensor or the node.
    """
    _name_domain(model, where)
    _add_shapes(model.graph, where, shapes or {})
    model.graph.name = model.graph.name or "graph"
    inputs = {value.name for value in model.graph.input}
    listed = all(tensor.name in inputs for tensor in model.graph.initializer)
    if not listed and model.ir_version < FREE_INITIALIZERS:
        model.ir_version = FREE_INITIALIZERS
    _sort(model.graph, where, ())
    _check(model, where)


def is_defined(op_type: str, opset: int) -> bool:
    """Whether an opset of ONNX has an operator, or another opset does: False for one that is
    withdrawn by then, and for one that ONNX never had."""
    if not onnx.defs.has(op_type):
        return False
    if not onnx.defs.has(op_type, opset):
        return True
    return not onnx.defs.get_schema(op_type, opset).deprecated


def _check(model: onnx.ModelProto, where: str) -> None:
    """Raises ModelError where onnx's checker refuses a model, apart from what it need not know:
    the types of results, and operators that ONNX has withdrawn or never had."""
    opset = next((entry.version for entry in model.opset_import if not entry.domain), 0)
    for node in all_nodes(model.graph.node):
        if str(node.op_type) != node.op_type:  # protobuf gives bytes then
            raise ModelError(where, "operators' names in UTF-8", repr(node.op_type))
    outputs, opsets = list(model.graph.output), len(model.opset_import)
    hidden = [
        node
        for node in all_nodes(model.graph.node)
        if not node.domain and not is_defined(node.op_type, opset)
    ]
    try:
        for node in hidden:
            node.domain = UNCHECKED
        if hidden:
            model.opset_import.append(helper.make_opsetid(UNCHECKED, 1))
        del model.graph.output[:]
        model.graph.output.extend(value for value in outputs if _is_typed(value))
        onnx.checker.check_model(model)
    except Exception as error:  # the checker has no common base class for its errors
        raise ModelError(where, "a valid ONNX model", _said(error)) from None
    finally:
        del model.opset_import[opsets:], model.graph.output[:]
        model.graph.output.extend(outputs)
        for node in hidden:
            node.domain = ""


def _said(error: Exception) -> str:
    """Message of the checker, with the node that it is about."""
    text, _, context = str(error).partition("\n\n==> Context: ")
    text, node = " ".join(text.split()).rstrip(". "), CONTEXT.match(context)
    if node is None:
        return text or type(error).__name__
    return f"{text}, in node {node[1] or 'without a name'} ({node[2]})"


# Domains and types ------------------------------------------------------------------------------


def _name_domain(model: onnx.ModelProto, where: str) -> None:
    """Calls ONNX's own domain "" everywhere."""
    versions = {o.version for o in model.opset_import if o.domain in DEFAULT_DOMAINS}
    if len(versions) > 1:
        actual = " and ".join(map(str, sorted(versions)))
        raise ModelError(where, "one opset of ONNX's operators", actual)
    for holder in (model, *model.functions):
        others = [o for o in holder.opset_import if o.domain not in DEFAULT_DOMAINS]
        own = [o.version for o in holder.opset_import if o.domain in DEFAULT_DOMAINS]
        del holder.opset_import[:]
        holder.opset_import.extend(helper.make_opsetid("", version) for version in own[:1])
        holder.opset_import.extend(others)
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        for node in all_nodes(nodes):
            if node.domain and node.domain in DEFAULT_DOMAINS:
                node.domain = ""


def _add_shapes(graph: onnx.GraphProto, where: str, shapes: Shapes) -> None:
    """Gives inputs without a shape the one that the user gives."""
    for value in input_values(graph):
        place, kind = f"{where}: input {value.name}", value.type
        if kind.WhichOneof("value") is None or _lacks_elements(value):
            raise ModelError(place, "an element type", "none")
        if not kind.HasField("tensor_type") or kind.tensor_type.HasField("shape"):
            continue
        sizes = shapes.get(value.name)
        if not isinstance(sizes, Sequence):
            option = f"--shape {value.name}=D0,D1,…"
            raise ModelError(place, "a shape", f"none; give it: {option}")
        for size in sizes:
            kind.tensor_type.shape.dim.add(dim_value=size)


def _is_typed(value: onnx.ValueInfoProto) -> bool:
    """Whether a result has what the checker wants of one."""
    if value.type.WhichOneof("value") is None or _lacks_elements(value):
        return False
    return not value.type.HasField("tensor_type") or value.type.tensor_type.HasField("shape")


def _lacks_elements(value: onnx.ValueInfoProto) -> bool:
    """Whether a tensor's element type isn't said."""
    return value.type.HasField("tensor_type") and not value.type.tensor_type.elem_type


# Order ------------------------------------------------------------------------------------------


def _sort(graph: onnx.GraphProto, where: str, outer: Collection[str]) -> None:
    """Puts nodes behind those that write what they read, also in the graphs inside them.

    Args:
        graph: sorted in place; nodes that are in order stay where they are.
        where: the file, which opens every error.
        outer: the tensors of the graphs around it.

    Raises:
        ModelError: nothing writes what a node reads, or the node itself does.
    """
    given = {each.name for each in (*graph.initializer, *graph.input)} | {"", *outer}
    given |= {tensor.values.name for tensor in graph.sparse_initializer}
    writers = {name: place for place, node in enumerate(graph.node) for name in node.output}
    known = given | writers.keys()
    for node in graph.node:
        for body in graphs_of(node):
            _sort(body, where, known)
    waits: list[set[str]] = []
    readers: dict[str, list[int]] = defaultdict(list)
    for place, node in enumerate(graph.node):
        reads = {*reads_of(node)}
        for name in sorted(reads - known):
            raise _error(node, place, where, "operands that something writes", name)
        waits.append(reads - given)
        for name in waits[-1]:
            readers[name].append(place)
    ready = [place for place, names in enumerate(waits) if not names]
    heapify(ready)
    order: list[int] = []
    while ready:
        place = heappop(ready)
        order.append(place)
        for name in set(graph.node[place].output) & readers.keys():
            for reader in readers.pop(name):
                waits[reader].discard(name)
                if not waits[reader]:
                    heappush(ready, reader)
    rest = sorted(set(range(len(waits))) - set(order))
    if rest:
        expected = "operands that don't follow from its own result"
        raise _error(graph.node[rest[0]], rest[0], where, expected, min(waits[rest[0]]))
    if order != sorted(order):
        nodes = [graph.node[place] for place in order]
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)


def _error(node: onnx.NodeProto, place: int, where: str, expected: str, actual: str) -> ModelError:
    """The error that names a node."""
    name = node.name or f"{node.op_type}_{place}"
    return ModelError(f"{where}: node {name} ({node.op_type})", expected, actual)
