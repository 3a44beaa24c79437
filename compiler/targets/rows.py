"""Functions of several steps that each take a row of the one before, as those of a softmax."""

from __future__ import annotations

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.te.tensor import ComputeOp, Tensor
from vdla.compiler.tir.visitor import loads


def shared_rows(s: Schedule, result: Stage) -> int:
    """Number of the result's first axes that every stage has, and reads the others' elements by."""
    counts = list[int]()
    for stage in s.stages.values():
        op = stage.op
        if not isinstance(op, ComputeOp):
            return 0
        exprs = op.body if op.reduce is None else (*op.reduce.init, *op.reduce.source)
        for load in (load for expr in exprs for load in loads(expr)):
            if isinstance(load.buffer, Tensor) and load.buffer.op is not None:
                if load.buffer.name not in s.stages:
                    return 0
                pairs = enumerate(zip(op.axis, load.indices, strict=False))
                counts.append(next((n for n, (a, i) in pairs if a is not i), len(load.indices)))
    return min(counts, default=0) if counts and min(counts) < len(result.axis) else 0
