"""Sketches' loops that threads share, and what is computed inside of them.

    before:  for y_o: for x_o: …                   y_o and x_o are the outer loops of a tile
    after:   for y_o parallel: for x_o: …          or, by the knob's other value,
             for y_o_x_o parallel: …

A loop's name depends on how many loops were fused, so places inside the nest go with that knob.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.targets.processor.operators.nests import SHARED_STEPS, count_to_share, share
from vdla.compiler.targets.processor.search.function import ProcessorFunction
from vdla.compiler.targets.search.draft import Draft, volume
from vdla.compiler.targets.search.sketch import Combinations
from vdla.compiler.te.tensor import ComputeOp
from vdla.compiler.tir.ir import Var


@dataclass(frozen=True)
class Shared:
    """A nest's outer loops: ``names`` before any were fused, ``fused`` for each number of fused
    loops, from ``least`` on; ``knob`` chooses among them. ``loop`` is the outermost loop of the
    schedule under way.

    Without a knob no loop is shared.
    """

    loop: Var | None
    names: Sequence[str]
    fused: Sequence[str] = ()
    least: int = 0
    knob: int | None = None

    def loops(self) -> Iterator[tuple[str | None, Sequence[str]]]:
        """The knob's values, each with the names of the loops that there are; without a knob,
        None with all of them."""
        if self.knob is None:
            yield None, self.names
        for count, name in enumerate(self.fused, self.least):
            yield name, (name, *self.names[count:])


def share_outer(draft: Draft[ProcessorFunction], stage: Stage, loops: Sequence[Var]) -> Shared:
    """Has threads share the outermost of some loops; how many of these are fused is a knob.

    A function with few steps stays on one thread.
    """
    names, s = tuple(draft.s.axis_names[axis] for axis in loops), draft.s
    long = [n for n, axis in enumerate(loops) if stage.extent(axis) > 1]
    if not long or draft.function.operations < SHARED_STEPS:
        return Shared(loops[0] if loops else None, names)
    least, loop = long[0] + 1, stage.fuse(*loops[: long[0] + 1])
    fused, steps = [s.axis_names[loop]], list[int]()
    for axis in loops[least:]:
        loop = stage.fuse(loop, axis)
        fused.append(s.axis_names[loop])
        steps.append(draft.last)
    stage.parallel(loop)
    knob = draft.open("axis", fused)
    for number, step in enumerate(steps, 1):
        draft.follow(knob, "", [code >= number for code in range(len(fused))], step)
    return Shared(loop, names, fused, least, knob)


def share_all(draft: Draft[ProcessorFunction], besides: Iterable[Stage]) -> None:
    """Has threads share all other stages as they share stages without a template."""
    done = list(besides)
    for stage in list(draft.s.stages.values()):
        if stage not in done and isinstance(stage.op, ComputeOp) and stage.owner is None:
            share(stage, stage.axis[:-1], volume(stage, stage.leaf_iter_vars))


def attach_producer(
    draft: Draft[ProcessorFunction],
    stage: Stage,
    reader: Stage,
    shared: Shared,
    places: Sequence[Var],
) -> None:
    """Attaches what a nest reads: in one of its outer loops or of ``places``, or before the nest,
    where threads share it."""
    rows, work = list(stage.axis[:-1]), volume(stage, stage.leaf_iter_vars)
    count = count_to_share([stage.extent(axis) for axis in rows], work)
    try:
        stage.compute_at(reader, places[0] if shared.loop is None else shared.loop)
    except ScheduleError:  # it is read elsewhere, too: it stays before all of them
        share(stage, rows, work)
        return
    inner = [draft.s.axis_names[axis] for axis in places]
    legal = [(value, [*names, *inner]) for value, names in shared.loops()]
    every = list(dict.fromkeys(name for _, names in legal for name in names))
    place = draft.open("axis", every)
    inside = draft.open("", (True, False))
    if shared.knob is not None:
        inside_loops = {(value, name, True) for value, names in legal for name in names}
        gone = {(value, name, False) for value, _ in legal for name in every}
        knobs = (shared.knob, place, inside)
        draft.limits.append(Combinations(knobs, frozenset(inside_loops | gone)))
    if not count:
        return
    loop = rows[0]
    for axis in rows[1:count]:
        loop = stage.fuse(loop, axis)
        draft.follow(inside, "", (False, True))
    stage.parallel(loop)
    draft.follow(inside, "", (False, True))
