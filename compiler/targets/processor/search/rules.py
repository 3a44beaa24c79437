"""Sketches from an expression's own structure, and from the default schedule as a template.

Ansor (Zheng et al., OSDI'20, table 1) derives sketches by rules; here they are:

- ``tile``: a reduction that reads its inputs more than once is computed in tiles, in the loops of
  what reads it; where nothing does, behind a cache write. What it reads is computed in an outer
  loop of these tiles, or before them.
- ``tile at root``: the same tiles, each stage in loops of its own.
- ``rfactor``: a long reduction to few results is done in parts, which are the lanes of vectors.
- ``lanes``: where nothing is read again, the innermost loop of the result becomes vectors.

A rule tries its primitives on a schedule; where one doesn't apply there is no such sketch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from math import prod

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.schedule.trace import Json
from vdla.compiler.targets.processor.search.function import Function
from vdla.compiler.targets.processor.search.sketch import Knob, Limit, Sketch
from vdla.compiler.te.tensor import ComputeOp
from vdla.compiler.tir.ir import Var

LANES = 64  # of one vectorized loop, at most
UNROLLED = 16  # steps of an element-wise loop, at most
COPIES = 64  # of an unrolled tile, at most: as many as code generation makes


def derive(function: Function) -> list[Sketch]:
    """The sketches of a function; none of one that has nothing to schedule."""
    rules: tuple[Callable[[_Draft], None], ...] = (_tile, _tile_at_root, _rfactor, _lanes)
    found: list[Sketch] = []
    for rule in rules:
        draft = _Draft(function)
        try:
            rule(draft)
        except ScheduleError:
            continue
        found.append(draft.sketch(rule.__name__.strip("_").replace("_", " ")))
    return [sketch for sketch in found if sketch.steps]


def template(function: Function) -> list[Sketch]:
    """The default schedule with the factors of its splits as knobs; nothing without splits."""
    trace = function.default
    s, knobs = function.schedule(), list[Knob]()
    for position, step in enumerate(trace):
        if step.primitive == "split":
            extent = s[step.stage].extent(s.axes[step.args["axis"]])
            knobs.append(Knob(position, "factor", _divisors(extent)))
        s.replay([step], function.intrinsics)
    if not knobs:
        return []
    copied = {step.args["axis"] for step in trace if step.primitive == "unroll"}
    tile = [n for n, k in enumerate(knobs) if f"{trace[k.step].args['axis']}_i" in copied]
    limits = [Limit(tuple(tile), COPIES, at_most=True)] if tile else []
    return [Sketch("template", tuple(trace), tuple(knobs), tuple(limits))]


class _Draft:
    """A schedule under way whose trace becomes a sketch's steps."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.s: Schedule = function.schedule()
        self.begin = len(self.s.trace)
        self.knobs: list[Knob] = []
        self.limits: list[Limit] = []
        self.lanes = function.vectors.lanes

    def sketch(self, rule: str) -> Sketch:
        """What was done, as a sketch."""
        steps = tuple(self.s.trace[self.begin :])
        return Sketch(rule, steps, tuple(self.knobs), tuple(self.limits))

    def open(self, argument: str, values: Sequence[Json]) -> int:
        """Makes a knob of an argument of the last step; its number."""
        position = len(self.s.trace) - 1 - self.begin
        self.knobs.append(Knob(position, argument, tuple(values)))
        return len(self.knobs) - 1

    def split(self, stage: Stage, axis: Var, values: Sequence[int]) -> tuple[Var, Var, int]:
        """A split with one of some factors: the loops, and the knob."""
        outer, inner = stage.split(axis, factor=values[0])
        return outer, inner, self.open("factor", values)

    def follow(self, knob: int, argument: str, values: Sequence[Json]) -> None:
        """Makes an argument of the last step change with a knob that there is."""
        setting = (len(self.s.trace) - 1 - self.begin, argument, tuple(values))
        old = self.knobs[knob]
        self.knobs[knob] = replace(old, follows=(*old.follows, setting))

    def reorder(self, stage: Stage, orders: Sequence[Sequence[Var]]) -> int:
        """Loops in one of some orders; the knob."""
        stage.reorder(*orders[0])
        return self.open("axes", [[self.s.axis_names[v] for v in order] for order in orders])

    def vectorize(self, stage: Stage, axis: Var) -> None:
        """A loop as lanes, or not."""
        stage.vectorize(axis)
        self.open("", (True, False))

    @property
    def result(self) -> Stage:
        """The stage of the function's result.

        Raises:
            ScheduleError: it isn't one ``te.compute``, so that no rule knows its loops.
        """
        return _plain(self.s[self.function.result])

    def anchor(self) -> Stage:
        """The reduction with the most steps.

        Raises:
            ScheduleError: there is none.
        """
        reductions = [
            s for s in self.s.stages.values() if isinstance(s.op, ComputeOp) and s.reduce_axis
        ]
        if not reductions:
            raise ScheduleError("sketch: expected a reduction, found none")
        return _plain(max(reductions, key=lambda stage: _volume(stage, stage.leaf_iter_vars)))


def _plain(stage: Stage) -> Stage:
    """A stage that all primitives can handle."""
    if not isinstance(stage.op, ComputeOp) or len(stage.op.outputs) > 1 or stage.owner is not None:
        raise ScheduleError(f"sketch {stage.name}: expected a stage of one tensor by te.compute")
    return stage


# The rules ----------------------------------------------------------------------------------------


def _tile(draft: _Draft) -> None:
    """Tiles of the result, in which the reduction is computed."""
    s, out, acc = draft.s, draft.result, draft.anchor()
    if not _reuses(acc):
        raise ScheduleError("sketch: expected a reduction that reads something again")
    if out is acc:
        acc = s[s.cache_write(out.tensor, "global")]
    elif out.reduce_axis:
        raise ScheduleError("sketch: expected a result that only moves sums, found a reduction")
    outer, middle, inner, tile = list[Var](), list[Var](), list[Var](), list[int]()
    vector = _vector(draft, out)
    for axis in (v for v in out.leaf_iter_vars if v not in vector):
        extent = out.extent(axis)
        if extent == 1:
            outer.append(axis)
            continue
        high, low, small = draft.split(out, axis, _divisors(extent, COPIES))
        high, mid, band = draft.split(out, high, _divisors(extent))
        draft.limits.append(Limit((small, band), extent))
        tile.append(small)
        outer.append(high)
        middle.append(mid)
        inner.append(low)
    draft.limits.append(Limit(tuple(tile), COPIES, at_most=True))
    if not middle:
        raise ScheduleError("sketch: expected a loop to tile, found none")
    turns = [(*outer, *turn, *inner, *vector) for turn in _orders(middle)]
    order = draft.reorder(out, turns)
    for axis in inner:
        out.unroll(axis)
    for axis in vector[-1:]:
        draft.vectorize(out, axis)
    at = len(outer) + len(middle) - 1
    acc.compute_at(out, turns[0][at])
    # At the innermost of the middle loops, which depends on their order.
    draft.follow(order, "axis", [s.axis_names[turn[at]] for turn in turns])
    *rows, last = acc.axis
    if vector[-1] is out.axis[-1]:
        _reduce(draft, acc, (), rows, [last])
    else:  # the tile has several vectors of it
        high, low = acc.split(last, factor=draft.lanes)
        _reduce(draft, acc, (), [*rows, high], [low])
    _attach_producers(draft, out, [*outer, *middle])


def _tile_at_root(draft: _Draft) -> None:
    """Tiles of the reduction by itself; the result's innermost loop as vectors."""
    acc = draft.anchor()
    vector, outer, inner, tile = _vector(draft, acc), list[Var](), list[Var](), list[int]()
    done = {*vector, *acc.reduce_axis}
    for axis in (v for v in acc.leaf_iter_vars if v not in done):
        if acc.extent(axis) == 1:
            outer.append(axis)
            continue
        high, low, small = draft.split(acc, axis, _divisors(acc.extent(axis), COPIES))
        outer.append(high)
        inner.append(low)
        tile.append(small)
    if tile:
        draft.limits.append(Limit(tuple(tile), COPIES, at_most=True))
    _reduce(draft, acc, outer, inner, vector)
    if draft.result is not acc:
        draft.vectorize(draft.result, draft.result.leaf_iter_vars[-1])


def _rfactor(draft: _Draft) -> None:
    """Parts of a reduction as lanes; the result adds them up."""
    acc, lanes = draft.anchor(), draft.lanes
    axis = max(acc.reduce_axis, key=acc.extent)
    if _volume(acc, acc.axis) > _volume(acc, acc.reduce_axis) or acc.extent(axis) < 2 * lanes:
        raise ScheduleError("sketch: expected a long reduction to few results")
    factors = [lanes * n for n in (1, 2, 4) if lanes * n <= min(LANES, acc.extent(axis))]
    _, lane, _ = draft.split(acc, axis, factors)
    parts = draft.s.rfactor(acc.tensor, lane, len(acc.axis))
    if isinstance(parts, tuple):
        raise ScheduleError("sketch: expected a reduction to one tensor")
    stage = draft.s[parts]
    *rows, lane = stage.axis
    stage.reorder(*rows, *stage.reduce_axis, lane)
    stage.vectorize(lane)


def _lanes(draft: _Draft) -> None:
    """The innermost loop of the result as vectors, the next one unrolled."""
    out = draft.result
    for stage in draft.s.stages.values():
        if stage.reduce_axis and (stage is out or _reuses(stage)):
            raise ScheduleError("sketch: expected nothing that is read again")
    vector = _vector(draft, out)
    rest = [v for v in out.leaf_iter_vars if v not in vector]
    if rest and out.extent(rest[-1]) > 1:
        _, low, _ = draft.split(out, rest[-1], _divisors(out.extent(rest[-1]), UNROLLED))
        out.unroll(low)
    for axis in vector[-1:]:
        draft.vectorize(out, axis)


# Their parts --------------------------------------------------------------------------------------


def _vector(draft: _Draft, stage: Stage) -> list[Var]:
    """The innermost spatial loop; of one that is longer than vectors are, the inner part."""
    if not stage.axis:
        raise ScheduleError(f"sketch {stage.name}: expected a loop over results, found none")
    last = stage.axis[-1]
    extent = stage.extent(last)
    if extent <= LANES:
        return [last]
    if extent % draft.lanes:
        return [last]
    _, inner = stage.split(last, factor=draft.lanes)
    return [inner]


def _reduce(
    draft: _Draft,
    acc: Stage,
    outer: Sequence[Var],
    tile: Sequence[Var],
    lanes: Sequence[Var],
) -> None:
    """A tile of sums: the reduction's loops outside the tile's, which are copied and lanes.

    Where the processor has an instruction for it, that is the lanes.
    """
    reduced, words = list(acc.reduce_axis), list[Var]()
    dots = draft.function.intrinsics
    if dots and acc.tensor.dtype == "int32" and acc.extent(reduced[-1]) == 4:
        words = [reduced.pop()]
    orders = [(*outer, *reduced, *order, *lanes, *words) for order in _orders(tile)]
    draft.reorder(acc, orders)
    for axis in tile:
        acc.unroll(axis)
    if words:
        acc.tensorize(lanes[0], dots.values())
        return
    for axis in lanes[-1:]:
        draft.vectorize(acc, axis)


def _attach_producers(draft: _Draft, out: Stage, places: Sequence[Var]) -> None:
    """What else is computed: in one of the outer loops or before them, its last loop as lanes."""
    names = [draft.s.axis_names[axis] for axis in places]
    for stage in list(draft.s.stages.values()):
        if stage is out or not isinstance(stage.op, ComputeOp) or stage.reduce_axis:
            continue
        with suppress(ScheduleError):  # read elsewhere, too: it stays before all of them
            stage.compute_at(out, places[0])
            draft.open("axis", names)
            draft.open("", (True, False))
        draft.vectorize(stage, stage.axis[-1])


def _reuses(acc: Stage) -> bool:
    """Whether a reduction reads some elements more than once."""
    assert isinstance(acc.op, ComputeOp)
    size = _volume(acc, acc.leaf_iter_vars)
    return any(2 * prod(tensor.shape) <= size for tensor in acc.op.inputs)


def _volume(stage: Stage, axes: Sequence[Var]) -> int:
    return prod(stage.extent(axis) for axis in axes)


def _orders(axes: Sequence[Var]) -> list[tuple[Var, ...]]:
    """Orders of a few loops: all of up to four, of more those that move one loop to the end."""
    if len(axes) <= 4:
        return list(permutations(axes))
    return [tuple(axes), *((*axes[:n], *axes[n + 1 :], axes[n]) for n in range(len(axes) - 1))]


def _divisors(size: int, most: int | None = None) -> tuple[int, ...]:
    """Ascending."""
    return tuple(d for d in range(1, min(size, most or size) + 1) if size % d == 0)
