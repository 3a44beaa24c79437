"""Schedules whose sizes are given at build: the same primitives on tensors that are made anew."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.schedule import Schedule
from vdla.compiler.schedule.trace import Json, Step, Trace
from vdla.compiler.te.func import build
from vdla.compiler.te.size import Size, Sizes, at_sizes, size_names
from vdla.compiler.te.tensor import Tensor
from vdla.compiler.tir.ir import Buffer, Evaluate
from vdla.compiler.tir.lower import written_buffers
from vdla.compiler.tir.visitor import walk


def with_sizes(
    schedule: Schedule, sizes: Mapping[str, int] | None
) -> tuple[Schedule, Mapping[Tensor, Tensor]]:
    """A schedule for given sizes, and its tensors by those of the schedule as it was written.

    A schedule without sizes is itself.

    Raises:
        ScheduleError: a size isn't given, isn't the schedule's or isn't positive; or a primitive
            doesn't apply to loops of these sizes.
        TEError: see :func:`vdla.compiler.te.size.at_sizes`.
    """
    built = schedule.built
    tensors: dict[Buffer, Tensor] = {}
    for tensor, buffer in built.buffers.items():
        tensors.setdefault(buffer, tensor)  # parts of a scan, which come later, have its buffer
    written = written_buffers(built.func.body)
    outputs = [tensors[param] for param in built.func.params if param in written]
    inputs = [tensors[param] for param in built.func.params if param not in written]
    names = size_names([*inputs, *outputs])
    given = _checked(names, sizes)
    if not names:
        return schedule, {tensor: tensor for tensor in built.buffers}
    made = at_sizes([*inputs, *outputs], given)
    new = Schedule(build([made[t] for t in inputs], [made[t] for t in outputs], built.func.name))
    calls = (s.call for s in walk(schedule.mod.body) if isinstance(s, Evaluate))
    try:
        new.replay(_trace(schedule.trace, given), {c.intrin.name: c.intrin for c in calls})
    except ScheduleError as error:
        shown = ", ".join(f"{name} = {size}" for name, size in given.items())
        raise ScheduleError(f"sizes {shown}: {error}") from None
    return new, made


def _checked(names: list[str], sizes: Mapping[str, int] | None) -> Sizes:
    """The sizes that a schedule needs, all of them and no others."""
    given = dict(sizes or {})
    if set(given) != set(names):
        wanted, result = (", ".join(sorted(each)) or "none" for each in (names, given))
        raise ScheduleError(f"sizes: expected those of te.var, {wanted}, found {result}")
    for name, size in given.items():
        try:
            given[name] = index(size)
        except TypeError:
            given[name] = 0
        if given[name] < 1:
            raise ScheduleError(f"sizes: expected {name} to be a positive int, found {size!r}")
    return given


def _trace(trace: Trace, sizes: Sizes) -> Trace:
    """A trace whose arguments have the sizes that are given."""

    def replaced(value: Json) -> Json:
        if isinstance(value, list):
            return [replaced(each) for each in value]
        return value.at(sizes) if isinstance(value, Size) else value

    return [
        Step(step.primitive, step.stage, {name: replaced(v) for name, v in step.args.items()})
        for step in trace
    ]
