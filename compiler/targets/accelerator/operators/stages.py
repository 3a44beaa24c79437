"""Stages in ACC: what schedules do to each of several, and those that softmax is made of."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.accelerator.description import ACC, Intrinsics
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr, Var
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.numbers import MANTISSA_BITS
from vdla.isa.options.tables import TABLE_RESULTS

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


@dataclass(frozen=True)
class SoftmaxStages:
    """Exponentials and the scale word of each row, whose requantization makes them shares;
    ``steps`` are all stages on the way, the first one first."""

    powers: Tensor
    word: Tensor
    steps: Steps


def softmax_stages(
    scores: Tensor, axis: int, pixels: int, table: Tensor, sums: tuple[int, int], ins: Intrinsics
) -> SoftmaxStages:
    """The softmax of int8 scores in ACC along an axis, of which the first ``pixels`` are added up.

    ``table`` has the exponentials of differences, ``sums`` the factor and the binary places of
    their sums (``QSoftmax``).
    """
    k, j = (te.reduce_axis((0, pixels), name) for name in "kj")
    rows = scores.shape[:axis] + scores.shape[axis + 1 :]

    def of_row(at: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return at[:axis] + at[axis + 1 :]

    def of_pixel(row: tuple[Expr, ...], pixel: Expr) -> tuple[Expr, ...]:
        return (*row[:axis], pixel, *row[axis:])

    top = te.compute(rows, lambda *i: te.max(scores[of_pixel(i, k)], axis=k), "top")
    less = te.compute(scores.shape, lambda *i: scores[i] - top[of_row(i)], "less")
    powers = te.compute(
        scores.shape, lambda *i: table[less[i] & (TABLE_RESULTS - 1)].astype("int32"), "powers"
    )
    total = te.compute(rows, lambda *i: te.sum(powers[of_pixel(i, j)], axis=j), "total")
    factor, places = te.const(sums[0]), te.const(-(sums[1] << MANTISSA_BITS))
    scaled = te.compute(rows, lambda *i: te.rq(total[i], factor), "scaled")
    inverse = te.compute(rows, lambda *i: te.reciprocal(scaled[i]), "inverse")
    word = te.compute(rows, lambda *i: inverse[i] + places, "word")
    steps = [
        (top, ins.alu_max_reduce), (less, ins.alu_wsub), (powers, ins.alu_table),
        (total, ins.alu_add_reduce), (scaled, ins.alu_scale_imm), (inverse, ins.alu_reciprocal),
        (word, ins.alu_add_imm),
    ]  # fmt: skip
    return SoftmaxStages(powers, word, steps)
