"""Operators that ONNX itself defines by others: a node's body, as nodes of the graph it is in.

So is the branch of an If whose condition is known. Graphs inside other nodes are parts, of which
regions are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import helper

from vdla.compiler.frontend.draft import reads_of
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph.types import TensorType
from vdla.runtime.dtypes import dtype_of


@dataclass(frozen=True)
class Body:
    """The nodes that a node stands for, and the version of the operators in them."""

    nodes: Sequence[onnx.NodeProto]
    opset: int


def body_of(view: OnnxNode) -> Body | None:
    """Body by which ONNX defines a node; None where its operator is one of those all others are
    made of.

    The body's own tensors are named after the node.
    """
    proto, draft = view.proto, view.draft
    if proto.op_type == "If":
        return branch_of(view)
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


def branch_of(view: OnnxNode) -> Body | None:
    """The branch that an If takes, where its condition is known."""
    condition = view.draft.known(view.operand(0))
    if condition is None:
        return None
    part = part_of(view.attributes["then_branch" if condition.all() else "else_branch"], view.name)
    pairs = [(a, str(b)) for a, b in zip(part.outputs, view.proto.output, strict=False) if b]
    made = {name for node in part.nodes for name in node.output}
    names = {source: end for source, end in pairs if source in made}
    nodes = [renamed(node, names) for node in part.nodes]
    last = [(names.get(a, a), b) for a, b in pairs if names.get(a, a) != b]
    nodes += [helper.make_node("Identity", [source], [end]) for source, end in last]
    return Body(nodes, view.draft.opset)


@dataclass(frozen=True)
class Part:
    """A graph inside a node, whose own tensors are named after it; initializers are nodes."""

    name: str
    inputs: Sequence[onnx.ValueInfoProto]
    nodes: Sequence[onnx.NodeProto]
    outputs: Sequence[str]

    @property
    def names(self) -> list[str]:
        """The names of its inputs."""
        return [value.name for value in self.inputs]

    def free(self) -> list[str]:
        """The tensors that it reads of the graphs around it, in order."""
        own = {*self.names, *(name for node in self.nodes for name in node.output)}
        read = (name for node in self.nodes for name in reads_of(node))
        return list(dict.fromkeys(name for name in (*read, *self.outputs) if name not in own))


def part_of(graph: onnx.GraphProto, prefix: str) -> Part:
    """A graph inside a node as a part called ``prefix``, less nodes whose results nobody reads."""
    given = {value.name for value in graph.input}
    own = {t.name for t in graph.initializer} | {n for node in graph.node for n in node.output}
    names = {name: f"{prefix}.{name}" for name in own | given if name}
    constants = [t for t in graph.initializer if t.name not in given]
    nodes = [helper.make_node("Constant", [], [names[t.name]], value=t) for t in constants]
    for inner in _read(graph):
        copy = renamed(inner, names)
        copy.name = f"{prefix}.{inner.name or inner.op_type}"
        nodes.append(copy)
    inputs = []
    for value in graph.input:
        copy = onnx.ValueInfoProto()
        copy.CopyFrom(value)
        copy.name = names[value.name]
        inputs.append(copy)
    return Part(prefix, inputs, nodes, [names.get(v.name, v.name) for v in graph.output])


def _read(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes that the outputs of a sorted graph need, in order."""
    kept, wanted = list[onnx.NodeProto](), {value.name for value in graph.output}
    for node in reversed(graph.node):
        if wanted.intersection(name for name in node.output if name):
            kept.append(node)
            wanted.update(reads_of(node))
    return kept[::-1]


def renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """A copy of a node whose tensors, also where graphs inside it read them, have other names."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    _rename(copy, names)
    return copy


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Gives a node's tensors other names, also where graphs inside it read them."""
    node.input[:] = [names.get(n, n) for n in node.input]
    node.output[:] = [names.get(n, n) for n in node.output]
    for graph in (attribute.g for attribute in node.attribute if attribute.HasField("g")):
        own = {t.name for t in graph.initializer} | {v.name for v in graph.input}
        own |= {n for inner in graph.node for n in inner.output}
        outer = {name: new for name, new in names.items() if name not in own}
        for inner in graph.node:
            _rename(inner, outer)
        for value in graph.output:
            value.name = outer.get(value.name, value.name)


def _function(
    schema: onnx.defs.OpSchema, node: onnx.NodeProto, tensors: Mapping[str, TensorType], opset: int
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


def _add_defaults(node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> None:
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def _renamed(
    function: onnx.FunctionProto, node: onnx.NodeProto, prefix: str
) -> list[onnx.NodeProto]:
    """The function's nodes on the operands, the outputs and the attributes of a node."""
    names = {"": ""}
    for formal, actual in ((function.input, node.input), (function.output, node.output)):
        names.update(zip(formal, actual, strict=False))
    for name in function.input[len(node.input) :]:
        names[name] = ""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    nodes = []
    for inner in function.node:
        names.update((n, f"{prefix}.{n}") for n in inner.output if not names.get(n))
    names[""] = ""
    for inner in function.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(inner)
        copy.name = f"{prefix}.{inner.name or inner.op_type}"
        _rename(copy, names)
        given = _attributes(copy, attributes)
        del copy.attribute[:]
        copy.attribute.extend(given)
        nodes.append(copy)
    return nodes


def _attributes(
    inner: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]
) -> list[onnx.AttributeProto]:
    """An inner node's attributes, with the outer node's in place of references."""
    result = []
    for attribute in inner.attribute:
        if not attribute.ref_attr_name:
            result.append(attribute)
        elif attribute.ref_attr_name in given:
            copy = onnx.AttributeProto()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
            result.append(copy)
    return result
