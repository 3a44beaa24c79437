"""A graph as far as its ONNX file is read, and what converters add to it with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Self

import numpy as np
import onnx

from vdla.compiler.frontend.errors import UnsupportedError, halves
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify_dtypes
from vdla.compiler.graph.ir import GraphError, Node
from vdla.compiler.graph.types import Array, TensorType
from vdla.runtime.values import Value

DEFAULT_DOMAINS = ("", "ai.onnx")
TURNS = 10_000
GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def has_graphs(proto: onnx.NodeProto) -> bool:
    """Whether a node holds graphs of its own: control flow."""
    return any(attribute.type in GRAPHS for attribute in proto.attribute)


def names_read(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """The tensors that nodes read, and the graphs inside them."""
    for node in nodes:
        yield from node.input
        for graph in (attribute.g for attribute in node.attribute if attribute.HasField("g")):
            yield from names_read(graph.node)
            yield from (value.name for value in graph.output)


def reads_of(proto: onnx.NodeProto) -> list[str]:
    """The tensors that a node reads, those that graphs inside it read from outside among them."""
    names = [str(name) for name in proto.input if name]
    for graph in graphs_of(proto):
        own = {t.name for t in graph.initializer} | {v.name for v in graph.input}
        own |= {name for inner in graph.node for name in inner.output}
        read = [name for inner in graph.node for name in reads_of(inner)]
        names += [n for n in (*read, *(v.name for v in graph.output)) if n not in own]
    return list(dict.fromkeys(names))


def graphs_of(proto: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs inside a node."""
    for attribute in proto.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, each with those of the graphs inside it behind it."""
    for node in nodes:
        yield node
        for graph in graphs_of(node):
            yield from all_nodes(graph.node)


@dataclass(frozen=True)
class Island:
    """Nodes for onnxruntime that make a tensor whose size depends on data.

    ``nodes`` go by their places in the file; they read and write tensors of the draft. ``name``,
    ``where`` and ``reason`` are the first one's. ``loose`` says that the sizes of what they read
    are left open, too; ``kind`` is the tensor's type as far as it is known.
    """

    nodes: Mapping[int, onnx.NodeProto]
    name: str
    where: str
    reason: str
    opset: int
    loose: bool = False
    kind: onnx.TypeProto | None = None


class Draft:
    """The state of one import: tensors by their ONNX names, and the nodes so far.

    Attributes:
        where: the file, which opens every error.
        proto: the model.
        read: the names that a node reads, and the model's outputs.
        opset: the version of ONNX's operators.
        tensors: the type of everything known so far.
        constants: the values of what is known now.
        nodes: in the order of the file.
        inputs: the model's, in order.
        alias: names that mean another tensor, because a node changes nothing.
        names: those that nodes have.
        outputs: the model's.
        empty: the inputs without elements.
        quantized: the scale and the zero point of what a QuantizeLinear writes.
        open: the tensors whose size depends on data, and what makes them.
        places: numbers for nodes, in the order in which they are read.
        strict: whether recurrent operators between quantized tensors stay float, and resizes of
            integers by means stay onnxruntime's.
        floats: whether weights that are floats stay so.
        turns: how often a Loop may run that has no number of turns.
        values: what names stand for that are no tensors: sequences and optional values.
        arguments: the inputs that are no tensors.
        prefixes: the tensors that are the first elements of another one, and how many.
        reasons: why nodes stayed float, by their names.
    """

    def __init__(
        self,
        where: str,
        proto: onnx.ModelProto,
        strict: bool = False,
        turns: int = TURNS,
        floats: bool = True,
    ) -> None:
        self.where, self.proto = where, proto
        self.strict, self.turns, self.floats = strict, turns, floats
        self.reasons: dict[str, str] = {}
        self.read, self.opset = set[str](), 0
        self.tensors: dict[str, TensorType] = {}
        self.constants: dict[str, Array] = {}
        self.nodes: list[Node] = []
        self.inputs: list[str] = []
        self.alias: dict[str, str] = {}
        self.names: dict[str, None] = {}
        self.outputs: set[str] = set()
        self.empty: dict[str, Array] = {}
        self.quantized: dict[str, tuple[str, str]] = {}
        self.open: dict[str, Island] = {}
        self.prefixes: dict[str, tuple[str, str]] = {}
        self.values: dict[str, Value] = {}
        self.arguments: dict[str, Value] = {}
        self.places = count()

    def begin(self) -> None:
        """Takes what the model says of itself; it is in the normal form by then."""
        self.read = set(names_read(self.proto.graph.node))
        opsets = {o.domain: o.version for o in self.proto.opset_import}
        self.opset = next((opsets[d] for d in DEFAULT_DOMAINS if d in opsets), 0)

    def read_node(self, node: onnx.NodeProto, index: int) -> None:
        """Adds what one ONNX node means; ``index`` is its place, for one without a name."""
        raise NotImplementedError

    def read_nodes(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Adds what ONNX nodes mean that are read at this place."""
        self.read |= set(names_read(nodes))
        for number, node in enumerate(nodes):
            self.read_node(node, number)

    def child(self) -> Self:
        """An import of a region: names of nodes and all rules are those of this one."""
        child = type(self)(self.where, self.proto, self.strict, self.turns, self.floats)
        child.opset = self.opset
        child.names, child.places = self.names, self.places
        return child

    def dtype(self, code: int) -> str:
        """An element type's numpy name."""
        if code not in onnx.TensorProto.DataType.values():
            return f"type {code}"
        name = str(onnx.TensorProto.DataType.Name(code)).lower()
        try:
            result = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))
        except (KeyError, TypeError, ValueError):
            return name
        return name if result == np.object_ else str(result)

    def fresh(self, name: str) -> str:
        """``name``, or ``name`` with a number if it is taken."""
        unique, count = name, 1
        while unique in self.names:
            count += 1
            unique = f"{name}_{count}"
        self.names[unique] = None
        return unique

    def add_constant(self, name: str, array: Array) -> str:
        """Makes ``array`` known as ``name``."""
        self.constants[name] = np.ascontiguousarray(array).reshape(np.shape(array))
        self.tensors[name] = TensorType(tuple(np.shape(array)), str(array.dtype))
        return name

    def emit(self, node: Node, dtype: str, shape: tuple[int, ...] | None = None) -> str:
        """Adds a node; its rule gives the shape where ``shape`` doesn't.

        A result without elements is known: it is a constant and no node's.
        """
        shapes = [self.tensors[n].shape for n in node.inputs]
        result = node.result_shape(shapes)
        if result is None:  # a scalar's shape is (), and known
            result = shape
        assert result is not None
        if 0 in result:
            return self.add_constant(node.output, np.zeros(result, dtype))
        if any(0 in each for each in shapes):
            where = f"{self.where}: node {node.name} ({node.op})"
            raise UnsupportedError(where, "data with elements", [list(s) for s in shapes])
        self.tensors[node.output] = TensorType(result, dtype)
        try:
            verify_dtypes(self.tensors, node)
        except GraphError as error:
            where = f"{self.where}: node {node.name} ({node.op})"
            raise UnsupportedError(where, *halves(str(error))) from None
        self.nodes.append(node)
        return node.output

    def mark(self) -> tuple[int, ...]:
        """Sizes of all that the import has made so far, for :meth:`reset`."""
        return tuple(len(each) for each in self._grown())

    def reset(self, mark: tuple[int, ...]) -> None:
        """Forgets all that came since."""
        for each, size in zip(self._grown(), mark, strict=True):
            while len(each) > size:
                each.pop() if isinstance(each, list) else each.popitem()

    def _grown(self) -> tuple[list[Node] | dict[str, Any], ...]:
        """Lists and dictionaries that an import adds to; dictionaries in the order in which it
        does.
        """
        tables = self.tensors, self.constants, self.alias, self.names, self.prefixes
        return self.nodes, *tables, self.values, self.open

    def rename(self, name: str, target: str, since: int) -> bool:
        """Calls a result of the nodes from ``since`` on otherwise; False if it is none."""
        if not any(node.output == name for node in self.nodes[since:]):
            return False
        for place in range(since, len(self.nodes)):
            node = self.nodes[place].renamed({name: target})
            self.nodes[place] = replace(node, output=target) if node.output == name else node
        self.tensors[target] = self.tensors.pop(name)
        return True

    def known(self, name: str) -> Array | None:
        """A tensor's value: a constant's, or that of a constant behind its Dequantize."""
        if name in self.constants:
            return self.constants[name]
        source = self.dequantized(name)
        if source is None:
            return None
        return source.evaluate([self.constants[source.data]], self.tensors[name])

    def dequantized(self, name: str) -> ops.Dequantize | None:
        """The Dequantize that makes ``name`` from a constant, if one does."""
        for node in reversed(self.nodes):
            if node.output == name:
                known = isinstance(node, ops.Dequantize) and node.data in self.constants
                return node if known and isinstance(node, ops.Dequantize) else None
        return None
