"""Nodes whose windows step over images: what convolutions and pools share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import inside
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.types import Array, Pads, Pair, Shape
from vdla.compiler.graph.window import Window
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class Windowed(Node, operator=False):
    """Strides, padding and dilations of a window that moves over the last two dimensions of
    ``data``.
    """

    data: str
    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilations: Pair = (1, 1)

    def kernel_of(self, shapes: Sequence[Shape]) -> Pair:
        """Rows and columns of its window, for operands of ``shapes``."""
        raise NotImplementedError

    def window(self, shapes: Sequence[Shape]) -> Window:
        """The node's window for operands of ``shapes``."""
        return Window(self.kernel_of(shapes), self.strides, self.pads, self.dilations)

    def places(self, shapes: Sequence[Shape]) -> Pair:
        """The height and width of the result for operands of ``shapes``.

        Raises:
            GraphError: no image, or one smaller than its window.
        """
        shape, window = shapes[0], self.window(shapes)
        if len(shape) != 4:
            raise self.error("data of shape [N, C, H, W]", list(shape))
        for key, least in (("strides", 1), ("dilations", 1), ("pads", 0)):
            values = getattr(self, key)
            if min(values) < least:
                raise self.error(f"{key} of at least {least}", list(values))
        h, w = window.places(shape[2:])
        if h < 1 or w < 1:
            rows, columns = window.kernel
            raise self.error(
                f"a padded image no smaller than its {rows}x{columns} window",
                list(window.padded(shape[2:])),
            )
        return h, w

    def views(self, x: Array, kernel: Sequence[int], pad: float) -> Array:
        """[N, C, KH, KW, OH, OW]: what each output place sees under its window."""
        top, left, bottom, right = self.pads
        padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=pad)
        n, c, h, w = padded.shape
        (sh, sw), (dh, dw) = self.strides, self.dilations
        unpadded = Window(tuple(kernel), self.strides, dilations=self.dilations)
        oh, ow = unpadded.places((h, w))
        s = padded.strides
        return np.lib.stride_tricks.as_strided(
            padded,
            (n, c, kernel[0], kernel[1], oh, ow),
            (s[0], s[1], s[2] * dh, s[3] * dw, s[2] * sh, s[3] * sw),
            writeable=False,
        )

    def seen(self, recipe: Recipe, outside: Expr) -> Callable[..., Expr]:
        """Element at an output place and at a place in its window: a function of b, c, y, x, ry,
        rx.
        """
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
