"""Windows over images: what convolutions and pools share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import inside
from vdla.compiler.graph.ir import Array, Node, Pads, Pair, Recipe, Shape
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class Window(Node, operator=False):
    """Where a window goes over the last two dimensions of ``data``."""

    data: str
    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilations: Pair = (1, 1)

    def places(self, shape: Shape, kernel: Sequence[int]) -> tuple[int, int]:
        """The height and width of the result for data of ``shape``.

        Raises:
            GraphError: no image, or one smaller than its window.
        """
        if len(shape) != 4:
            raise self.error("data of shape [N, C, H, W]", list(shape))
        for key, least in (("strides", 1), ("dilations", 1), ("pads", 0)):
            values = getattr(self, key)
            if min(values) < least:
                raise self.error(f"{key} of at least {least}", list(values))
        top, left, bottom, right = self.pads
        h = window_extent(shape[2], kernel[0], self.strides[0], top, bottom, self.dilations[0])
        w = window_extent(shape[3], kernel[1], self.strides[1], left, right, self.dilations[1])
        if h < 1 or w < 1:
            padded = [shape[2] + top + bottom, shape[3] + left + right]
            raise self.error(
                f"a padded image no smaller than its {kernel[0]}x{kernel[1]} window", padded
            )
        return h, w

    def views(self, x: Array, kernel: Sequence[int], pad: float) -> Array:
        """[N, C, KH, KW, OH, OW]: what each output place sees under its window."""
        top, left, bottom, right = self.pads
        padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=pad)
        n, c, h, w = padded.shape
        (sh, sw), (dh, dw) = self.strides, self.dilations
        oh = window_extent(h, kernel[0], sh, 0, 0, dh)
        ow = window_extent(w, kernel[1], sw, 0, 0, dw)
        s = padded.strides
        return np.lib.stride_tricks.as_strided(
            padded,
            (n, c, kernel[0], kernel[1], oh, ow),
            (s[0], s[1], s[2] * dh, s[3] * dw, s[2] * sh, s[3] * sw),
            writeable=False,
        )

    def seen(self, recipe: Recipe, outside: Expr) -> Callable[..., Expr]:
        """What stands at an output place and a place in its window: a function of b, c, y, x, ry,
        rx."""
        _, _, h, w = recipe.shape(self.data)
        data = recipe.image(self.data)
        top, left, _, _ = self.pads
        (sh, sw), (dh, dw) = self.strides, self.dilations

        def seen(b: Expr, c: Expr, y: Expr, x: Expr, ry: Expr, rx: Expr) -> Expr:
            row, column = y * sh + ry * dh - top, x * sw + rx * dw - left
            if not any(self.pads):
                return data(b, c, row, column)
            here = te.all(inside(row, h), inside(column, w))
            return te.select(here, data(b, c, row, column), outside)

        return seen


def window_extent(
    size: int, kernel: int, stride: int, before: int, after: int, dilation: int
) -> int:
    """How many places a window takes along one dimension."""
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1
