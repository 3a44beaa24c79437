"""Windows as channels: how a first layer of few channels fills the multiplier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler import te
from vdla.compiler.graph.express import inside
from vdla.compiler.graph.ir import IntegerNode, Recipe
from vdla.compiler.graph.ops.window import Windowed
from vdla.compiler.graph.types import Array, Pair, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class Im2col(IntegerNode, Windowed):
    """Elements that each window sees, as channels: [N, C, H, W] to [N, C*KH*KW, OH, OW].

    Channel ``(c * KH + ky) * KW + kx`` is tap (ky, kx) of channel c; padding holds ``fill``.
    """

    CONVERTS: ClassVar[str] = "layout"
    NOT_ACCELERATED: ClassVar[str] = "layout change on the way to the accelerator"

    kernel: Pair
    fill: int

    def kernel_of(self, shapes: Sequence[Shape]) -> Pair:
        return self.kernel

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        h, w = self.places(shapes)
        return (shapes[0][0], shapes[0][1] * self.kernel[0] * self.kernel[1], h, w)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return self.views(args[0], self.kernel, self.fill).reshape(kind.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        _, _, h, w = data.shape
        (kh, kw), (sy, sx), (dy, dx) = self.kernel, self.strides, self.dilations
        top, left, _, _ = self.pads
        fill = te.const(self.fill, "int8")

        def value(b: Expr, channel: Expr, y: Expr, x: Expr) -> Expr:
            ky, kx = te.floormod(te.floordiv(channel, kw), kh), te.floormod(channel, kw)
            row, col = y * sy + ky * dy - top, x * sx + kx * dx - left
            seen = data[b, te.floordiv(channel, kh * kw), row, col]
            return te.if_then_else(te.all(inside(row, h), inside(col, w)), seen, fill)

        return te.compute(recipe.out_shape, value, "taps")
