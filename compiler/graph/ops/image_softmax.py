"""Softmax over the pixels of an image, in integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import Recipe
from vdla.compiler.graph.numbers import requantize
from vdla.compiler.graph.ops.table import RESULTS
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ops import reciprocal, rq
from vdla.isa.numbers import MANTISSA_BITS, pack_scale

ONE = (1 << 15) - 1  # e to the power of zero, in the table
MOST_PIXELS = 1 << 16  # whose sum an int32 holds
SUM_BITS = 31


@dataclass(frozen=True, kw_only=True)
class QSoftmax(Requantized):
    """Shares of exponentials, of each channel's pixels.

    ``d = data - max(data)``, ``e = table[d & 255]``, ``total = rq(Σ e, factor)``, and
    ``output = clip(rq(e, word(1 / total) / 2**-shift) + requant.zero, low, high)``, where the table
    has ``e**(step * d)`` in steps of ``1 / 32767``, ``factor = y_scale * 2**shift``, and ``shift``
    is as large as an int32 allows. ``step`` is the data's scale, ``requant.scale`` is y's. Of an
    image [N, C, 1, W] the maximum and sums are over W.

    A result is one step from that of floats, rounded, where these lie within 2**-7 steps of a
    boundary between two results.
    """

    data: str
    step: float

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        shape = shapes[0]
        if len(shape) != 4 or shape[2] != 1 or shape[3] > MOST_PIXELS:
            raise self.error(f"an image [N, C, 1, W] of up to {MOST_PIXELS} pixels", list(shape))
        return shape

    @property
    def table(self) -> Array:
        """The exponential of each difference, int16, in the order of its low eight bits."""
        differences = np.arange(RESULTS) - RESULTS
        differences[0] = 0
        return np.asarray(np.rint(ONE * np.exp(self.step * differences)), np.int16)

    def shift(self, pixels: int) -> int:
        """The binary places that the sum of so many exponentials gets."""
        return SUM_BITS - math.ceil(math.log2(pixels * ONE * self.requant.scale[0]))

    def factor(self, pixels: int) -> int:
        """The scale word of a sum of so many exponentials."""
        return pack_scale(self.requant.scale[0] * 2.0 ** self.shift(pixels))

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        data, pixels = args[0].astype(np.int64), args[0].shape[-1]
        differences = data - data.max(axis=-1, keepdims=True)
        e = self.table.astype(np.int64)[differences & (RESULTS - 1)]
        total = rq(e.sum(axis=-1, keepdims=True), self.factor(pixels))
        words = reciprocal(total) - (self.shift(pixels) << MANTISSA_BITS)
        return requantize(e, words, *self.requant.limits)

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """Shares at the result's scale; the exponentials are as exact as 2**-16 of the largest."""
        data = args[0].astype(np.float64)
        (scale,) = self.requant.scale
        e = np.exp(self.step * (data - data.max(axis=-1, keepdims=True)))
        shares = e / e.sum(axis=-1, keepdims=True) / scale
        return shares, np.full_like(shares, 1 / scale), 8

    def express(self, recipe: Recipe) -> Tensor:
        shape, pixels = recipe.shape(self.data), recipe.shape(self.data)[-1]
        data, table = recipe.image(self.data), recipe.constant("table", self.table)
        r, k = te.reduce_axis((0, pixels), "r"), te.reduce_axis((0, pixels), "k")
        rows = shape[:2]
        top = te.compute(
            rows, lambda n, c: te.max(data(n, c, te.const(0), r).astype("int32"), axis=r), "top"
        )

        def power(n: Expr, c: Expr, x: Expr) -> Expr:
            difference = data(n, c, te.const(0), x).astype("int32") - top[n, c]
            return table[difference & (RESULTS - 1)].astype("int32")

        e = te.compute((*rows, pixels), power, "e")
        total = te.compute(rows, lambda n, c: te.sum(e[n, c, k], axis=k), "total")
        factor, places = te.const(self.factor(pixels)), self.shift(pixels) << MANTISSA_BITS
        words = te.compute(
            rows, lambda *i: te.reciprocal(te.rq(total[i], factor)) - places, "words"
        )

        def value(n: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
            return requantized(e[n, c, x], words[n, c], *self.requant.limits)

        return recipe.compute(value, "softmax")
