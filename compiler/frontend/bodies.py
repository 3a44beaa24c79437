"""Operators that ONNX itself defines by others: a node's body, as nodes of the graph it is in.

So is the branch of an If whose condition is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import helper

from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph.ir import TensorType
from vdla.runtime.dtypes import dtype_of


@dataclass(frozen=True)
class Body:
    """The nodes that a node stands for, and the version of the operators in them."""

    nodes: Sequence[Any]
    opset: int


def body_of(view: OnnxNode) -> Body | None:
    """What ONNX says a node means; None where its operator is one of those all others are made of.

    The body's own tensors are named after the node.
    """
    proto, draft = view.proto, view.draft
    if proto.op_type == "If":
        return _branch(view)
    if not onnx.defs.has(proto.op_type, draft.opset, proto.domain):
        return None
    schema = onnx.defs.get_schema(proto.op_type, draft.opset, proto.domain)
    node = onnx.NodeProto()
    node.CopyFrom(proto)
    node.input[:] = [view.optional(i) or "" for i in range(len(proto.input))]
    function = _function(schema, node, draft.tensors, draft.opset)
    if function is None:
        return None
    opset = next((o.version for o in function.opset_import if not o.domain), draft.opset)
    _add_defaults(node, schema)
    return Body(_renamed(function, node, view.name), opset)


def _branch(view: OnnxNode) -> Body | None:
    """The branch that an If takes, with its constants; None where only running tells."""
    condition = view.draft.known(view.operand(0))
    if condition is None:
        return None
    graph = view.attributes["then_branch" if condition.all() else "else_branch"]
    own = {t.name for t in graph.initializer} | {n for node in graph.node for n in node.output}
    names = {name: f"{view.name}.{name}" for name in own if name}
    made = {n for node in graph.node for n in node.output}
    ends = dict(zip((value.name for value in graph.output), view.proto.output, strict=False))
    names.update((name, target) for name, target in ends.items() if name in made and target)
    nodes = [helper.make_node("Constant", [], [names[t.name]], value=t) for t in graph.initializer]
    for inner in graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(inner)
        copy.name = f"{view.name}.{inner.name or inner.op_type}"
        copy.input[:] = [names.get(n, n) for n in inner.input]
        copy.output[:] = [names.get(n, n) for n in inner.output]
        nodes.append(copy)
    for value, target in zip(graph.output, view.proto.output, strict=False):
        source = names.get(value.name, value.name)
        if source != target:
            nodes.append(helper.make_node("Identity", [source], [target]))
    return Body(nodes, view.draft.opset)


def _function(
    schema: Any, node: Any, tensors: Mapping[str, TensorType], opset: int
) -> onnx.FunctionProto | None:
    """The definition for an opset, which may depend on the operands' types."""
    plain = [v for v in schema.function_opset_versions if v <= opset]
    typed = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
    if plain:
        text = schema.get_function_with_opset_version(max(plain))
    elif typed:
        types = [_type(tensors.get(name)).SerializeToString() for name in node.input]
        text = schema.get_context_dependent_function_with_opset_version(
            max(typed), node.SerializeToString(), types
        )
    else:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(text)
    return function if function.node else None


def _type(kind: TensorType | None) -> onnx.TypeProto:
    if kind is None:
        return onnx.TypeProto()
    code = helper.np_dtype_to_tensor_dtype(dtype_of(kind.dtype))
    return helper.make_tensor_type_proto(code, kind.shape)


def _add_defaults(node: Any, schema: Any) -> None:
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def _renamed(function: Any, node: Any, prefix: str) -> list[Any]:
    """The function's nodes on the operands, the outputs and the attributes of a node."""
    names = {"": ""}
    for formal, actual in ((function.input, node.input), (function.output, node.output)):
        names.update(zip(formal, actual, strict=False))
    for name in function.input[len(node.input) :]:
        names[name] = ""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    nodes = []
    for inner in function.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(inner)
        copy.name = f"{prefix}.{inner.name or inner.op_type}"
        copy.input[:] = [names.get(n, f"{prefix}.{n}") for n in inner.input]
        copy.output[:] = [names.get(n) or (n and f"{prefix}.{n}") for n in inner.output]
        del copy.attribute[:]
        copy.attribute.extend(_attributes(inner, attributes))
        nodes.append(copy)
    return nodes


def _attributes(inner: Any, given: Mapping[str, Any]) -> list[Any]:
    """An inner node's attributes, with the outer node's in place of references."""
    found = []
    for attribute in inner.attribute:
        if not attribute.ref_attr_name:
            found.append(attribute)
        elif attribute.ref_attr_name in given:
            copy = onnx.AttributeProto()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
            found.append(copy)
    return found
