"""Elementwise maximum: two int8 tensors, brought to one scale where they have two."""

from __future__ import annotations

from collections.abc import Callable

from vdla.compiler import te
from vdla.compiler.graph.ops.maximum import QMaximum
from vdla.compiler.targets.accelerator.description import Intrinsics
from vdla.compiler.targets.accelerator.operators.minimum import Minimum
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin


class Maximum(Minimum):
    """``out = clip(max(rq(a - a_zero, scale_a), rq(b - b_zero, scale_b)) + zero, low, high)``."""

    NAME = "maximum"
    NOUN = "maximum"
    NODES = (QMaximum,)

    def choice(self, ins: Intrinsics) -> tuple[Callable[[Expr, Expr], Expr], TensorIntrin]:
        """Which of two values is taken, as an expression and as an instruction."""
        return te.maximum, ins.alu_max
