"""ONNX's control flow as nodes that hold graphs: If, Loop and Scan.

A graph inside a node becomes a region: what it reads of the graphs around it is captured, constants
are its own. A Loop whose number of turns is known and whose condition always holds is a Scan, any
other one a While: its condition includes that the number of turns isn't reached. Where the shapes
of what turn after turn gets change, turns of a known number stand one behind another.

Rows that a While stacks are as many as it has turns: the result is open, the first elements of a
tensor of as many as it may have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np
import onnx
from onnx import helper

from vdla.compiler.frontend.bodies import Part, part_of
from vdla.compiler.frontend.draft import Draft, Island, names_read
from vdla.compiler.frontend.errors import LoopError, UnsupportedError, halves
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.ops.control import TURN, alike, typed
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType
from vdla.runtime.dtypes import dtype_of

MOST_UNROLLED = 4096  # nodes of turns that stand one behind another
SLICE_BY_TENSORS = 10  # the first opset with a Slice whose ends are tensors
SCAN_OF_BATCHES = 8  # the opset whose Scan has a batch in front of each operand


def is_control(node: onnx.NodeProto) -> bool:
    """Whether a node is one of ONNX's control flow."""
    return not node.domain and node.op_type in ("If", "Loop", "Scan")


def add_control(view: OnnxNode) -> None:
    """Adds an If, a Loop or a Scan as a node that holds graphs.

    Raises:
        LoopError: the loop can't be one, whoever runs it.
        ModelError: one of its graphs has what vdla lacks, or shapes that only a run decides.
    """
    try:
        {"If": _add_if, "Loop": _add_loop, "Scan": _add_scan}[view.proto.op_type](view)
    except GraphError as error:
        raise UnsupportedError(view.where, *halves(str(error))) from None


# Regions ----------------------------------------------------------------------------------------


class _Region:
    """A part on its way to a region; ``draft`` has what it holds, ``inputs`` come before what is
    captured."""

    def __init__(self, view: OnnxNode, part: Part, captured: Sequence[str]) -> None:
        self.view, self.part, self.captured = view, part, captured
        self.draft, self.inputs = view.draft.child(), list[str]()
        self.draft.read = {*names_read(part.nodes), *part.outputs}
        for name in dict.fromkeys((*part.free(), *captured)):
            self._adopt(name)

    def _adopt(self, name: str) -> None:
        """Takes over what is known of a tensor around it."""
        outer, draft = self.view.draft, self.draft
        real, local = outer.alias.get(name, name), self.local(name)
        source = outer.dequantized(real)
        draft.alias[name] = local
        if real in outer.constants:
            draft.add_constant(local, outer.constants[real])
        elif source is not None:
            integers = draft.add_constant(f"{local}.integer", outer.constants[source.data])
            own = draft.fresh(f"{local}.dequantize")
            node = replace(source, name=own, output=local, data=integers)
            draft.emit(node, outer.tensors[real].dtype)
        elif name in self.captured:
            draft.tensors[local] = outer.tensors[real]
        else:
            raise self.view.error("operands defined before their use", name)

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

    def read(self) -> list[str]:
        """Reads the nodes; the names of the results.

        Raises:
            UnsupportedError: the size of a result depends on data.
        """
        self.draft.read_nodes(self.part.nodes)
        results = [self.draft.alias.get(name, name) for name in self.part.outputs]
        for name in results:
            if name not in self.draft.tensors:
                raise self.view.unsupported(f"results of {self.part.name} of static shape", name)
        return results

    def graph(self, results: Sequence[str]) -> Graph:
        """The region, each of whose results is a tensor of its own."""
        draft, make, outputs = self.draft, _maker(self.draft, self.part.name), list[str]()
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


def _maker(draft: Draft, name: str) -> Maker:
    """An interface to add nodes that are named after another one."""
    own = draft.fresh(f"{name}.more")
    return Maker(OnnxNode(draft, onnx.NodeProto(), own, f"{draft.where}: node {name}"))


def _again(make: Maker, name: str) -> str:
    """A tensor once more, under another name."""
    kind = make.kind(name)
    node = ops.QReshape if kind.dtype == "int8" else ops.Reshape
    return make.add(node(**make.names(), data=name), kind.dtype, kind.shape)


def _captured(draft: Draft, parts: Sequence[Part]) -> list[str]:
    """The tensors that parts read of the graphs around them, less what is known now."""
    names = dict.fromkeys(name for part in parts for name in part.free())
    return [name for name in names if draft.known(draft.alias.get(name, name)) is None]


def _emit(view: OnnxNode, node: ops.Control) -> None:
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


def _outputs(view: OnnxNode, first: int, count: int) -> Iterator[str]:
    """Names for the results in some places, which the file need not have."""
    names = list(view.proto.output)
    for place in range(first, first + count):
        given = str(names[place]) if place < len(names) else ""
        yield given or view.draft.fresh(f"{view.name}.result{place}")


class _Fields(TypedDict):
    """The fields that all nodes of control have."""

    name: str
    output: str
    others: tuple[str, ...]
    operands: tuple[str, ...]


def _fields(
    view: OnnxNode, outputs: Sequence[str], operands: Sequence[str], name: str = ""
) -> _Fields:
    """The fields of a node of control with some results and operands."""
    alias, name = view.draft.alias, name or view.name
    own = tuple(alias.get(name, name) for name in operands)
    return {"name": name, "output": outputs[0], "others": tuple(outputs[1:]), "operands": own}


# Operators --------------------------------------------------------------------------------------


def _add_if(view: OnnxNode) -> None:
    """Adds a choice that only running decides."""
    condition = _maker(view.draft, view.name).reshape(view.operand(0), ())
    branches = [(view.attributes[f"{each}_branch"], each) for each in ("then", "else")]
    parts = [part_of(graph, f"{view.name}.{each}") for graph, each in branches]
    captured = _captured(view.draft, parts)
    regions = [_Region(view, part, captured) for part in parts]
    then, otherwise = (region.graph(region.read()) for region in regions)
    outputs = list(_outputs(view, 0, len(then.outputs)))
    fields = _fields(view, outputs, [condition, *captured])
    _emit(view, ops.If(**fields, then=then, otherwise=otherwise))


def _add_loop(view: OnnxNode) -> None:
    """Adds a Loop: a Scan, a While, its turns one behind another, or nothing."""
    draft, part = view.draft, part_of(view.attributes["body"], f"{view.name}.body")
    states = [view.operand(n) for n in range(2, len(view.proto.input))]
    trips, condition = view.optional(0), view.optional(1)
    known = None if trips is None else draft.known(trips)
    turns = None if known is None else max(int(known.reshape(())), 0)
    begins = np.array(True) if condition is None else draft.known(condition)
    if turns == 0 or (begins is not None and not begins.all()):
        _add_no_turn(view, states)
        return
    region = _Region(view, part, _captured(draft, [part]))
    number, again, *carried = part.inputs
    region.count(number)
    region.fix(again, True)
    for value, state in zip(carried, states, strict=True):
        region.give(value.name, draft.tensors[state])
    changed = any(0 in draft.tensors[state].shape for state in states)
    if not changed:
        go, *results = region.read()
        changed = not all(
            alike(draft.tensors[state], region.draft.tensors[result])
            for state, result in zip(states, results, strict=False)
        )
        goes_on = region.draft.known(go)
    if changed:
        _add_turns(view, turns if begins is not None else None, states)
        return
    if goes_on is not None and goes_on.all() and trips is None:
        raise LoopError(view.where, "a number of turns, or a condition that ends it", "neither")
    if goes_on is not None and goes_on.all() and begins is not None and turns is not None:
        outputs = list(_outputs(view, 0, len(results)))
        fields = _fields(view, outputs, [*states, *region.captured])
        body = region.graph(results)
        _emit(view, ops.Scan(**fields, body=body, carried=len(states), turns=turns))
        return
    _add_while(view, region, (go, *results), states)


def _add_while(
    view: OnnxNode, region: _Region, results: Sequence[str], states: Sequence[str]
) -> None:
    """Adds a Loop whose number of turns only running decides; ``results`` are the region's."""
    draft = view.draft
    outer, make = _maker(draft, view.name), _maker(region.draft, region.part.name)
    trips, condition = view.optional(0), view.optional(1)
    go, carried, rows = results[0], results[1 : 1 + len(states)], results[1 + len(states) :]
    if rows and draft.opset < SLICE_BY_TENSORS:
        raise view.unsupported(f"opset {SLICE_BY_TENSORS} or a later one", draft.opset)
    behind = make.binary("add", region.inputs[0], make.constant(1, "int64"))
    go = make.reshape(go, ())
    first = outer.constant(True, "bool") if condition is None else outer.reshape(condition, ())
    turns, operands, gives = draft.turns, list(states), list(carried)
    if rows:
        region.give(f"{region.part.name}.count", TensorType((1,), "int64"))
        operands.append(outer.constant([0], "int64"))
        gives.append(make.reshape(behind, (1,)))
    count = len(operands)
    if trips is not None:
        known, trips = draft.known(trips), outer.reshape(trips, ())
        if known is None:
            limit = region.give(f"{region.part.name}.trips", TURN)
            operands.append(trips)
            some = outer.binary("gt", trips, outer.constant(0, "int64"))
            first = outer.binary("and", first, some)
        else:
            turns = int(known.reshape(()))
            limit = make.constant(turns, "int64")
        go = make.binary("and", go, make.binary("lt", behind, limit))
    ends = list(_outputs(view, 0, len(states)))
    names = [f"{name}.rows" for name in _outputs(view, len(states), len(rows))]
    total = [f"{view.name}.count"] if rows else []
    fields = _fields(view, [*ends, *total, *names], [first, *operands, *region.captured])
    body = region.graph([go, *gives, *rows])
    _emit(view, ops.While(**fields, body=body, carried=count, turns=turns))
    for name in names:
        _open(view, name.removesuffix(".rows"), name, total[0])


def _open(view: OnnxNode, output: str, rows: str, count: str) -> None:
    """Makes a result the first rows of another tensor."""
    draft = view.draft
    if output not in draft.read:
        return
    if count in draft.constants:
        number = int(draft.constants[count][0])
        draft.add_constant(output, draft.constants[rows][:number])
        return
    zero = draft.add_constant(f"{output}.zero", np.zeros(1, np.int64))
    node = helper.make_node("Slice", [rows, zero, count, zero], [output])
    kind = draft.tensors[rows]
    code = helper.np_dtype_to_tensor_dtype(dtype_of(kind.dtype))
    proto = helper.make_tensor_type_proto(code, (None, *kind.shape[1:]))
    reason = "the number of a loop's turns depends on data"
    draft.prefixes[output] = rows, count
    draft.open[output] = Island(
        {next(draft.places): node}, view.name, view.where, reason, draft.opset, kind=proto
    )


def _add_no_turn(view: OnnxNode, states: Sequence[str]) -> None:
    """Adds a Loop whose condition doesn't hold at first."""
    rows = [name for name in view.proto.output[len(states) :] if name in view.draft.read]
    if rows:
        raise view.unsupported("a loop of some turns, whose results are stacked", "none")
    _call(view, states, view.proto.output)


def _add_turns(view: OnnxNode, turns: int | None, states: Sequence[str]) -> None:
    """Adds the turns of a Loop one behind another: shapes differ from turn to turn."""
    draft, graph = view.draft, view.attributes["body"]
    first = list(map(draft.tensors.__getitem__, states))
    rows: list[list[str]] = []
    if turns is None or turns * len(graph.node) > MOST_UNROLLED:
        raise view.unsupported("states of one type in each turn", ", ".join(map(typed, first)))
    for turn in range(turns):
        part = part_of(graph, f"{view.name}.turn{turn}")
        number, again, *carried = part.inputs
        for value, array in ((number, np.array(turn, np.int64)), (again, np.array(True))):
            shape = (1,) * len(value.type.tensor_type.shape.dim)
            draft.add_constant(value.name, array.reshape(shape))
        draft.alias.update((v.name, s) for v, s in zip(carried, states, strict=True))
        draft.read_nodes(part.nodes)
        go, *results = (draft.alias.get(name, name) for name in part.outputs)
        holds = draft.known(go)
        if holds is None or not holds.all():
            raise view.unsupported("a condition that holds in each turn", go)
        states, slices = results[: len(states)], results[len(states) :]
        rows.append(slices)
    make = _maker(draft, view.name)
    stacks = [
        make.concat([make.reshape(name, (1, *make.shape(name))) for name in column], 0)
        for column in zip(*rows, strict=True)
    ]
    _call(view, [*states, *stacks], view.proto.output)


def _call(view: OnnxNode, sources: Sequence[str], names: Sequence[str]) -> None:
    """Calls tensors as a node's results are called."""
    pairs = [(a, b) for a, b in zip(sources, names, strict=False) if b]
    view.draft.read_nodes([helper.make_node("Identity", [a], [b]) for a, b in pairs])


def _add_scan(view: OnnxNode) -> None:
    """Adds a Scan; of a batch one for each of its elements."""
    count, batched = view.integer("num_scan_inputs", 0), view.draft.opset <= SCAN_OF_BATCHES
    operands = [view.operand(n) for n in range(batched, len(view.proto.input))]
    states, scanned = operands[: len(operands) - count], operands[len(operands) - count :]
    make = _maker(view.draft, view.name)
    if not batched:
        _call(view, _scanned(view, view.name, states, scanned, make), view.proto.output)
        return
    if view.optional(0) is not None:
        raise view.unsupported("sequences of one length", "sequence_lens")
    each = []
    for number in range(make.shape(operands[0])[0]):
        own, given = ([_element(make, n, number) for n in names] for names in (states, scanned))
        each.append(_scanned(view, f"{view.name}.{number}", own, given, make))
    results = [
        make.concat([make.reshape(name, (1, *make.shape(name))) for name in column], 0)
        for column in zip(*each, strict=True)
    ]
    _call(view, results, view.proto.output)


def _element(make: Maker, name: str, number: int) -> str:
    """An element along the first axis."""
    return make.reshape(make.along(name, 0, [number]), make.shape(name)[1:])


def _scanned(
    view: OnnxNode, name: str, states: Sequence[str], scanned: Sequence[str], make: Maker
) -> list[str]:
    """Adds a Scan called ``name``; its results, as ONNX has them."""
    draft, part = view.draft, part_of(view.attributes["body"], f"{name}.body")
    behind = len(part.outputs) - len(states)
    ways = [view.integers(f"scan_{end}_directions", [0] * n)
            for end, n in (("input", len(scanned)), ("output", behind))]  # fmt: skip
    axes = [view.integers(f"scan_{end}_axes", [0] * n)
            for end, n in (("input", len(scanned)), ("output", behind))]  # fmt: skip
    given = [
        _turned(make, _moved(make, each, axis, 0), way)
        for each, axis, way in zip(scanned, axes[0], ways[0], strict=True)
    ]
    turns = make.shape(given[0])[0]
    region = _Region(view, part, _captured(draft, [part]))
    region.give(f"{part.name}.turn", TURN)
    kinds = [draft.tensors[n] for n in states]
    kinds += [TensorType(draft.tensors[n].shape[1:], draft.tensors[n].dtype) for n in given]
    for value, kind in zip(part.inputs, kinds, strict=True):
        region.give(value.name, kind)
    body = region.graph(region.read())
    outputs = [draft.fresh(f"{name}.result{n}") for n in range(len(body.outputs))]
    fields = _fields(view, outputs, [*states, *given, *region.captured], name)
    _emit(view, ops.Scan(**fields, body=body, carried=len(states), turns=turns,
                         scanned=len(given)))  # fmt: skip
    rows = zip(outputs[len(states) :], axes[1], ways[1], strict=True)
    moved = [_moved(make, _turned(make, row, way), 0, axis) for row, axis, way in rows]
    return [*outputs[: len(states)], *moved]


def _moved(make: Maker, name: str, axis: int, place: int) -> str:
    """A tensor with an axis at another place."""
    order = list(range(len(make.shape(name))))
    order.insert(place % len(order), order.pop(axis))
    return make.transpose(name, order)


def _turned(make: Maker, name: str, way: int) -> str:
    """A tensor whose elements along the first axis come in reverse order, if ``way`` is 1."""
    return make.along(name, 0, range(make.shape(name)[0])[::-1]) if way else name
