"""ONNX's control flow as nodes that hold graphs: If, Loop and Scan.

A graph inside a node becomes a region: what it reads of the graphs around it is captured, constants
are its own. A Loop whose number of turns is known and whose condition always holds is a Scan, any
other one a While: its condition includes that the number of turns isn't reached. Where the shapes
of what turn after turn gets change, turns of a known number stand one behind another.

Rows that a While stacks are as many as it has turns: the result is open, the first elements of a
tensor of as many as it may have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from typing import TypedDict

import numpy as np
import onnx
from onnx import helper

from vdla.compiler.frontend.bodies import Part, part_of
from vdla.compiler.frontend.draft import Draft, names_read
from vdla.compiler.frontend.errors import LoopError, UnsupportedError, halves
from vdla.compiler.frontend.external import close, open_rows
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.sequences import Growing, define, leaves, rebuilt, value_of
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.ops.control import TURN, alike, typed
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType
from vdla.runtime.values import Absent, Each, Listed, Maybe, Value

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
    free = (name for part in parts for name in part.free())
    names = dict.fromkeys(leaf for name in free for leaf in leaves(value_of(draft, name)))
    return [name for name in names if draft.known(name) is None]


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


def _fresh(view: OnnxNode, count: int) -> list[str]:
    """Names for results that the file has no names for."""
    return [view.draft.fresh(f"{view.name}.result{n}") for n in range(count)]


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
    results = [region.read() for region in regions]
    _close(regions, results)
    results = _with_absent(regions, results)
    values = [Listed(tuple(each)) for each in results]
    then, otherwise = (
        region.graph(leaves(value)) for region, value in zip(regions, values, strict=True)
    )
    if len({repr(rebuilt(value, repeat(""))) for value in values}) != 1:
        raise view.unsupported("branches with results of one structure", "others")
    names = [n for v, n in zip(results[0], view.proto.output, strict=False) if isinstance(v, str)]
    outputs = names if len(names) == len(then.outputs) else _fresh(view, len(then.outputs))
    fields = _fields(view, outputs, [condition, *captured])
    _emit(view, ops.If(**fields, then=then, otherwise=otherwise))
    whole = rebuilt(values[0], iter(outputs))
    assert isinstance(whole, Listed)
    for name, value in zip(view.proto.output, whole.values, strict=True):
        if value != name:
            define(view.draft, str(name), value)


def _add_loop(view: OnnxNode) -> None:
    """Adds a Loop: a Scan, a While, its turns one behind another, or nothing."""
    loop = _Loop(view)
    lists = any(not isinstance(state, str) for state in loop.states) or any(
        not isinstance(value_of(view.draft, name), str) for name in loop.part.free()
    )
    if loop.turns == 0 or (loop.begins is not None and not loop.begins.all()):
        loop.add_nothing()
    elif (lists and loop.unrolled) or not loop.add():
        loop.add_turns()


def _close(regions: Sequence[_Region], results: Sequence[Sequence[Value]]) -> None:
    """Gives results of one branch whose size depends on data the types of the other one's: they
    have no others where what reads them has a static shape."""
    for pair in zip(*results, strict=True):
        for place, name in enumerate(pair):
            draft, other = regions[place].draft, regions[not place].draft
            kind = other.tensors.get(str(pair[not place]))
            if isinstance(name, str) and name in draft.open and kind is not None:
                close(draft, name, kind)
    for region, values in zip(regions, results, strict=True):
        region.check(values)


def _with_absent(
    regions: Sequence[_Region], results: Sequence[Sequence[Value]]
) -> list[list[Value]]:
    """The results of two branches; an optional one that only one of them has is zeros in the
    other, and says whether it is there."""
    made: list[list[Value]] = [[], []]
    for pair in zip(*results, strict=True):
        both = [isinstance(each, Absent) for each in pair]
        for place, value in enumerate(pair):
            region, kinds = regions[place], regions[not place].draft.tensors
            if both == [True, True] or not any(both):
                made[place].append(value)
                continue
            make, names = _maker(region.draft, region.part.name), leaves(pair[not place])
            zeros = (make.constant(np.zeros(kinds[n].shape), kinds[n].dtype) for n in names)
            own = rebuilt(pair[not place], zeros) if both[place] else value
            made[place].append(Maybe(own, make.constant(not both[place], "bool")))
    return made


class _Loop:
    """A Loop of a file.

    ``states`` are what its first turn gets, ``turns`` is their number and ``begins`` its condition,
    where they are known.
    """

    def __init__(self, view: OnnxNode) -> None:
        self.view, self.draft = view, view.draft
        self.body, count = view.attributes["body"], len(view.proto.input)
        self.part = part_of(self.body, f"{view.name}.body")
        self.states = [value_of(view.draft, view.proto.input[n]) for n in range(2, count)]
        self.trips, self.condition = view.optional(0), view.optional(1)
        known = None if self.trips is None else self.draft.known(self.trips)
        self.turns = None if known is None else max(int(known.reshape(())), 0)
        begins = np.array(True) if self.condition is None else self.draft.known(self.condition)
        self.begins = begins

    @property
    def unrolled(self) -> bool:
        """Whether its turns may stand one behind another."""
        known = self.turns is not None and self.begins is not None
        return known and (self.turns or 0) * len(self.body.node) <= MOST_UNROLLED

    def add(self) -> bool:
        """Adds it as a node; False where shapes differ from turn to turn."""
        draft, region = (
            self.draft,
            _Region(self.view, self.part, _captured(self.draft, [self.part])),
        )
        number, again, *formals = self.part.inputs
        tensors = [state for state in self.states if isinstance(state, str)]
        if any(0 in draft.tensors[name].shape for name in tensors):
            return False
        region.count(number)
        region.fix(again, True)
        for formal, state in zip(formals, self.states, strict=True):
            if isinstance(state, str):
                region.give(formal.name, draft.tensors[state])
            else:
                region.draft.values[formal.name] = Growing()
        go, *results = region.read()
        region.check([go, *(value for value in results if isinstance(value, str))])
        turn = _Turn(region, str(go), results, self.states)
        if any(
            isinstance(new, str) and not alike(draft.tensors[old], region.draft.tensors[new])
            for old, new in zip(tensors, turn.carried, strict=True)
        ):
            return False
        holds = region.draft.known(turn.go)
        always = holds is not None and bool(holds.all())
        if always and self.trips is None:
            expected = "a number of turns, or a condition that ends it"
            raise LoopError(self.view.where, expected, "neither")
        if always and self.begins is not None and self.turns is not None:
            self.add_scan(turn, tensors)
        else:
            self.add_while(turn, tensors)
        return True

    def add_scan(self, turn: _Turn, tensors: Sequence[str]) -> None:
        """Adds it as a node with a number of turns."""
        assert self.turns is not None
        names = self.names(turn)
        fields = _fields(self.view, names, [*tensors, *turn.region.captured])
        body = turn.region.graph([*turn.carried, *turn.rows])
        _emit(self.view, ops.Scan(**fields, body=body, carried=len(tensors), turns=self.turns))
        stacked = names[len(tensors) :]
        count = ""
        if turn.growing:
            count = self.draft.add_constant(f"{self.view.name}.count", np.array([self.turns]))
        self.name_lists(turn, stacked, count)
        self.name_rows(turn, stacked, "")

    def add_while(self, turn: _Turn, tensors: Sequence[str]) -> None:
        """Adds it as a node with a condition, which includes the number of turns."""
        draft, region = self.draft, turn.region
        outer, make = _maker(draft, self.view.name), _maker(region.draft, self.part.name)
        if turn.rows and draft.opset < SLICE_BY_TENSORS:
            raise self.view.unsupported(f"opset {SLICE_BY_TENSORS} or a later one", draft.opset)
        behind = make.binary("add", region.inputs[0], make.constant(1, "int64"))
        first, go = outer.constant(True, "bool"), make.reshape(turn.go, ())
        if self.condition is not None:
            first = outer.reshape(self.condition, ())
        turns, operands, gives = draft.turns, list(tensors), list(turn.carried)
        if turn.rows:
            region.give(f"{self.part.name}.count", TensorType((1,), "int64"))
            operands.append(outer.constant([0], "int64"))
            gives.append(make.reshape(behind, (1,)))
        count = len(operands)
        if self.turns is not None:
            turns, limit = self.turns, make.constant(self.turns, "int64")
            go = make.binary("and", go, make.binary("lt", behind, limit))
        elif self.trips is not None:
            trips = outer.reshape(self.trips, ())
            some = outer.binary("gt", trips, outer.constant(0, "int64"))
            first = outer.binary("and", first, some)
            operands.append(trips)
            limit = region.give(f"{self.part.name}.trips", TURN)
            go = make.binary("and", go, make.binary("lt", behind, limit))
        names = self.names(turn)
        total = [f"{self.view.name}.count"] if turn.rows else []
        stacked = [f"{name}.rows" for name in names[len(tensors) :]]
        ends = [*names[: len(tensors)], *total, *stacked]
        fields = _fields(self.view, ends, [first, *operands, *region.captured])
        body = region.graph([go, *gives, *turn.rows])
        _emit(self.view, ops.While(**fields, body=body, carried=count, turns=turns))
        self.name_lists(turn, stacked, *total)
        self.name_rows(turn, stacked, *total)

    def names(self, turn: _Turn) -> list[str]:
        """Names for the tensors that are carried, then for rows."""
        given = dict(enumerate(map(str, self.view.proto.output)))
        plain = [n for n, state in enumerate(self.states) if isinstance(state, str)]
        places = [*plain, *range(len(self.states), len(self.states) + turn.plain)]
        rest = len(turn.rows) - turn.plain
        names = [given.get(n) or self.draft.fresh(f"{self.view.name}.result{n}") for n in places]
        return [*names, *(self.draft.fresh(f"{self.view.name}.list{n}") for n in range(rest))]

    def name_rows(self, turn: _Turn, stacked: Sequence[str], count: str = "") -> None:
        """Has the file's names stand for rows, as many as a tensor says."""
        names = self.view.proto.output[len(self.states) :]
        for name, rows in zip(names, stacked, strict=False):
            if name and count:
                open_rows(self.view, str(name), rows, count)

    def name_lists(self, turn: _Turn, stacked: Sequence[str], count: str = "") -> None:
        """Has the file's names stand for lists that grew turn after turn."""
        rows = iter(stacked[turn.plain :])
        for place, after in turn.growing.items():
            state = self.states[place]
            assert isinstance(state, Listed)
            more = (Each(next(rows), count, next(rows) if after else ""),)
            define(self.draft, str(self.view.proto.output[place]), Listed((*state.values, *more)))
        for place in turn.kept:
            define(self.draft, str(self.view.proto.output[place]), self.states[place])

    def add_nothing(self) -> None:
        """Adds what it gives where its condition doesn't hold at first."""
        names = list(map(str, self.view.proto.output))
        if any(name in self.draft.read for name in names[len(self.states) :]):
            raise self.view.unsupported("a loop of some turns, whose results are stacked", "none")
        _call(self.view, self.states, names)

    def add_turns(self) -> None:
        """Adds its turns one behind another: shapes differ, or lists that it reads.

        Raises:
            UnsupportedError: only a run knows their number, or they are too many.
        """
        draft, states, rows = self.draft, self.states, list[list[Value]]()
        if not self.unrolled:
            actual = ", ".join(typed(draft.tensors[s]) for s in states if isinstance(s, str))
            raise self.view.unsupported("states of one type in each turn", actual or "a list")
        for turn in range(self.turns or 0):
            part = part_of(self.body, f"{self.view.name}.turn{turn}")
            number, again, *formals = part.inputs
            for value, array in ((number, np.array(turn, np.int64)), (again, np.array(True))):
                shape = (1,) * len(value.type.tensor_type.shape.dim)
                draft.add_constant(value.name, array.reshape(shape))
            for formal, state in zip(formals, states, strict=True):
                define(draft, formal.name, state)
            draft.read |= {*part.outputs}
            draft.read_nodes(part.nodes)
            go, *results = (value_of(draft, name) for name in part.outputs)
            holds = draft.known(str(go))
            if holds is None or not holds.all():
                raise self.view.unsupported("a condition that holds in each turn", go)
            states, slices = results[: len(states)], results[len(states) :]
            rows.append(slices)
        make = _maker(draft, self.view.name)
        stacks = [_stack(make, list(map(str, column))) for column in zip(*rows, strict=True)]
        _call(self.view, [*states, *stacks], self.view.proto.output)


class _Turn:
    """Results of a turn of a Loop.

    ``carried`` are tensors for the next turn, ``rows`` are stacked: ``plain`` many of the file's,
    then what lists grow by. ``growing`` are the places of states that are such lists, and whether
    the size of what is appended is a tensor of its own; ``kept`` are lists that stay as they are.
    """

    def __init__(
        self, region: _Region, go: str, results: Sequence[Value], states: Sequence[Value]
    ) -> None:
        self.region, self.go = region, go
        pairs = list(zip(states, results, strict=False))
        self.carried = [str(new) for old, new in pairs if isinstance(old, str)]
        self.rows = [str(row) for row in results[len(states) :]]
        self.plain, self.growing, self.kept = len(self.rows), dict[int, bool](), list[int]()
        for place, (old, new) in enumerate(pairs):
            if isinstance(old, str):
                continue
            if not isinstance(new, Growing) or not isinstance(old, Listed):
                raise region.view.unsupported("a list that grows at its end", new)
            if new.name:
                self._append(place, new.name)
            else:
                self.kept.append(place)

    def _append(self, place: int, name: str) -> None:
        """Adds the rows that one more element of a list is."""
        draft = self.region.draft
        tensor, count = draft.prefixes.get(name, (draft.alias.get(name, name), ""))
        if tensor not in draft.tensors:
            raise self.region.view.unsupported("elements of known largest size", name)
        self.growing[place] = bool(count)
        self.rows.append(tensor)
        if count:
            make, shape = _maker(draft, self.region.part.name), draft.tensors[tensor].shape
            rest = [make.constant(list(shape[1:]), "int64")] if len(shape) > 1 else []
            self.rows.append(make.concat([count, *rest], 0))


def _stack(make: Maker, names: Sequence[str]) -> str:
    """Tensors along a new first axis."""
    return make.concat([make.reshape(name, (1, *make.shape(name))) for name in names], 0)


def _call(view: OnnxNode, sources: Sequence[Value], names: Sequence[str]) -> None:
    """Calls what a node gives as its results are called."""
    for source, name in zip(sources, names, strict=False):
        if name and isinstance(source, str):
            view.draft.read_nodes([helper.make_node("Identity", [source], [name])])
        elif name:
            define(view.draft, str(name), source)


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
    results = [_stack(make, column) for column in zip(*each, strict=True)]
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
    results = region.read()
    region.check(results)
    body = region.graph([str(each) for each in results])
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
