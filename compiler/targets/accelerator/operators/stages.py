"""What schedules of several stages in ACC do to each: a scope, a place, an instruction a vector."""

from __future__ import annotations

from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.accelerator.description import ACC
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Var
from vdla.compiler.tir.ir.intrin import TensorIntrin

Steps = list[tuple[Tensor, TensorIntrin]]  # stages with their instructions, the last one first


def place(s: Schedule, steps: Steps, reader: Tensor, at: Var) -> None:
    """Computes stages in ACC at a loop of ``reader``, each by its instruction. Reductions have
    their steps around the vector that they make."""
    for stage, _ in steps:
        s[stage].set_scope(ACC)
    for stage, intrin in steps:
        s[stage].compute_at(s[reader], at)
        *around, lane = s[stage].axis
        if stage.compute_op.reduce is not None:
            inside = sum(kind == "reduce" for _, _, kind in intrin.axes)
            axes = s[stage].reduce_axis
            outside = len(axes) - inside
            s[stage].reorder(*around, *axes[:outside], lane, *axes[outside:])
        s[stage].tensorize(lane, intrin)
