"""``vdla.cond``, ``vdla.while_loop``, ``vdla.scan``: choices and loops of traced functions.

What a function of these reads of the trace around it, its region captures. Outside of a trace they
do with numpy's arrays what they say, turn by turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.control import TURN, alike, typed
from vdla.compiler.graph.types import TensorType
from vdla.compiler.tracing.arrays import STACK, Array, Trace, name_of
from vdla.compiler.tracing.errors import TraceError
from vdla.compiler.tracing.nodes import array
from vdla.compiler.tracing.trees import Structure, flatten

R = TypeVar("R")
S = TypeVar("S")
X = TypeVar("X")
Y = TypeVar("Y")
Value = object  # an array, or arrays in tuples, lists, dicts, dataclasses
MOST_TURNS = 1_000_000  # of a while_loop that names no other bound


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """A trace that is the innermost one inside the ``with``."""
    STACK.traces.append(trace)
    try:
        yield trace
    finally:
        STACK.traces.pop()


@dataclass(frozen=True)
class Nested:
    """The arrays of a nested value, and their nesting."""

    arrays: Sequence[Array]
    structure: Structure

    @property
    def kinds(self) -> list[TensorType]:
        """The types of the arrays."""
        return [each.type for each in self.arrays]

    def build(self, arrays: Sequence[Array]) -> Value:
        """A value of other arrays."""
        return self.structure.build(arrays)

    def tensors(self, trace: Trace) -> list[str]:
        """The tensors in which a trace has the arrays."""
        return list(map(trace.own, self.arrays))

    def like(self, what: str, expected: str, value: Value, root: str = "result") -> Nested:
        """Another value of the same nesting and types, in which numbers take those of the arrays.

        Args:
            what: of which function it is, for errors.
            expected: the rule, in which two ``{}`` are the place and what should be there.
            value: in the innermost trace.
            root: name of the whole.

        Raises:
            TraceError: it has others.
        """
        leaves, structure = flatten(value)
        if structure != self.structure:
            raise TraceError(what, expected.format(root, self.structure), structure)
        result = [array(leaf, old) for leaf, old in zip(leaves, self.arrays, strict=True)]
        for path, old, new in zip(structure.paths(root), self.arrays, result, strict=True):
            if not alike(old.type, new.type):
                raise TraceError(what, expected.format(path, typed(old.type)), typed(new.type))
        return Nested(result, structure)


def nested(value: Value) -> Nested:
    """A nested value in the innermost trace, its numbers as arrays."""
    leaves, structure = flatten(value)
    return Nested(list(map(array, leaves)), structure)


def _condition(what: str, value: Value) -> Array:
    """A condition of one bool.

    Raises:
        TraceError: it is something else.
    """
    result = array(value)
    if result.dtype != np.bool_ or result.size != 1:
        actual = f"{typed(result.type)}; np.all and np.any make one of several"
        raise TraceError(what, "a condition of one bool", actual)
    return result


def region(node: str, part: str, function: Callable[..., Value]) -> Trace:
    """A graph that a node is to hold, before anything stands in it."""
    outer, name = STACK.traces[-1], f"{node}.{part}"
    return Trace(name, name_of(function, name), outer.session, outer)


def add_control(
    kind: type[ops.Control],
    name: str,
    operands: Sequence[str],
    results: Sequence[TensorType],
    **fields: object,
) -> list[Array]:
    """The results of a new node that holds graphs, or calls one."""
    trace = STACK.traces[-1]
    output, *others = (trace.tensor(f"{name}.result", each) for each in results)
    make = cast("Callable[..., ops.Control]", kind)
    names = {"name": name, "output": output, "others": tuple(others), "operands": tuple(operands)}
    trace.nodes.append(make(**names, **fields))
    return [Array(trace, each) for each in (output, *others)]


def cond(
    condition: Value, then: Callable[..., R], otherwise: Callable[..., R], *operands: Value
) -> R:
    """``then(*operands)`` where a condition of one bool holds, else ``otherwise(*operands)``.

    Both give arrays of the same types. Only one of the two runs.

    Raises:
        TraceError: the condition isn't one bool, or the results differ in nesting or types.
    """
    if not STACK.traces:
        return (then if condition else otherwise)(*operands)
    chosen, outer = _condition("cond", condition), STACK.traces[-1]
    name = outer.session.fresh(f"{outer.stem}.cond")
    with tracing(region(name, "then", then)) as first:
        result = nested(then(*operands))
        outputs = result.tensors(first)
    with tracing(region(name, "otherwise", otherwise)) as second:
        rule = "{} of both functions to be {}"
        others = result.like("cond", rule, otherwise(*operands)).tensors(second)
    if not outputs:
        return cast("R", result.build([]))
    captured = {**first.captured, **second.captured}
    for trace in (first, second):  # both take what either of them reads
        trace.captured = {source: trace.capture(source) for source in captured}
    graphs = {"then": first.graph(outputs), "otherwise": second.graph(others)}
    made = add_control(ops.If, name, [outer.own(chosen), *captured], result.kinds, **graphs)
    return cast("R", result.build(made))


# Loops -------------------------------------------------------------------------------------------

STAYS = "what turn after turn gets as {} to stay {}"


def while_loop(
    condition: Callable[[S], Value],
    body: Callable[[S], S],
    initial: S,
    turns: int = MOST_TURNS,
) -> S:
    """The state behind the last turn: ``state = body(state)`` as long as ``condition(state)``.

    Args:
        condition: of a state, one bool; asked before each turn.
        body: from a state to the next one, of the same types.
        initial: the state before the first turn: arrays, in tuples, dicts and the like.
        turns: the bound; a loop that goes on behind so many turns is stopped with an error.

    Raises:
        TraceError: the condition isn't one bool, or always true; or a turn changes types.
    """
    if turns < 1:
        raise TraceError("while_loop", "turns of 1 at least", turns)
    if not STACK.traces:
        return _while_loop_at_once(condition, body, initial, turns)
    outer, state = STACK.traces[-1], nested(initial)
    name = outer.session.fresh(f"{outer.stem}.while_loop")
    begins = _condition("while_loop", condition(cast("S", state.build(state.arrays))))
    with tracing(region(name, "body", body)) as trace:
        given = cast("S", state.build(_inputs(trace, state)))
        after = state.like("while_loop", STAYS, body(given), "state")
        again = _condition("while_loop", condition(cast("S", after.build(after.arrays))))
        if again.value is not None and again.value.all():
            raise TraceError("while_loop", "a condition that ends", "one that is always true")
        outputs = [trace.own(again), *after.tensors(trace)]
    operands = [outer.own(begins), *state.tensors(outer), *trace.captured]
    fields = {"body": trace.graph(outputs), "carried": len(state.arrays), "turns": turns}
    return cast("S", state.build(add_control(ops.While, name, operands, state.kinds, **fields)))


def _inputs(trace: Trace, state: Nested) -> list[Array]:
    """Inputs of a loop's body: the turn's number, which isn't given here, and the state."""
    trace.input(f"{trace.name}.turn", TURN)
    return [trace.input(f"{trace.name}.state", kind) for kind in state.kinds]


def _while_loop_at_once(
    condition: Callable[[S], Value], body: Callable[[S], S], state: S, turns: int
) -> S:
    """A loop outside of a trace."""
    while condition(state):
        if not turns:
            raise TraceError("while_loop", "an end after as many turns as it has", "none")
        state, turns = body(state), turns - 1
    return state


def scan(
    body: Callable[[S, X], tuple[S, Y]],
    initial: S,
    xs: X,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[S, Y]:
    """The state behind the last turn, and what all turns gave: ``state, y = body(state, x)``.

    Args:
        body: from a state and a slice to the next state and a slice of the result.
        initial: the state before the first turn.
        xs: arrays of one length, of which turn t gets element t; None for none.
        length: number of turns, where ``xs`` is None.
        reverse: whether the turns go from the last slice to the first.

    Returns:
        The last state, and the slices ``y`` stacked along a new first axis.

    Raises:
        TraceError: the lengths differ, or a turn changes types.
    """
    if not STACK.traces:
        return _scan_at_once(body, initial, xs, length, reverse)
    outer, state, slices = STACK.traces[-1], nested(initial), nested(xs)
    count = _length([each.shape for each in slices.arrays], length)
    scanned = [each[::-1] if reverse else each for each in slices.arrays]
    name = outer.session.fresh(f"{outer.stem}.scan")
    with tracing(region(name, "body", body)) as trace:
        given = cast("S", state.build(_inputs(trace, state)))
        kinds = [TensorType(each.shape[1:], str(each.dtype)) for each in scanned]
        part = slices.build([trace.input(f"{trace.name}.slice", kind) for kind in kinds])
        result: object = body(given, cast("X", part))
        if not isinstance(result, tuple) or len(result) != 2:
            raise TraceError("scan", "a body that gives a state and a slice", type(result).__name__)
        after, row = state.like("scan", STAYS, result[0], "state"), nested(result[1])
        outputs = [*after.tensors(trace), *row.tensors(trace)]
    if not outputs:
        return cast("tuple[S, Y]", result)
    operands = [*state.tensors(outer), *map(outer.own, scanned), *trace.captured]
    carried, stacks = len(state.arrays), [TensorType((count, *k.shape), k.dtype) for k in row.kinds]
    made = add_control(
        ops.Scan, name, operands, [*state.kinds, *stacks],
        body=trace.graph(outputs), carried=carried, turns=count, scanned=len(scanned),
    )  # fmt: skip
    stacked = [each[::-1] if reverse else each for each in made[carried:]]
    return cast("S", state.build(made[:carried])), cast("Y", row.build(stacked))


def _scan_at_once(
    body: Callable[[S, X], tuple[S, Y]], state: S, xs: X, length: int | None, reverse: bool
) -> tuple[S, Y]:
    """A scan outside of a trace."""
    leaves, layout = flatten(xs)
    slices, rows = list(map(np.asarray, leaves)), list[Y]()
    count = _length([each.shape for each in slices], length)
    for turn in range(count)[::-1] if reverse else range(count):
        state, row = body(state, cast("X", layout.build(each[turn] for each in slices)))
        rows.append(row)
    parts = [flatten(row)[0] for row in (rows[::-1] if reverse else rows)]
    stacked = [np.stack(list(map(np.asarray, part))) for part in zip(*parts, strict=True)]
    return state, cast("Y", flatten(rows[0])[1].build(stacked))


def _length(shapes: Sequence[tuple[int, ...]], length: int | None) -> int:
    """The length that all arrays have.

    Raises:
        TraceError: they have several, or there is none.
    """
    lengths = {shape[0] if shape else 0 for shape in shapes}
    lengths |= set() if length is None else {length}
    if len(lengths) != 1 or 0 in lengths:
        actual = " and ".join(map(str, sorted(lengths))) or "neither xs nor length"
        raise TraceError("scan", "xs of one length, and one element at least", actual)
    return lengths.pop()
