"""ONNX's sequences and optional values: lists of tensors that are known while a file is read.

A sequence is a list whose length and whose elements' types are known, so that its operators only
say which tensor is meant; an optional value is that value, or absent. The one sequence of which
only a run knows the length is what a Loop appends a tensor to in each turn: rows of a tensor.

    draft.values   name -> Value, of what is no tensor      (see ``runtime/values.py``)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import onnx
from onnx import helper

from vdla.compiler.frontend.bodies import part_of
from vdla.compiler.frontend.draft import Draft
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.external import open_rows
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.graph.types import TENSOR_DTYPES, TensorType
from vdla.runtime.values import Absent, Each, Listed, Maybe, Value, tensors_of
from vdla.support.numbers import ceil_div

Run = Callable[[OnnxNode], None]
OPERATORS: dict[str, Run] = {}
LENGTH = "a length that is known while the file is read"


def is_structural(view: OnnxNode) -> bool:
    """Whether a node is one of sequences or optional values, or passes such a value on."""
    if view.proto.domain:
        return False
    draft, names = view.draft, map(str, view.proto.input)
    passes = any(draft.alias.get(name, name) in draft.values for name in names)
    return view.proto.op_type in OPERATORS and (view.proto.op_type != "Identity" or passes)


def add_structural(view: OnnxNode) -> None:
    """Says which tensors a node's result is.

    Raises:
        ModelError: its operands don't fit.
        UnsupportedError: only a run knows a length, or a place.
    """
    OPERATORS[view.proto.op_type](view)


def _operator(run: Run) -> Run:
    """Registers what reads ``_split_to_sequence`` as the operator SplitToSequence."""
    OPERATORS["".join(word.capitalize() for word in run.__name__.split("_"))] = run
    return run


@dataclass(frozen=True)
class Growing(Listed):
    """The sequence that a Loop carries, in its body; ``name`` is what was appended to it there."""

    name: str = ""


# Values -----------------------------------------------------------------------------------------


def leaves(value: Value) -> list[str]:
    """The tensors that a value of known structure is made of, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Maybe):
        return [*leaves(value.value), value.condition]
    if isinstance(value, Each):
        return tensors_of(value)
    return (
        [name for each in value.values for name in leaves(each)]
        if isinstance(value, Listed)
        else []
    )


def rebuilt(value: Value, names: Iterator[str]) -> Value:
    """A value of the same structure, of other tensors."""
    if isinstance(value, str):
        return next(names)
    if isinstance(value, Listed):
        return Listed(tuple(rebuilt(each, names) for each in value.values))
    if isinstance(value, Each):
        return Each(next(names), next(names), next(names) if value.sizes else "")
    return Maybe(rebuilt(value.value, names), next(names)) if isinstance(value, Maybe) else value


def value_of(draft: Draft, name: str) -> Value:
    """The value that a name stands for: its tensor, where it is no other one."""
    name = draft.alias.get(name, name)
    return draft.values.get(name, name)


def define(draft: Draft, name: str, value: Value) -> None:
    """Has a name stand for a value."""
    if isinstance(value, str):
        draft.alias[name] = draft.alias.get(value, value)
    else:
        draft.values[name] = value


def add_argument(draft: Draft, value: onnx.ValueInfoProto, given: object, where: str) -> Value:
    """Adds the tensors of an input that is a sequence or an optional value.

    Args:
        draft: gets the inputs.
        value: the input as the file has it.
        given: shapes of a sequence's elements, or of a tensor; None for what is absent.
        where: opens every error.
    """
    result = _argument(draft, value.name, value.type, given, where)
    if result != value.name:
        draft.values[value.name] = result
    return result


def _argument(draft: Draft, name: str, kind: onnx.TypeProto, given: object, where: str) -> Value:
    if kind.HasField("optional_type"):
        if given is None:
            return Absent()
        return _argument(draft, name, kind.optional_type.elem_type, given, where)
    if kind.HasField("sequence_type"):
        if not isinstance(given, Sequence):
            expected = "shapes of a sequence's elements"
            raise ModelError(where, expected, f"none; give them: --shape '{name}=D0,D1;D0,D1'")
        inner = kind.sequence_type.elem_type
        parts = (_argument(draft, f"{name}.{n}", inner, e, where) for n, e in enumerate(given))
        return Listed(tuple(parts))
    dtype, declared = draft.dtype(kind.tensor_type.elem_type), kind.tensor_type.shape.dim
    known = [int(dim.dim_value) for dim in declared if dim.HasField("dim_value")]
    sizes = given if isinstance(given, Sequence) else known
    if dtype not in TENSOR_DTYPES or not all(isinstance(size, int) for size in sizes):
        raise ModelError(where, f"elements of {', '.join(TENSOR_DTYPES)}", dtype)
    draft.tensors[name] = TensorType(tuple(int(size) for size in sizes), dtype)
    draft.inputs.append(name)
    return name


def _sequence(view: OnnxNode, index: int = 0) -> list[Value]:
    """The elements of an operand.

    Raises:
        UnsupportedError: only a run knows how many there are.
    """
    value = value_of(view.draft, view.proto.input[index])
    values = value.values if isinstance(value, Listed) else ()
    is_known = isinstance(value, Listed) and not isinstance(value, Growing)
    if not is_known or any(isinstance(each, Each) for each in values):
        raise view.unsupported(f"a sequence of {LENGTH}", view.proto.input[index])
    return list(values)


def _place(view: OnnxNode, index: int, count: int) -> int | None:
    """A place in a sequence, which may count from the end; None where the node names none.

    Raises:
        ModelError: there is no such place.
    """
    if view.optional(index) is None:
        return None
    place = int(view.constant(index, "place").reshape(()))
    if not -count <= place < count:
        raise view.error(f"a place from {-count} to {count - 1}", place)
    return place % count


def _result(view: OnnxNode, value: Value) -> None:
    """Has the node's result be a value."""
    define(view.draft, str(view.proto.output[0]), value)


def _kept(view: OnnxNode, name: str) -> None:
    """Has the node's result be a tensor, under its own name where it is the file's."""
    view.draft.read_nodes([helper.make_node("Identity", [name], [view.proto.output[0]])])


# Operators --------------------------------------------------------------------------------------


@_operator
def _identity(view: OnnxNode) -> None:
    _result(view, value_of(view.draft, view.proto.input[0]))


@_operator
def _optional(view: OnnxNode) -> None:
    _result(view, value_of(view.draft, view.proto.input[0]) if view.proto.input else Absent())


@_operator
def _optional_get_element(view: OnnxNode) -> None:
    value = value_of(view.draft, view.proto.input[0])
    if isinstance(value, Absent):
        raise view.error("a value that is there", "none")
    value = value.value if isinstance(value, Maybe) else value
    _kept(view, value) if isinstance(value, str) else _result(view, value)


@_operator
def _optional_has_element(view: OnnxNode) -> None:
    name = view.proto.input[0] if view.proto.input else ""
    value = value_of(view.draft, name)
    if isinstance(value, Maybe):
        _kept(view, value.condition)
        return
    has = bool(name) and not isinstance(value, Absent)
    view.draft.add_constant(view.proto.output[0], np.array(has))


@_operator
def _sequence_empty(view: OnnxNode) -> None:
    _result(view, Listed())


@_operator
def _sequence_construct(view: OnnxNode) -> None:
    _result(view, Listed(tuple(value_of(view.draft, name) for name in view.proto.input)))


@_operator
def _sequence_length(view: OnnxNode) -> None:
    value, output = value_of(view.draft, view.proto.input[0]), view.proto.output[0]
    grown = [e for e in value.values if isinstance(e, Each)] if isinstance(value, Listed) else []
    if not isinstance(value, Listed) or not grown:
        view.draft.add_constant(output, np.array(len(_sequence(view)), np.int64))
        return
    make = Maker(view)
    total = make.constant(len(value.values) - len(grown), "int64")
    for each in grown:
        total = make.binary("add", total, make.reshape(each.count, ()))
    make.result(total)


@_operator
def _sequence_at(view: OnnxNode) -> None:
    elements = _sequence(view)
    if view.draft.known(view.operand(1)) is not None:
        place = _place(view, 1, len(elements))
        assert place is not None
        element = elements[place]
        _kept(view, element) if isinstance(element, str) else _result(view, element)
        return
    make, names = Maker(view), [name for each in elements for name in leaves(each)]
    kinds = {make.kind(name) for name in names}
    if len(kinds) != 1 or len(names) != len(elements):
        raise view.unsupported("elements of one type, of which a run takes one", len(kinds))
    rows = make.concat([make.reshape(name, (1, *make.shape(name))) for name in names], 0)
    number = make.reshape(view.operand(1), ())
    node = ops.Gather(**make.names(), data=rows, indices=number, axis=0)
    make.result(make.add(node, make.kind(rows).dtype))


@_operator
def _sequence_insert(view: OnnxNode) -> None:
    value, draft = value_of(view.draft, view.proto.input[0]), view.draft
    element = value_of(draft, view.proto.input[1])
    if isinstance(value, Growing) and view.optional(2) is None and not value.name:
        _result(view, Growing(name=str(view.proto.input[1])))
        return
    if isinstance(element, str) and element not in draft.tensors:
        raise view.unsupported("elements of static shape", element)
    elements, count = _sequence(view), len(_sequence(view))
    if view.optional(2) is None:
        place = count
    else:
        place = int(view.constant(2, "place").reshape(()))
        if not -count <= place <= count:
            raise view.error(f"a place from {-count} to {count}", place)
        place += count * (place < 0)
    _result(view, Listed((*elements[:place], element, *elements[place:])))


@_operator
def _sequence_erase(view: OnnxNode) -> None:
    elements = _sequence(view)
    place = _place(view, 1, len(elements))
    del elements[-1 if place is None else place]
    _result(view, Listed(tuple(elements)))


@_operator
def _split_to_sequence(view: OnnxNode) -> None:
    make, shape = Maker(view), view.shape(0)
    axis, keeps = view.axis(view.integer("axis", 0), len(shape)), view.integer("keepdims", 1)
    size, sizes = shape[axis], [1] * shape[axis]
    if view.optional(1) is not None:
        split, keeps = view.constant(1, "split"), 1
        each = int(split.reshape(-1)[0]) if split.size else 0
        sizes = split.reshape(-1).tolist()
        if split.ndim == 0:
            sizes = [min(each, size - n * each) for n in range(ceil_div(size, max(each, 1)))]
    if sum(sizes) != size or min(sizes, default=0) < 0:
        raise view.error(f"parts of {size} elements", sizes)
    starts = np.cumsum([0, *sizes]).tolist()
    ranges = (range(*pair) for pair in pairwise(starts))
    parts = [make.along(view.operand(0), axis, each) for each in ranges]
    if not keeps:
        rest = (*shape[:axis], *shape[axis + 1 :])
        parts = [make.reshape(part, rest) for part in parts]
    _result(view, Listed(tuple(parts)))


@_operator
def _concat_from_sequence(view: OnnxNode) -> None:
    draft, make = view.draft, Maker(view)
    axis, new = view.integer("axis", 0), view.integer("new_axis", 0)
    value = value_of(draft, view.proto.input[0])
    if isinstance(value, Listed) and [type(each) for each in value.values] == [Each]:
        (rows,) = (each for each in value.values if isinstance(each, Each))
        _joined_rows(view, rows, axis, new)
        return
    names = [name for each in _sequence(view) for name in leaves(each)]
    if new:
        place = view.axis(axis, len(make.shape(names[0])) + 1)
        shapes = [(*s[:place], 1, *s[place:]) for s in map(make.shape, names)]
        names = [make.reshape(name, shape) for name, shape in zip(names, shapes, strict=True)]
    _kept(view, make.concat(names, view.axis(axis, len(make.shape(names[0])))))


def _joined_rows(view: OnnxNode, rows: Each, axis: int, new: int) -> None:
    """Rows of which only a run knows how many, as one tensor."""
    make = Maker(view)
    shape = make.shape(rows.tensor)
    if axis != 0 or rows.sizes or (not new and len(shape) < 2):
        raise view.unsupported("elements of one shape, along the first axis", f"axis {axis}")
    name, count = rows.tensor, rows.count
    if not new:
        name = make.reshape(name, (shape[0] * shape[1], *shape[2:]))
        count = make.binary("mul", count, make.constant(shape[1], "int64"))
    open_rows(view, str(view.proto.output[0]), name, count)


@_operator
def _sequence_map(view: OnnxNode) -> None:
    """The body once for each element; an operand that is no sequence is the same in each."""
    draft, count = view.draft, len(_sequence(view))
    given = [value_of(draft, name) for name in view.proto.input]
    results: list[list[Value]] = []
    for number in range(count):
        part = part_of(view.attributes["body"], f"{view.name}.{number}")
        for formal, value in zip(part.names, given, strict=True):
            define(draft, formal, value.values[number] if isinstance(value, Listed) else value)
        draft.read |= {*part.outputs}
        draft.read_nodes(part.nodes)
        results.append([value_of(draft, name) for name in part.outputs])
    columns = zip(*results, strict=True) if results else ([] for _ in view.proto.output)
    for name, column in zip(view.proto.output, columns, strict=True):
        draft.values[name] = Listed(tuple(column))
