"""From the operators of a subgraph to the nodes of its draft, and from the draft to a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.tflite.contents import Operator
from vdla.compiler.frontend.tflite.drafting import FOLDED, OPSET, Draft, names_read
from vdla.compiler.frontend.tflite.inferring import settle
from vdla.compiler.frontend.tflite.operator import CONVERTERS, View
from vdla.compiler.graph.types import Array

GROWING = frozenset(  # operators whose results are as large as numbers say, which may be any
    (
        *("BROADCAST_TO", "FILL", "MIRROR_PAD", "ONE_HOT", "PAD", "PADV2", "RANGE", "SCATTER_ND"),
        *("TILE",),
    )
)
SHAPES = ("int32", "int64")  # elements of tensors that shapes are computed from
IR_VERSION = 10  # the one of opset 21


def convert(draft: Draft, operator: Operator) -> None:
    """Adds the ONNX nodes of an operator; what it computes of known shapes is known, too.

    Raises:
        ModelError: there is no such operator here, or not in this form.
    """
    view, mark = View(draft, operator), len(draft.nodes)
    converter = CONVERTERS.get(operator.name)
    if converter is None:
        raise view.unsupported("an operator that vdla translates", _help(operator))
    try:
        converter(view)
    except ModelError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise view.error("options that fit its operands", first_line(error)) from None
    settle(draft, operator.outputs, mark)
    _fold(draft, operator, mark)


def _help(operator: Operator) -> str:
    if operator.custom:
        return (
            f"the custom operator {operator.name}; end the model before it, and compute the rest "
            "outside"
        )
    return f"{operator.name}; convert the model without it, or end the model before it"


def convert_all(draft: Draft) -> None:
    """Adds the nodes of a subgraph's operators.

    Raises:
        ModelError: one of them can't be translated, or the subgraph is within itself.
    """
    active, index = draft.whole.active, draft.subgraph.index
    if index in active:
        raise ModelError(draft.where, "subgraphs that don't contain themselves", "a loop of them")
    active.append(index)
    for operator in draft.subgraph.operators:
        convert(draft, operator)
    active.pop()


# What is known now --------------------------------------------------------------------------------


def _fold(draft: Draft, operator: Operator, mark: int) -> None:
    """Makes results known that follow from known shapes: vectors of a few integers."""
    tensors = draft.tensors
    read = [tensors[i] for i in operator.inputs if i >= 0]
    made = [tensors[i] for i in operator.outputs]
    if operator.name in GROWING or not read or not made or not draft.nodes[mark:]:
        return
    if any(draft.value_of(t) is None or t.elements > FOLDED for t in read):
        return
    if any(t.dtype not in SHAPES or t.elements > FOLDED for t in made):
        return
    names = [draft.held[key] for key in draft.held if key[0] in operator.outputs]
    values = _evaluated(draft, draft.nodes[mark:], names)
    for tensor, value in zip(made, values, strict=False):
        for key in [key for key in draft.held if key[0] == tensor.index]:
            del draft.held[key]
        draft.known[tensor.index] = value.astype(tensor.dtype)


def _evaluated(draft: Draft, nodes: Sequence[onnx.NodeProto], names: Sequence[str]) -> list[Array]:
    """Values that nodes compute of constants alone; none where ONNX's reference doesn't say."""
    from onnx.reference import ReferenceEvaluator

    read = {name for node in nodes for name in node.input}
    known = [numpy_helper.from_array(a, n) for n, a in draft.constants.items() if n in read]
    ends = [helper.make_empty_tensor_value_info(name) for name in names]
    graph = helper.make_graph(nodes, "shapes", [], ends, known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    try:
        return [np.asarray(each) for each in ReferenceEvaluator(model).run(None, {})]
    except Exception:  # whatever the reference implementation trips over
        return []


# Models -------------------------------------------------------------------------------------------


def finished(
    draft: Draft,
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
) -> onnx.ModelProto:
    """The model of a draft, without nodes that no result comes from."""
    ends = [value.name for value in outputs]
    draft.nodes[:] = _named(_live(draft.nodes, ends), ends)
    name = draft.subgraph.name or "main"
    graph = helper.make_graph(draft.nodes, name, inputs, outputs, draft.initializers())
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(
        graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="vdla"
    )


def _named(nodes: Sequence[onnx.NodeProto], ends: Sequence[str]) -> list[onnx.NodeProto]:
    """Nodes without those that only give a result its name: who makes it writes it under the name.

    A result that is an input, a constant or another result, too, keeps its node.
    """
    made = {name for node in nodes for name in node.output}
    names: dict[str, str] = {}
    for node in nodes:
        source = node.input[0] if node.op_type == "Identity" else ""
        if source in made and source not in ends and source not in names:
            names[source] = node.output[0]
    result = [
        n for n in nodes if not (n.op_type == "Identity" and names.get(n.input[0]) == n.output[0])
    ]
    for node in result:
        _rename(node, names)
    return result


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Gives the values that a node reads and writes other names, in the graphs in it, too."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            for inner in attribute.g.node:
                _rename(inner, names)


def _live(nodes: Sequence[onnx.NodeProto], ends: Sequence[str]) -> list[onnx.NodeProto]:
    needed, result = set(ends), []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(names_read(node))
            result.append(node)
    return result[::-1]
