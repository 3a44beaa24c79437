"""Layer normalization and its like in integers: each pixel's channels by their deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, sqrt
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import GraphError, Recipe
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ops import rq, rsqrt
from vdla.isa.numbers import MANTISSA_BITS, pack_scale

FINE = 127  # steps of a mean in one of the data: the largest weight of a product
SUM_BITS = 30
TERM_BITS = 15  # of factors and offsets: what a product of four int8 with weights gives
MOST_FACTOR = (1 << 14) - 1  # times what is below a mean, an int32
MOST_OFFSET = (1 << TERM_BITS) - 1
FINEST = 2.0**-8  # steps of the result: what sums are computed in, where offsets allow it
MOST_CHANNELS = 1 << 14


@dataclass(frozen=True)
class Moments:
    """The constants of the mean and the deviation of so many channels.

    ``places`` are the binary places of sums of squares, ``excess`` what the square of a sum is
    shifted by to be an int32.
    """

    channels: int

    @property
    def bits(self) -> int:
        """The bits that the number of channels takes."""
        return ceil(log2(self.channels))

    @property
    def places(self) -> int:
        """The binary places that an int32 has room for, of up to 255 squared in each channel."""
        return SUM_BITS - 16 - self.bits

    @property
    def excess(self) -> int:
        """A sum of int8 has seven bits more than the number of channels."""
        return max(0, 2 * (7 + self.bits) - SUM_BITS)

    @property
    def mean(self) -> int:
        """The scale word of a sum, for the mean."""
        return pack_scale(FINE / self.channels)

    @property
    def square(self) -> int:
        """The scale word of a sum's square, for the mean's share of the sum of squares."""
        return pack_scale(2.0 ** (self.excess + self.places) / self.channels)

    @property
    def unit(self) -> float:
        """Unit, in deviations, of a difference from the mean times the reciprocal root of the sum
        of squares.
        """
        return sqrt(self.channels * 2.0**self.places) / FINE

    def epsilon(self, squared: float) -> int:
        """Number added to each square, in steps of the data, as all sums have it."""
        return round(self.channels * squared * (1 << self.places))


@dataclass(frozen=True)
class Terms:
    """Factors and offsets of deviations in integers, int32 [C].

    With ``z`` what is below the mean times the reciprocal root, the result is
    ``(z * factor * 2**shift + offset) * scale``.
    """

    factor: Array
    offset: Array
    shift: int
    scale: float

    @classmethod
    def of(
        cls, gamma: Array, beta: Array, unit: float | None = None, finest: float = FINEST
    ) -> Terms:
        """For factors and offsets in steps of the result.

        Args:
            gamma: factors [C], in steps of the result.
            beta: offsets [C], in steps of the result.
            unit: ``z`` of one, in deviations; that of int8 where it isn't given.
            finest: the least scale.

        Raises:
            GraphError: one of them isn't finite.
        """
        if not (np.isfinite(gamma).all() and np.isfinite(beta).all()):
            raise GraphError("expected finite factors and offsets of a normalization")
        scale = max(finest, float(np.float32(np.abs(beta).max() / MOST_OFFSET)))
        factor = -gamma.astype(np.float64) * (unit or Moments(gamma.size).unit) / scale
        shift = ceil(log2(max(np.abs(factor).max(), 2.0**-20) / MOST_FACTOR))
        offset = np.clip(np.rint(beta / scale), -MOST_OFFSET, MOST_OFFSET)
        factor = np.rint(factor * 2.0**-shift)
        return cls(factor.astype(np.int32), offset.astype(np.int32), shift, scale)


@dataclass(frozen=True, kw_only=True)
class QNormalize(Requantized):
    """Difference of each pixel's channels from their mean, in deviations; then a factor and an
    offset.

    Of an image [N, C, 1, W] the result is [N, W, 1, C]: channels and pixels change places. With
    ``x`` the data and sums over the channels of a pixel (RMS normalization is not ``centered``):

        total = Σ x                      mean = rq(total, 127 / C), or 127 * zero
        square = (Σ x²) 2**places - rq(rq(|total|, |total| / 2**excess), 2**(excess + places) / C),
                 or (Σ x² - 2 zero total + C zero²) 2**places
        above = rq((mean - 127 x) * factor[c], word(1 / √(square + epsilon)) * 2**shift)
        output = above + offset[c], requantized

    ``zero`` is the data's zero point. ``epsilon`` is for the square of one channel, in steps of the
    data. ``Terms`` makes ``factor`` and ``offset``, int32 [C], ``shift`` and the scale.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "factor", "offset")
    PARAMETERS: ClassVar[tuple[str, ...]] = ("factor", "offset")

    data: str
    factor: str
    offset: str
    centered: bool
    epsilon: float
    shift: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        shape, factor, offset = shapes
        if len(shape) != 4 or shape[2] != 1 or not 1 <= shape[1] <= MOST_CHANNELS:
            image = f"an image [N, C, 1, W] of up to {MOST_CHANNELS} channels"
            raise self.error(image, list(shape))
        if {factor, offset} != {(shape[1],)}:
            expected = f"a factor and an offset of shape {[shape[1]]}"
            raise self.error(expected, f"{list(factor)} and {list(offset)}")
        return shape[0], shape[3], 1, shape[1]

    @property
    def gain(self) -> int:
        """Number added to a reciprocal root's word for the shift."""
        return -(self.shift << MANTISSA_BITS)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        data, channels = args[0][:, :, 0].astype(np.int64), args[0].shape[1]
        m, (zero,) = Moments(channels), self.zeros
        total, squares = data.sum(axis=1), (data**2).sum(axis=1)
        if self.centered:
            mean, size = rq(total, m.mean), np.abs(total)
            part = rq(rq(size, size | m.excess << MANTISSA_BITS), m.square)
            square = (squares << m.places) - part
        else:
            mean = np.full_like(total, FINE * zero)
            square = (squares - 2 * zero * total + channels * zero**2) << m.places
        root = rsqrt(square + m.epsilon(self.epsilon)) + self.gain
        factor, offset = (each.astype(np.int64)[:, np.newaxis] for each in args[1:])
        below = mean[:, np.newaxis] - FINE * data
        above = rq(below * factor, root[:, np.newaxis]).astype(np.int64)
        result = self.narrow(above + offset)
        return np.ascontiguousarray(result.swapaxes(1, 2)[:, :, np.newaxis])

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """In floats; the mean is as exact as 2**-8 steps of the data."""
        data = args[0][:, :, 0].astype(np.float64) - self.zeros[0]
        channels = data.shape[1]
        data = data - data.mean(axis=1, keepdims=True) if self.centered else data
        (scale,) = self.requant.scale
        root = np.sqrt((data**2).mean(axis=1, keepdims=True) + self.epsilon)
        factor, offset = (each.astype(np.float64)[:, np.newaxis] * scale for each in args[1:])
        factor = factor * 2.0**self.shift / -Moments(channels).unit
        value = data / root * factor + offset
        error = np.abs(factor) * (np.abs(data) + 2.0**-8) / root + np.abs(offset)
        value, error = (each.swapaxes(1, 2)[:, :, np.newaxis] for each in (value, error))
        return value, error, 8

    def express(self, recipe: Recipe) -> Tensor:
        n, channels, _, pixels = recipe.shape(self.data)
        data, m, rows = recipe.image(self.data), Moments(channels), (n, pixels)
        factor, offset = recipe.read(self.factor), recipe.read(self.offset)
        first, (zero,) = te.const(0), self.zeros

        def x(n: Expr, c: Expr, w: Expr) -> Expr:
            return data(n, c, first, w).astype("int32")

        c, d = te.reduce_axis((0, channels), "c"), te.reduce_axis((0, channels), "d")
        total = te.compute(rows, lambda n, w: te.sum(x(n, c, w), axis=c), "total")
        squares = te.compute(rows, lambda n, w: te.sum(x(n, d, w) * x(n, d, w), axis=d), "squares")

        def mean(n: Expr, w: Expr) -> Expr:
            if self.centered:
                return te.rq(total[n, w], te.const(m.mean))
            return te.const(FINE * zero)

        def root(n: Expr, w: Expr) -> Expr:
            square: Expr = squares[n, w]
            if self.centered:
                size = te.maximum(total[n, w], -total[n, w])
                part = te.rq(size, size + (m.excess << MANTISSA_BITS))
                square = (square << m.places) - te.rq(part, te.const(m.square))
            else:
                constant = channels * zero**2
                square = (square - total[n, w] * (2 * zero) + constant) << m.places
            return te.rsqrt(square + m.epsilon(self.epsilon)) + self.gain

        means, roots = te.compute(rows, mean, "means"), te.compute(rows, root, "roots")
        narrow = self.narrowing(recipe)

        def value(n: Expr, w: Expr, y: Expr, c: Expr) -> Expr:
            above = te.rq((means[n, w] - x(n, c, w) * FINE) * factor[c], roots[n, w])
            return narrow(above + offset[c])

        return recipe.compute(value, "normalized")
