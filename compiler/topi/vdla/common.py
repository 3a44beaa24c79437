"""Pieces of expressions that several operators share."""

from __future__ import annotations

from vdla.compiler import te
from vdla.compiler.tir.ir import Expr


def requantize(x: Expr, scale: Expr, zero: int, low: int, high: int) -> Expr:
    """``clip(rq(x, scale) + zero, low, high)`` in int32."""
    value = te.rq(x, scale) + te.const(zero)
    return te.minimum(te.maximum(value, te.const(low)), te.const(high))
