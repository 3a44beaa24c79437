"""Graphs inside ONNX's nodes as regions: what they read of the graphs around them is captured.

Constants around a region are its own. Its results may be lists; they are flat in the region.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np
import onnx
from onnx import helper

from vdla.compiler.frontend.bodies import Part
from vdla.compiler.frontend.draft import Draft, names_read
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.sequences import define, leaves, rebuilt, value_of
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.control import TURN
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType
from vdla.runtime.values import Value


class Region:
    """A part on its way to a region; ``draft`` has what it holds, ``inputs`` come before what is
    captured."""

    def __init__(self, view: OnnxNode, part: Part, captured: Sequence[str]) -> None:
        self.view, self.part, self.captured = view, part, captured
        self.draft, self.inputs = view.draft.child(), list[str]()
        self.draft.read = {*names_read(part.nodes), *part.outputs}
        for name in dict.fromkeys((*part.free(), *captured)):
            self._adopt(name)

    def _adopt(self, name: str) -> None:
        """Takes over what a name stands for around it."""
        value = value_of(self.view.draft, name)
        names = leaves(value)
        for each in names:
            self._adopt_tensor(each)
        define(self.draft, name, rebuilt(value, map(self.local, names)))

    def _adopt_tensor(self, real: str) -> None:
        """Takes over what is known of a tensor around it."""
        outer, draft, local = self.view.draft, self.draft, self.local(real)
        source = outer.dequantized(real)
        if local in draft.tensors:
            return
        if real in outer.constants:
            draft.add_constant(local, outer.constants[real])
        elif source is not None:
            integers = draft.add_constant(f"{local}.integer", outer.constants[source.data])
            own = draft.fresh(f"{local}.dequantize")
            node = replace(source, name=own, output=local, data=integers)
            draft.emit(node, outer.tensors[real].dtype)
        elif real in self.captured:
            draft.tensors[local] = outer.tensors[real]
        else:
            raise self.view.error("operands defined before their use", real)

    def local(self, name: str) -> str:
        """The name that a tensor around the region has in it."""
        return f"{self.part.name}.{name}"

    def give(self, name: str, kind: TensorType) -> str:
        """Makes a tensor an input of a type."""
        self.draft.tensors[name] = kind
        self.inputs.append(name)
        return name

    def fix(self, value: onnx.ValueInfoProto, holds: bool) -> None:
        """Makes the condition that a part is given a constant."""
        shape = (1,) * len(value.type.tensor_type.shape.dim)
        self.draft.add_constant(value.name, np.full(shape, holds))

    def count(self, value: onnx.ValueInfoProto) -> None:
        """Makes the number of a turn an input, which a part may want as a vector of one."""
        turn = self.give(f"{self.part.name}.turn", TURN)
        if value.type.tensor_type.shape.dim:
            name = self.draft.fresh(f"{self.part.name}.number")
            self.draft.emit(ops.Reshape(name=name, output=value.name, data=turn), TURN.dtype, (1,))
        else:
            self.draft.alias[value.name] = turn

    def read(self) -> list[Value]:
        """Reads the nodes; what the results stand for, which may be open."""
        self.draft.read_nodes(self.part.nodes)
        return [value_of(self.draft, name) for name in self.part.outputs]

    def check(self, results: Sequence[Value]) -> None:
        """Raises UnsupportedError where the size of a result depends on data."""
        for name in (name for value in results for name in leaves(value)):
            if name not in self.draft.tensors:
                raise self.view.unsupported(f"results of {self.part.name} of static shape", name)

    def graph(self, results: Sequence[str]) -> Graph:
        """The region, each of whose results is a tensor of its own."""
        draft, make, outputs = self.draft, maker_in(self.draft, self.part.name), list[str]()
        for name in results:
            outputs.append(_again(make, name) if name in outputs else name)
        inputs = (*self.inputs, *map(self.local, self.captured))
        used = {n for node in draft.nodes for n in node.inputs} | {*outputs}
        constants = {n: a for n, a in draft.constants.items() if n in used}
        tensors = {n: t for n, t in draft.tensors.items() if n in used or n not in draft.constants}
        return verify(Graph(
            inputs, tuple(outputs), tuple(draft.nodes), tensors, constants, self.part.name,
            draft.reasons,
        ))  # fmt: skip


def maker_in(draft: Draft, name: str) -> Maker:
    """An interface to add nodes that are named after another one."""
    own = draft.fresh(f"{name}.more")
    return Maker(OnnxNode(draft, onnx.NodeProto(), own, f"{draft.where}: node {name}"))


def _again(make: Maker, name: str) -> str:
    """A tensor once more, under another name."""
    kind = make.kind(name)
    node = ops.QReshape if kind.dtype == "int8" else ops.Reshape
    return make.add(node(**make.names(), data=name), kind.dtype, kind.shape)


def captured_by(draft: Draft, parts: Sequence[Part]) -> list[str]:
    """The tensors that parts read of the graphs around them, less what is known now."""
    free = (name for part in parts for name in part.free())
    names = dict.fromkeys(leaf for name in free for leaf in leaves(value_of(draft, name)))
    return [name for name in names if draft.known(name) is None]


def emit(view: OnnxNode, node: ops.Control) -> None:
    """Adds a node of control; its results, where all that it reads is known now."""
    draft = view.draft
    operands = [draft.tensors[name] for name in node.operands]
    kinds = node.result_types(operands)
    known = {name: draft.known(name) for name in node.operands}
    draft.tensors.update(zip(node.outputs, kinds, strict=True))
    values = {name: value for name, value in known.items() if value is not None}
    if len(values) < len(known):
        draft.nodes.append(node)
        return
    graph = Graph((), node.outputs, (node,), draft.tensors, values, view.name)
    for name, value in evaluate(graph, {}).items():
        if name in node.outputs:
            draft.add_constant(name, value)


def fresh_names(view: OnnxNode, count: int) -> list[str]:
    """Names for results that the file has no names for."""
    return [view.draft.fresh(f"{view.name}.result{n}") for n in range(count)]


class _Fields(TypedDict):
    """The fields that all nodes of control have."""

    name: str
    output: str
    others: tuple[str, ...]
    operands: tuple[str, ...]


def common_fields(
    view: OnnxNode, outputs: Sequence[str], operands: Sequence[str], name: str = ""
) -> _Fields:
    """The fields of a node of control with some results and operands."""
    alias, name = view.draft.alias, name or view.name
    own = tuple(alias.get(name, name) for name in operands)
    return {"name": name, "output": outputs[0], "others": tuple(outputs[1:]), "operands": own}


def stack_rows(make: Maker, names: Sequence[str]) -> str:
    """Tensors along a new first axis."""
    return make.concat([make.reshape(name, (1, *make.shape(name))) for name in names], 0)


def call_results(view: OnnxNode, sources: Sequence[Value], names: Sequence[str]) -> None:
    """Calls what a node gives as its results are called."""
    for source, name in zip(sources, names, strict=False):
        if name and isinstance(source, str):
            view.draft.read_nodes([helper.make_node("Identity", [source], [name])])
        elif name:
            define(view.draft, str(name), source)
