"""Schedule of a function of several steps that each take a row of the one before: a softmax.

    before:  for row: top[row] = max …     for row, i: e[row, i] = …     for row: total[row] = Σ …
    after:   for row parallel: top = max …; for i: e[i] = …; total = Σ …; for i: out[row, i] = …

What is between the steps is one row's, which stays in a cache, and threads meet once.
"""

from __future__ import annotations

from math import prod

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.targets.processor.operators.nests import adds_a_row, schedule_row, share
from vdla.compiler.te.tensor import ComputeOp


def schedule_rows(s: Schedule, result: Stage, rows: int, lanes: int) -> None:
    """Schedules stages that share rows: one loop over these."""
    stages, work = list(s.stages.values()), 0
    for stage in stages:
        assert isinstance(stage.op, ComputeOp)
        work += prod(axis.extent for axis in stage.op.axes)
        if adds_a_row(stage.op, lanes):
            schedule_row(s, stage, lanes)
    axes = list(result.axis[:rows])
    for stage in reversed(stages):
        if stage is not result:
            stage.compute_at(result, axes[-1])
    for stage in stages:
        if not stage.reduce_axis and stage.extent(stage.axis[-1]) >= lanes:
            stage.vectorize(stage.split(stage.axis[-1], factor=lanes)[1])
    share(result, axes, work)
