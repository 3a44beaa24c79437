"""A sketch in the making: a rule applies primitives to a schedule, and opens some arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from math import prod
from typing import Generic, TypeVar

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.schedule.trace import Json
from vdla.compiler.targets.search.function import Function
from vdla.compiler.targets.search.sketch import Combinations, Knob, Limit, Sketch
from vdla.compiler.te.tensor import ComputeOp
from vdla.compiler.tir.ir import Var

F = TypeVar("F", bound=Function)


class Draft(Generic[F]):
    """A schedule under way whose trace becomes a sketch's steps."""

    def __init__(self, function: F) -> None:
        self.function = function
        self.s: Schedule = function.schedule()
        self.begin = len(self.s.trace)
        self.knobs: list[Knob] = []
        self.limits: list[Limit | Combinations] = []

    def sketch(self, rule: str) -> Sketch:
        """Sketch of all that was done."""
        steps = tuple(self.s.trace[self.begin :])
        return Sketch(rule, steps, tuple(self.knobs), tuple(self.limits))

    @property
    def last(self) -> int:
        """The position of the last step."""
        return len(self.s.trace) - 1 - self.begin

    def open(self, argument: str, values: Sequence[Json]) -> int:
        """Makes a knob of an argument of the last step; its number."""
        self.knobs.append(Knob(self.last, argument, tuple(values)))
        return len(self.knobs) - 1

    def split(self, stage: Stage, axis: Var, values: Sequence[int]) -> tuple[Var, Var, int]:
        """A split with one of some factors: the loops, and the knob."""
        outer, inner = stage.split(axis, factor=values[0])
        return outer, inner, self.open("factor", values)

    def follow(
        self, knob: int, argument: str, values: Sequence[Json], step: int | None = None
    ) -> None:
        """Makes an argument of a step, the last one unless it is given, change with a knob that
        there is."""
        setting = (self.last if step is None else step, argument, tuple(values))
        old = self.knobs[knob]
        self.knobs[knob] = replace(old, follows=(*old.follows, setting))

    def reorder(self, stage: Stage, orders: Sequence[Sequence[Var]]) -> int:
        """Loops in one of some orders; the knob."""
        stage.reorder(*orders[0])
        return self.open("axes", [[self.s.axis_names[v] for v in order] for order in orders])

    @property
    def result(self) -> Stage:
        """The stage of the function's result.

        Raises:
            ScheduleError: it isn't one ``te.compute``, so that no rule knows its loops.
        """
        return plain(self.s[self.function.result])

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
        return plain(max(reductions, key=lambda stage: volume(stage, stage.leaf_iter_vars)))


def plain(stage: Stage) -> Stage:
    """A stage that all primitives can handle."""
    if not isinstance(stage.op, ComputeOp) or len(stage.op.outputs) > 1 or stage.owner is not None:
        raise ScheduleError(f"sketch {stage.name}: expected a stage of one tensor by te.compute")
    return stage


def reuses(acc: Stage) -> bool:
    """Whether a reduction reads some elements more than once."""
    assert isinstance(acc.op, ComputeOp)
    size = volume(acc, acc.leaf_iter_vars)
    return any(2 * prod(tensor.shape) <= size for tensor in acc.op.inputs)


def volume(stage: Stage, axes: Sequence[Var]) -> int:
    """Steps of some loops of a stage, all together."""
    return prod(stage.extent(axis) for axis in axes)


def orders(axes: Sequence[Var]) -> list[tuple[Var, ...]]:
    """Orders of a few loops: all of up to four, of more those that move one loop to the end."""
    if len(axes) <= 4:
        return list(permutations(axes))
    return [tuple(axes), *((*axes[:n], *axes[n + 1 :], axes[n]) for n in range(len(axes) - 1))]
