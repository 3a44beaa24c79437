"""Layer normalization and its like of 16 bits: each pixel's channels by their deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, sqrt
from typing import ClassVar, TypeVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.numbers import pack_scales, requantize
from vdla.compiler.graph.ops.normalize import MOST_CHANNELS
from vdla.compiler.graph.ops.wide import BYTE_BITS, MOST
from vdla.compiler.graph.types import Array, Requant, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ops import rq, rsqrt
from vdla.isa.numbers import MANTISSA_BITS, pack_scale

DATA_BITS = 15  # of a number of 16 bits without its sign
POWER_BITS = 30  # of what a sum's square is shifted to
T = TypeVar("T", Array, Expr)


@dataclass(frozen=True)
class WideMoments:
    """The constants of the mean and the deviation of so many channels of 16 bits.

    Sums of squares are in units of ``2**bits``, so that they fit in an int32. A sum's absolute
    value is shifted by ``cut``, so that it is a scale's mantissa, and its square by ``excess``.
    """

    channels: int

    @property
    def bits(self) -> int:
        """The bits that the number of channels takes."""
        return ceil(log2(self.channels))

    @property
    def cut(self) -> int:
        """The bits by which a sum may be longer than a mantissa."""
        return max(0, DATA_BITS + self.bits - MANTISSA_BITS)

    @property
    def excess(self) -> int:
        """The bits by which a sum's square may be longer than an int32."""
        return max(0, 2 * (DATA_BITS + self.bits - self.cut) - POWER_BITS)

    @property
    def mean(self) -> int:
        """The scale word of a sum, for the mean."""
        return pack_scale(1 / self.channels)

    @property
    def square(self) -> int:
        """The scale word of a sum's square, for the mean's share of the sum of squares."""
        return pack_scale(2.0 ** (self.excess + 2 * self.cut - self.bits) / self.channels)

    @property
    def shifts(self) -> tuple[int, int, int]:
        """The shifts to the left of sums of squares of high bytes, of products of both, and of
        squares of low bytes."""
        return 2 * BYTE_BITS - self.bits, BYTE_BITS + 1 - self.bits, -self.bits

    @property
    def unit(self) -> float:
        """Unit, in deviations, of a difference from the mean times the reciprocal root of the sum
        of squares."""
        return sqrt(self.channels * 2.0**-self.bits)

    def epsilon(self, squared: float) -> int:
        """Number added to each square, in steps of the data, as all sums have it."""
        return round(self.channels * squared * 2.0**-self.bits)


def shifted(x: T, by: int) -> T:
    """A number, or an expression, shifted to the left, or where that is negative to the right."""
    return x << by if by > 0 else x >> -by if by < 0 else x


@dataclass(frozen=True, kw_only=True)
class QWideNormalize(Node):
    """Difference of each pixel's channels of 16 bits from their mean, in deviations; then a factor
    and an offset, as int8 or as int32 of 16 bits.

    Of an image [N, C, 1, W], given as bytes [2 * N, C, 1, W], the result is [N, W, 1, C]. With
    ``x = 256 * high + low`` and sums over the channels of a pixel, in an int32 each:

        total = (Σ high << 8) + Σ low       mean = rq(total, 1 / C), or 0
        squares = (Σ high² << 16 - bits) + (Σ high low << 9 - bits) + (Σ low² >> bits)
        square = squares - total² / C / 2**bits, or squares
        above = rq((mean - x) * factor[c], word(1 / √(square + epsilon)) * 2**shift)
        output = above + offset[c], requantized, or limited to ``low`` and ``high``

    RMS normalization is not ``centered``. ``epsilon`` is for the square of one channel, in steps of
    the data. ``WideMoments`` has the constants, ``Terms`` makes ``factor``, ``offset`` and
    ``shift``.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "factor", "offset")
    PARAMETERS: ClassVar[tuple[str, ...]] = ("factor", "offset")
    READS: ClassVar[frozenset[str]] = frozenset({"int8"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8", "int32"})

    data: str
    factor: str
    offset: str
    centered: bool
    epsilon: float
    shift: int
    requant: Requant | None = None
    low: int = -MOST
    high: int = MOST

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        shape, factor, offset = shapes
        fits = len(shape) == 4 and shape[2] == 1 and shape[0] % 2 == 0
        if not fits or not 1 <= shape[1] <= MOST_CHANNELS:
            image = f"bytes of an image, [2 * N, C, 1, W], of up to {MOST_CHANNELS} channels"
            raise self.error(image, list(shape))
        if {factor, offset} != {(shape[1],)}:
            expected = f"a factor and an offset of shape {[shape[1]]}"
            raise self.error(expected, f"{list(factor)} and {list(offset)}")
        return shape[0] // 2, shape[3], 1, shape[1]

    @property
    def gain(self) -> int:
        """Number added to a reciprocal root's word for the shift."""
        return -(self.shift << MANTISSA_BITS)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        data, m = args[0][:, :, 0].astype(np.int64), WideMoments(args[0].shape[1])
        low, high = data[0::2], data[1::2]
        sums = (high**2).sum(axis=1), (high * low).sum(axis=1), (low**2).sum(axis=1)
        square = sum(shifted(each, by) for each, by in zip(sums, m.shifts, strict=True))
        total = (high.sum(axis=1) << BYTE_BITS) + low.sum(axis=1)
        mean = np.zeros_like(total)
        if self.centered:
            mean, size = rq(total, m.mean).astype(np.int64), np.abs(total) >> m.cut
            square = square - rq(rq(size, size | m.excess << MANTISSA_BITS), m.square)
        root = rsqrt(square + m.epsilon(self.epsilon)) + self.gain
        factor, offset = (each.astype(np.int64)[:, np.newaxis] for each in args[1:])
        below = mean[:, np.newaxis] - ((high << BYTE_BITS) + low)
        above = rq(below * factor, root[:, np.newaxis]).astype(np.int64)
        result = self._narrow(above + offset)
        return np.ascontiguousarray(result.swapaxes(1, 2)[:, :, np.newaxis])

    def _narrow(self, values: Array) -> Array:
        if self.requant is None:
            return np.clip(values, self.low, self.high).astype(np.int32)
        return requantize(values, pack_scales(self.requant.scale)[0], *self.requant.limits)

    def express(self, recipe: Recipe) -> Tensor:
        n, channels, _, pixels = recipe.shape(self.data)
        data, m, rows = recipe.image(self.data), WideMoments(channels), (n // 2, pixels)
        factor, offset = recipe.read(self.factor), recipe.read(self.offset)
        first = te.const(0)

        def byte(number: int, n: Expr, c: Expr, w: Expr) -> Expr:
            return data(n * 2 + number, c, first, w).astype("int32")

        def summed(name: str, *numbers: int) -> Tensor:
            c = te.reduce_axis((0, channels), f"c_{name}")

            def value(n: Expr, w: Expr) -> Expr:
                terms = [byte(number, n, c, w) for number in numbers]
                return te.sum(terms[0] * terms[-1] if len(terms) > 1 else terms[0], axis=c)

            return te.compute(rows, value, name)

        sums = summed("squares", 1, 1), summed("products", 1, 0), summed("low_squares", 0, 0)
        low, high = summed("low_total", 0), summed("high_total", 1)

        def mean(n: Expr, w: Expr) -> Expr:
            if not self.centered:
                return te.const(0)
            return te.rq((high[n, w] << BYTE_BITS) + low[n, w], te.const(m.mean))

        def root(n: Expr, w: Expr) -> Expr:
            a, b, c = (shifted(each[n, w], by) for each, by in zip(sums, m.shifts, strict=True))
            square: Expr = a + b + c
            if self.centered:
                total = (high[n, w] << BYTE_BITS) + low[n, w]
                size = te.maximum(total, -total) >> m.cut
                part = te.rq(size, size + (m.excess << MANTISSA_BITS))
                square = square - te.rq(part, te.const(m.square))
            return te.rsqrt(square + m.epsilon(self.epsilon)) + self.gain

        means, roots = te.compute(rows, mean, "means"), te.compute(rows, root, "roots")

        def value(n: Expr, w: Expr, y: Expr, c: Expr) -> Expr:
            whole = byte(1, n, c, w) * (1 << BYTE_BITS) + byte(0, n, c, w)
            above = te.rq((means[n, w] - whole) * factor[c], roots[n, w])
            return self._narrowed(above + offset[c])

        return recipe.compute(value, "normalized")

    def _narrowed(self, value: Expr) -> Expr:
        """The element of the result that a wide one becomes."""
        if self.requant is None:
            return te.minimum(te.maximum(value, self.low), self.high)
        word = te.const(int(pack_scales(self.requant.scale)[0]), "int32")
        return requantized(value, word, *self.requant.limits)
