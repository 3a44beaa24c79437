"""Schedule of expressions without a template: each element by a thread.

    before:  for y: for x: C[y, x] = …
    after:   for b blockIdx.x: for t threadIdx.x: C[(b * 256 + t) // 64, (b * 256 + t) % 64] = …

What a thread sums up stays in its registers. Stages that share rows, as those of a softmax, are one
kernel in which a group has a row (``rows``); others are a kernel each.
"""

from __future__ import annotations

from math import prod

from vdla.compiler import te
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.targets.gpu.operators.rows import fits_rows, is_long, schedule_rows
from vdla.compiler.targets.rows import shared_rows
from vdla.compiler.te import Tensor
from vdla.compiler.te.tensor import ComputeOp

THREADS = 256  # of a group, at most


def schedule_plain(s: Schedule, result: Tensor) -> None:
    """Schedules a function by the loops that it has."""
    rows = shared_rows(s, s[result])
    if rows and fits_rows(s, s[result], rows):
        schedule_rows(s, s[result], rows)
        return
    stages = list(s.stages.values())
    if len(stages) == 1 and stages[0].axis and is_long(stages[0]):
        schedule_rows(s, stages[0], len(stages[0].axis))
        return
    for stage in stages:
        schedule_elements(s, stage)


def schedule_elements(s: Schedule, stage: Stage) -> None:
    """Schedules a stage with a thread for each of its elements."""
    if not stage.axis:
        return
    assert isinstance(stage.op, ComputeOp)
    sums = None
    if stage.reduce_axis and len(stage.op.outputs) == 1:
        sums = s.cache_write(stage.name, "local")
    fused = stage.fuse(*stage.axis)
    threads = min(THREADS, prod(axis.extent for axis in stage.op.axis))
    block, thread = stage.split(fused, factor=threads)
    stage.bind(block, te.thread_axis("blockIdx.x"))
    stage.bind(thread, te.thread_axis("threadIdx.x"))
    if sums is not None:
        s[sums].compute_at(stage, thread)
