"""The graph as text, a line per tensor the caller sees and per node; the parser has its grammar.

What is long stands beside the text, by name: see :func:`beside`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np

from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.graph.types import RECORDS, Array, TensorType
from vdla.compiler.text import write_name, write_string
from vdla.runtime.values import Listed, Value


class Record(Protocol):
    """A field's value with fields of its own: a requantization, or a step of an epilogue."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


LONG = 8  # more numbers than these aren't written out


def format_type(kind: TensorType) -> str:
    """``int8[1, 64, 56, 56] * 0.02 @ -3``, and ``/16`` for channels in blocks of 16."""
    text = f"{kind.dtype}{list(kind.shape)}"
    if kind.block:
        text += f"/{kind.block}"
    if kind.quant:
        text += f" * {_value(kind.quant.scale)} @ {kind.quant.zero_point}"
    return text


def format_node(node: Node, graph: Graph, place: str = "") -> Iterator[str]:
    """``conv1: y = QConv2d(x, w, b) strides=(2, 2) … : int8[…]``, and the parts of a fused one, or
    regions."""
    fields = ((key, value) for key, value in node.attributes if not _nested(value))
    values = "".join(f" {key}={_value(value)}" for key, value in fields)
    operands = ", ".join(map(write_name, node.own_inputs))
    results = ", ".join(map(write_name, node.outputs))
    call = f"{results} = {type(node).__name__}({operands}){values}"
    kinds = ", ".join(format_type(graph.tensors[name]) for name in node.outputs)
    yield f"{write_name(node.name)}: {call} : {kinds}" + (f"  # on {place}" if place else "")
    for _, value in node.attributes:
        for part in _parts(value):
            yield from (f"  {line}" for line in format_node(part, graph))
        if isinstance(value, Graph):
            yield from (f"  {line}" for line in _graph_lines(value, {}))


def format_graph(graph: Graph, places: Mapping[str, str] | None = None) -> str:
    """The whole graph, and its functions behind it; ``places`` maps node names to devices, for
    people."""
    graphs = (graph, *graph.functions.values())
    return "".join(f"{line}\n" for each in graphs for line in _graph_lines(each, places or {}))


def _graph_lines(graph: Graph, places: Mapping[str, str]) -> list[str]:
    """A graph or a region, line by line."""
    lines = [f"graph {write_name(graph.name)}"]
    for title, names in (("input", graph.inputs), ("constant", graph.constants)):
        lines += [f"  {title} {write_name(n)} : {format_type(graph.tensors[n])}" for n in names]
    lines += [f"  output {write_name(n)}" for n in graph.outputs]
    for title, values in (("argument", graph.arguments), ("result", graph.values)):
        lines += [f"  {title} {write_name(n)} = {_shown(v)}" for n, v in values.items()]
    for node in graph.nodes:
        place = places.get(node.name, "")
        lines += (f"  {line}" for line in format_node(node, graph, place))
        if node.name in graph.reasons:
            lines.append(f"    float because {write_string(graph.reasons[node.name])}")
    return lines


def _shown(value: Value) -> str:
    """Text of a value that is made of tensors."""
    if isinstance(value, str):
        return write_name(value)
    own = (
        value.values
        if isinstance(value, Listed)
        else [getattr(value, f.name) for f in fields(value)]
    )
    return f"{type(value).__name__}({', '.join(map(_shown, filter(None, own)))})"


def beside(graph: Graph) -> dict[str, Array]:
    """Arrays that the text names and doesn't hold: constants, long tuples, models of External
    nodes; of regions and functions, too.

    A constant's key is its name. A field of a node is under ``NODE@FIELD``, a model as uint8.

    Raises:
        GraphError: a constant's name is also the key of a field.
    """
    graphs = [part for each in (graph, *graph.functions.values()) for part in each.whole()]
    constants = {name: array for each in graphs for name, array in each.constants.items()}
    result = dict(constants)
    for node in (node for each in graphs for node in each.nodes):
        for each, key, value in _fields(node):
            name = field_key(each.name, key)
            if name in constants:
                raise GraphError(f"expected no constant called {name}, found one")
            result[name] = (
                np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)
            )
    return result


def field_key(node: str, field: str) -> str:
    """Under which name a long field of a node stands beside the text."""
    return f"{node}@{field}"


def _fields(node: Node) -> Iterator[tuple[Node, str, object]]:
    """The long fields of a node and its parts."""
    for key, value in node.attributes:
        for path, each in _long(key, value):
            yield node, path, each
        for part in _parts(value):
            yield from _fields(part)


def _long(path: str, value: object) -> Iterator[tuple[str, object]]:
    """The long parts of a field, and the way to them: a record's fields are behind a dot."""
    if isinstance(value, bytes) or _is_long(value):
        yield path, value
    elif isinstance(value, tuple):
        for each in value:
            yield from _long(path, each)
    elif is_record(value):
        for f in fields(value):
            yield from _long(f"{path}.{f.name}", getattr(value, f.name))


def is_record(value: object) -> TypeGuard[Record]:
    """Whether a field's value has fields of its own."""
    return type(value) in RECORDS.values()


def _parts(value: object) -> tuple[Node, ...]:
    parts = value if isinstance(value, tuple) else ()
    return tuple(part for part in parts if isinstance(part, Node))


def _nested(value: object) -> bool:
    """Whether a field stands below its node's line: parts, or a region."""
    return bool(_parts(value)) or isinstance(value, Graph)


def _is_long(value: object) -> bool:
    return isinstance(value, tuple) and len(value) > LONG and isinstance(value[0], Real)


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if _is_long(value):
        return f"<{len(value)} values>"
    if isinstance(value, tuple):
        return f"({', '.join(_value(v) for v in value)})"
    if is_record(value):
        parts = (f"{f.name}={_value(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, Integral):
        return str(int(value))
    return repr(float(value)) if isinstance(value, Real) else write_string(value)
