"""Sketches from an expression's own structure, and from the default schedule as a template.

Ansor (Zheng et al., OSDI'20, table 1) derives sketches by rules; here they are:

- ``tile``: a reduction that reads its inputs more than once is computed in tiles, in the loops of
  what reads it; where nothing does, behind a cache write. What it reads is computed in an outer
  loop of these tiles, or before them.
- ``tile at root``: the same tiles, each stage in loops of its own.
- ``rfactor``: a long reduction to few results is done in parts, which are the lanes of vectors.
- ``lanes``: where nothing is read again, the innermost loop of the result becomes vectors.

In each of them threads share the outermost loops of long stages (``shares``). A rule tries its
primitives on a schedule; where one doesn't apply there is no such sketch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.targets.processor.search.function import ProcessorFunction
from vdla.compiler.targets.processor.search.shares import (
    Shared,
    attach_producer,
    share_all,
    share_outer,
)
from vdla.compiler.targets.search.draft import Draft, orders, reuses, volume
from vdla.compiler.targets.search.sketch import Knob, Limit, Sketch
from vdla.compiler.te.tensor import ComputeOp
from vdla.compiler.tir.ir import Var
from vdla.support.numbers import divisors

LANES = 64  # of one vectorized loop, at most
UNROLLED = 16  # steps of an element-wise loop, at most
COPIES = 64  # of an unrolled tile, at most: as many as code generation makes


def derive(function: ProcessorFunction) -> list[Sketch]:
    """The sketches of a function; none of one that has nothing to schedule."""
    rules: tuple[Callable[[_Draft], None], ...] = (_tile, _tile_at_root, _rfactor, _lanes)
    result: list[Sketch] = []
    for rule in rules:
        draft = _Draft(function)
        try:
            rule(draft)
        except ScheduleError:
            continue
        result.append(draft.sketch(rule.__name__.strip("_").replace("_", " ")))
    return [sketch for sketch in result if sketch.steps]


def template(function: ProcessorFunction) -> list[Sketch]:
    """The default schedule with the factors of its splits as knobs; nothing without splits."""
    trace = function.default
    s, knobs = function.schedule(), list[Knob]()
    for position, step in enumerate(trace):
        if step.primitive == "split":
            extent = s[step.stage].extent(s.axes[step.args["axis"]])
            knobs.append(Knob(position, "factor", divisors(extent)))
        s.replay([step], function.intrinsics)
    if not knobs:
        return []
    copied = {step.args["axis"] for step in trace if step.primitive == "unroll"}
    tile = [n for n, k in enumerate(knobs) if f"{trace[k.step].args['axis']}_i" in copied]
    limits = [Limit(tuple(tile), COPIES, at_most=True)] if tile else []
    return [Sketch("template", tuple(trace), tuple(knobs), tuple(limits))]


class _Draft(Draft[ProcessorFunction]):
    """A processor's schedule under way."""

    @property
    def lanes(self) -> int:
        """Floats in a vector."""
        return self.function.processor.vectors.lanes

    def vectorize(self, stage: Stage, axis: Var) -> None:
        """A loop as lanes, or not."""
        stage.vectorize(axis)
        self.open("", (True, False))


# The rules ----------------------------------------------------------------------------------------


def _tile(draft: _Draft) -> None:
    """Tiles of the result, in which the reduction is computed."""
    s, out, acc = draft.s, draft.result, draft.anchor()
    if not reuses(acc):
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
        high, low, small = draft.split(out, axis, divisors(extent, COPIES))
        high, mid, band = draft.split(out, high, divisors(extent))
        draft.limits.append(Limit((small, band), extent))
        tile.append(small)
        outer.append(high)
        middle.append(mid)
        inner.append(low)
    draft.limits.append(Limit(tuple(tile), COPIES, at_most=True))
    if not middle:
        raise ScheduleError("sketch: expected a loop to tile, found none")
    turns = [(*outer, *turn, *inner, *vector) for turn in orders(middle)]
    order = draft.reorder(out, turns)
    for axis in inner:
        out.unroll(axis)
    for axis in vector[-1:]:
        draft.vectorize(out, axis)
    shared = share_outer(draft, out, outer)
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
    _attach_producers(draft, out, shared, middle)


def _tile_at_root(draft: _Draft) -> None:
    """Tiles of the reduction by itself; the result's innermost loop as vectors."""
    acc = draft.anchor()
    vector, outer, inner, tile = _vector(draft, acc), list[Var](), list[Var](), list[int]()
    done = {*vector, *acc.reduce_axis}
    for axis in (v for v in acc.leaf_iter_vars if v not in done):
        if acc.extent(axis) == 1:
            outer.append(axis)
            continue
        high, low, small = draft.split(acc, axis, divisors(acc.extent(axis), COPIES))
        outer.append(high)
        inner.append(low)
        tile.append(small)
    if tile:
        draft.limits.append(Limit(tuple(tile), COPIES, at_most=True))
    _reduce(draft, acc, outer, inner, vector)
    share_outer(draft, acc, outer)
    if draft.result is not acc:
        draft.vectorize(draft.result, draft.result.leaf_iter_vars[-1])
    share_all(draft, besides=[acc])


def _rfactor(draft: _Draft) -> None:
    """Parts of a reduction as lanes; the result adds them up."""
    acc, lanes = draft.anchor(), draft.lanes
    axis = max(acc.reduce_axis, key=acc.extent)
    if volume(acc, acc.axis) > volume(acc, acc.reduce_axis) or acc.extent(axis) < 2 * lanes:
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
    share_outer(draft, stage, rows)
    share_all(draft, besides=[stage])


def _lanes(draft: _Draft) -> None:
    """The innermost loop of the result as vectors, the next one unrolled."""
    out = draft.result
    for stage in draft.s.stages.values():
        if stage.reduce_axis and (stage is out or reuses(stage)):
            raise ScheduleError("sketch: expected nothing that is read again")
    vector = _vector(draft, out)
    rest = [v for v in out.leaf_iter_vars if v not in vector]
    if rest and out.extent(rest[-1]) > 1:
        high, low, _ = draft.split(out, rest[-1], divisors(out.extent(rest[-1]), UNROLLED))
        rest[-1] = high
        out.unroll(low)
    for axis in vector[-1:]:
        draft.vectorize(out, axis)
    share_outer(draft, out, rest)
    share_all(draft, besides=[out])


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
    turns = [(*outer, *reduced, *order, *lanes, *words) for order in orders(tile)]
    draft.reorder(acc, turns)
    for axis in tile:
        acc.unroll(axis)
    if words:
        acc.tensorize(lanes[0], dots.values())
        return
    for axis in lanes[-1:]:
        draft.vectorize(acc, axis)


def _attach_producers(draft: _Draft, out: Stage, shared: Shared, places: Sequence[Var]) -> None:
    """Attaches all other stages: in one of the outer loops or before them, the last
    loop as lanes.
    """
    for stage in list(draft.s.stages.values()):
        if stage is out or not isinstance(stage.op, ComputeOp) or stage.reduce_axis:
            continue
        attach_producer(draft, stage, out, shared, places)
        draft.vectorize(stage, stage.axis[-1])
