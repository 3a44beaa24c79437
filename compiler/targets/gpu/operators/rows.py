"""Schedule of functions in which a group of threads has a row: a softmax, or a long reduction.

    for row blockIdx.x:
        for t in 256 threadIdx.x: parts[t] = max of every 256th element      a tree in shared
        for t in 32 threadIdx.x: parts_1[t] = max of 8 of these parts        memory: 256 parts,
        for t in 4 threadIdx.x: parts_2[t] = max of 8 of those               32, 4, 1
        top = max of 4 parts
        for t threadIdx.x: for i: e[i * 256 + t] = exp(… - top)
        …
        for t threadIdx.x: for i: out[row, i * 256 + t] = e[…] / total

What is between the steps is one row's, in shared memory.
"""

from __future__ import annotations

from math import prod

from vdla.compiler import te
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.te.tensor import ComputeOp, Tensor
from vdla.compiler.tir.ir import Var
from vdla.runtime.dtypes import dtype_of
from vdla.support.numbers import ceil_div

FAN_IN = 8  # parts that one thread combines at a step of a tree
THREADS = 256  # of a group, at most
ROW_BYTES = 1 << 14  # of all that is between the steps of a row
LONG = 64  # steps of a reduction from which on several threads share it
FEW = 1 << 12  # elements: as many threads would not fill a GPU


def fits_rows(s: Schedule, result: Stage, rows: int) -> bool:
    """Whether a row of all that is between the steps fits into shared memory."""
    total = 0
    for stage in s.stages.values():
        assert isinstance(stage.op, ComputeOp)
        if len(stage.op.outputs) > 1:
            return False
        if stage is not result:
            size = prod(axis.extent for axis in stage.op.axis[rows:])
            total += size * dtype_of(stage.op.outputs[0].dtype).itemsize
    return total <= ROW_BYTES


def is_long(stage: Stage) -> bool:
    """Whether a stage reduces so much to so little that a group of threads should do it."""
    op = stage.op
    assert isinstance(op, ComputeOp)
    steps = prod(axis.extent for axis in op.reduce_axis)
    return len(op.outputs) == 1 and steps >= LONG and prod(a.extent for a in op.axis) <= FEW


def schedule_rows(s: Schedule, result: Stage, rows: int) -> None:
    """Schedules stages that share the first ``rows`` axes: a group for each row."""
    stages = [stage for stage in s.stages.values() if stage is not result]
    trees = {stage.name: _tree(s, stage, rows) for stage in (*stages, result)}
    axes = result.axis[:rows]
    row = result.fuse(*axes) if len(axes) > 1 else axes[0]
    result.bind(row, te.thread_axis("blockIdx.x"))
    for stage in (result, *reversed(stages)):
        if stage is not result:
            stage.set_scope("shared")
            stage.compute_at(result, row)
        if not trees[stage.name]:
            _deal(stage, list(stage.axis[rows:]))
        for part in reversed(trees[stage.name]):
            s[part].set_scope("shared")
            s[part].compute_at(result, row)
            _deal(s[part], [s[part].axis[0]])


def _tree(s: Schedule, stage: Stage, rows: int) -> list[Tensor]:
    """The parts of a reduction that threads compute together, those of the first step first."""
    assert isinstance(stage.op, ComputeOp)
    if not stage.reduce_axis or prod(axis.extent for axis in stage.op.axis[rows:]) > FAN_IN:
        return []
    loops = stage.reduce_axis
    loop: Var = stage.fuse(*loops) if len(loops) > 1 else loops[0]
    result: list[Tensor] = []
    count = min(THREADS, stage.extent(loop))
    while count > FAN_IN:
        _, inner = stage.split(loop, factor=count)
        part = s.rfactor(stage.name, inner)
        assert isinstance(part, Tensor)
        result.append(part)
        loop = stage.reduce_axis[0]
        count = ceil_div(count, FAN_IN)
    return result


def _deal(stage: Stage, axes: list[Var]) -> None:
    """Has the threads of a group share the steps of some loops."""
    if not axes:
        return
    fused = stage.fuse(*axes) if len(axes) > 1 else axes[0]
    _, thread = stage.split(fused, factor=min(THREADS, stage.extent(fused)))
    stage.bind(thread, te.thread_axis("threadIdx.x"))
