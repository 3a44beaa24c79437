"""ONNX's control flow as nodes that hold graphs: If, Loop and Scan.

Loops are in ``loops.py``, graphs inside nodes in ``regions.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

import numpy as np
import onnx

from vdla.compiler.frontend.bodies import part_of
from vdla.compiler.frontend.errors import UnsupportedError, halves
from vdla.compiler.frontend.external import close
from vdla.compiler.frontend.loops import add_loop
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.regions import (
    Region,
    call_results,
    captured_by,
    common_fields,
    emit,
    fresh_names,
    maker_in,
    stack_rows,
)
from vdla.compiler.frontend.sequences import define, leaves, rebuilt
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.control import TURN
from vdla.compiler.graph.types import TensorType
from vdla.runtime.values import Absent, Listed, Maybe, Value

SCAN_OF_BATCHES = 8  # the opset whose Scan has a batch in front of each operand


def is_control(node: onnx.NodeProto) -> bool:
    """Whether a node is one of ONNX's control flow."""
    return not node.domain and node.op_type in CONTROL


def add_control(view: OnnxNode) -> None:
    """Adds an If, a Loop or a Scan as a node that holds graphs.

    Raises:
        LoopError: the loop can't be one, whoever runs it.
        ModelError: one of its graphs has what vdla lacks, or shapes that only a run decides.
    """
    try:
        CONTROL[view.proto.op_type](view)
    except GraphError as error:
        raise UnsupportedError(view.where, *halves(str(error))) from None


def _add_if(view: OnnxNode) -> None:
    """Adds a choice that only running decides."""
    condition = maker_in(view.draft, view.name).reshape(view.operand(0), ())
    branches = [(view.attributes[f"{each}_branch"], each) for each in ("then", "else")]
    parts = [part_of(graph, f"{view.name}.{each}") for graph, each in branches]
    captured = captured_by(view.draft, parts)
    regions = [Region(view, part, captured) for part in parts]
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
    outputs = names if len(names) == len(then.outputs) else fresh_names(view, len(then.outputs))
    fields = common_fields(view, outputs, [condition, *captured])
    emit(view, ops.If(**fields, then=then, otherwise=otherwise))
    whole = rebuilt(values[0], iter(outputs))
    assert isinstance(whole, Listed)
    for name, value in zip(view.proto.output, whole.values, strict=True):
        if value != name:
            define(view.draft, str(name), value)


def _close(regions: Sequence[Region], results: Sequence[Sequence[Value]]) -> None:
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
    regions: Sequence[Region], results: Sequence[Sequence[Value]]
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
            make, names = maker_in(region.draft, region.part.name), leaves(pair[not place])
            zeros = (make.constant(np.zeros(kinds[n].shape), kinds[n].dtype) for n in names)
            own = rebuilt(pair[not place], zeros) if both[place] else value
            made[place].append(Maybe(own, make.constant(not both[place], "bool")))
    return made


def _add_scan(view: OnnxNode) -> None:
    """Adds a Scan; of a batch one for each of its elements."""
    count, batched = view.integer("num_scan_inputs", 0), view.draft.opset <= SCAN_OF_BATCHES
    operands = [view.operand(n) for n in range(batched, len(view.proto.input))]
    states, scanned = operands[: len(operands) - count], operands[len(operands) - count :]
    make = maker_in(view.draft, view.name)
    if not batched:
        call_results(view, _scanned(view, view.name, states, scanned, make), view.proto.output)
        return
    if view.optional(0) is not None:
        raise view.unsupported("sequences of one length", "sequence_lens")
    each = []
    for number in range(make.shape(operands[0])[0]):
        own, given = ([_element(make, n, number) for n in names] for names in (states, scanned))
        each.append(_scanned(view, f"{view.name}.{number}", own, given, make))
    results = [stack_rows(make, column) for column in zip(*each, strict=True)]
    call_results(view, results, view.proto.output)


def _element(make: Maker, name: str, number: int) -> str:
    """An element along the first axis."""
    return make.reshape(make.along(name, 0, [number]), make.shape(name)[1:])


def _scanned(
    view: OnnxNode, name: str, states: Sequence[str], scanned: Sequence[str], make: Maker
) -> list[str]:
    """Adds a Scan called ``name``; its results, as ONNX has them."""
    draft, part = view.draft, part_of(view.attributes["body"], f"{name}.body")
    behind = len(part.outputs) - len(states)
    own = view.integers("directions", [0] * len(scanned))  # of a Scan of batches
    ways = [view.integers(f"scan_{end}_directions", default)
            for end, default in (("input", own), ("output", [0] * behind))]  # fmt: skip
    axes = [view.integers(f"scan_{end}_axes", [0] * n)
            for end, n in (("input", len(scanned)), ("output", behind))]  # fmt: skip
    given = [
        _turned(make, _moved(make, each, axis, 0), way)
        for each, axis, way in zip(scanned, axes[0], ways[0], strict=True)
    ]
    turns = make.shape(given[0])[0]
    region = Region(view, part, captured_by(draft, [part]))
    region.give(f"{part.name}.turn", TURN)
    kinds = [draft.tensors[n] for n in states]
    kinds += [TensorType(draft.tensors[n].shape[1:], draft.tensors[n].dtype) for n in given]
    for value, kind in zip(part.inputs, kinds, strict=True):
        region.give(value.name, kind)
    results = region.read()
    region.check(results)
    body = region.graph([str(each) for each in results])
    outputs = [draft.fresh(f"{name}.result{n}") for n in range(len(body.outputs))]
    fields = common_fields(view, outputs, [*states, *given, *region.captured], name)
    emit(view, ops.Scan(**fields, body=body, carried=len(states), turns=turns,
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


CONTROL: dict[str, Callable[[OnnxNode], None]] = {
    "If": _add_if,
    "Loop": add_loop,
    "Scan": _add_scan,
}
