"""Adjoints of choices and of loops of a known number of turns.

A choice goes back the same way. A Scan goes back turn by turn from the last one: a turn is done
once more from the state that it began with, which the loop keeps for that, and its own nodes are
met in reverse. A loop that ends by a condition has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from vdla.compiler.autodiff.rules import Begin, Walk, variable
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import TensorType
from vdla.compiler.tracing.arrays import STACK, Array, Trace
from vdla.compiler.tracing.control import cond, scan
from vdla.compiler.tracing.inline import inline
from vdla.compiler.tracing.nodes import array
from vdla.compiler.tracing.shapes import full_like


def back_through(walk: Walk, node: ops.Control, begin: Begin) -> bool:
    """Gives the operands of a choice or a loop their gradients; False where it has none."""
    if isinstance(node, ops.If):
        _back_through_choice(walk, node, begin)
    elif isinstance(node, ops.Scan):
        _back_through_scan(walk, node, begin)
    return isinstance(node, ops.If | ops.Scan)


def _floats(arrays: Sequence[Array]) -> list[int]:
    """The places of those that are floats."""
    return [n for n, each in enumerate(arrays) if each.dtype.kind == "f"]


def _gradients(
    graph: Graph, operands: Sequence[Array], given: Sequence[Array | None], begin: Begin
) -> list[Array]:
    """The gradients of a region's operands of floats, in the innermost trace, where the gradients
    of its results are ``given``."""
    trace = STACK.traces[-1]
    own = [variable(each) if each.dtype.kind == "f" else each for each in operands]
    first = len(trace.nodes)
    results = inline(graph, own)
    wanted = [own[n] for n in _floats(own)]
    walk = begin(trace, trace.nodes[first:], [each.name for each in wanted])
    for result, d in zip(results, given, strict=True):
        if d is not None:
            walk.give(result.name, d)
    walk.run()
    return [walk.gradient(each) for each in wanted]


def _back_through_choice(walk: Walk, node: ops.If, begin: Begin) -> None:
    condition, *operands = (Array(walk.trace, name) for name in node.operands)
    given = [walk.gradients.get(name) for name in node.outputs]

    def side(graph: Graph) -> Callable[[], list[Array]]:
        return lambda: _gradients(graph, operands, given, begin)

    parts = cond(condition, side(node.then), side(node.otherwise))
    for place, part in zip(_floats(operands), parts, strict=True):
        walk.give(operands[place].name, part)


def _back_through_scan(walk: Walk, node: ops.Scan, begin: Begin) -> None:
    operands = [Array(walk.trace, name) for name in node.operands]
    count, behind = node.carried, node.carried + node.scanned
    carried, slices, captured = operands[:count], operands[count:behind], operands[behind:]
    results = [Array(walk.trace, name) for name in node.outputs]
    given = [walk.gradient(each) for each in results]
    floats, states = _floats(carried), _with_states(walk.trace, node, carried)

    def turn(sums: object, row: object) -> tuple[object, object]:
        after, others = cast("tuple[list[Array], list[Array]]", sums)
        number, before, now, d = cast("tuple[Array, list[Array], list[Array], list[Array]]", row)
        of_states: list[Array | None] = [None] * count
        for place, each in zip(floats, after, strict=True):
            of_states[place] = each
        inside = [number, *before, *now, *captured]
        parts = _gradients(node.body, inside, [*of_states, *d], begin)
        first, second = len(floats), len(floats) + len(_floats(slices))
        total = [a + b for a, b in zip(others, parts[second:], strict=True)]
        return (parts[:first], total), parts[first:second]

    start = [given[place] for place in floats]
    zeros = [full_like(captured[place], 0) for place in _floats(captured)]
    rows = array(np.arange(node.turns)), states, slices, given[count:]
    (first, total), of_slices = cast(
        "tuple[tuple[list[Array], list[Array]], list[Array]]",
        scan(turn, (start, zeros), rows, reverse=True),
    )
    for arrays, parts in ((carried, first), (slices, of_slices), (captured, total)):
        for place, part in zip(_floats(arrays), parts, strict=True):
            walk.give(arrays[place].name, part)


def _with_states(trace: Trace, node: ops.Scan, carried: Sequence[Array]) -> list[Array]:
    """The states that the turns of a loop begin with, which it gives as well from now on."""
    body = node.body
    names = [
        trace.tensor(f"{node.name}.states", TensorType((node.turns, *each.shape), str(each.dtype)))
        for each in carried
    ]
    states = body.inputs[1 : 1 + node.carried]
    longer = replace(body, outputs=(*body.outputs, *states))
    place = next(n for n, each in enumerate(trace.nodes) if each is node)
    trace.nodes[place] = replace(node, body=longer, others=(*node.others, *names))
    return [Array(trace, name) for name in names]
