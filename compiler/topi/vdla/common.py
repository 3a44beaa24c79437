"""Pieces of expressions that several operators share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vdla.compiler import te
from vdla.compiler.tir.ir import Expr

if TYPE_CHECKING:
    from vdla.compiler.topi.vdla.conv2d import ConvShape
    from vdla.compiler.topi.vdla.pool import PoolShape


def only_padding(shape: ConvShape | PoolShape) -> bool:
    """Whether every window ends before the image begins."""
    return any(
        (out - 1) * s + (k - 1) * d < pad
        for out, k, s, d, pad in zip(
            (shape.out_height, shape.out_width),
            shape.kernel,
            shape.strides,
            shape.dilations,
            shape.pads,
            strict=False,
        )
    )


def requantize(x: Expr, scale: Expr, zero: int, low: int, high: int) -> Expr:
    """``clip(rq(x, scale) + zero, low, high)`` in int32."""
    value = te.rq(x, scale) + te.const(zero)
    return te.minimum(te.maximum(value, te.const(low)), te.const(high))
