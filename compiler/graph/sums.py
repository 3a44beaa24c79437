"""Bounds of sums of int8 products: the proof that they fit in 32 bits.

Devices add in int32 and wrap. Weights and biases are known when a layer becomes one of integers, so
that the least and the greatest sum of each output channel are, too. A layer whose sums may not fit
stays one of floats on every device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.types import Array
from vdla.isa.numbers import INT32_MAX, INT32_MIN

MOVED = 2.0**-8  # steps of a result that a bias may be off, to leave room for the products


@dataclass(frozen=True)
class Sums:
    """The least and the greatest sum of products of each output channel, none of them below 0 and
    above 0: partial sums are between them, too. Channels are the weights' first dimension."""

    least: Array
    most: Array

    @classmethod
    def of(cls, weight: Array, zero_point: int) -> Sums:
        """The sums of any int8 data less their zero point, times int8 weights."""
        low, high = -128 - zero_point, 127 - zero_point
        rows = weight.reshape(len(weight), -1)
        above = np.maximum(rows, 0).sum(axis=1, dtype=np.int64)
        below = np.minimum(rows, 0).sum(axis=1, dtype=np.int64)
        return cls(above * low + below * high, above * high + below * low)

    def fitting_bias(self, bias: Array, scale: Array, limits: tuple[int, int]) -> Array:
        """A bias, in int32, with which no sum is beyond 32 bits.

        One that is too far out, as quantizers write for channels of nearly no weights, is moved
        where no result changes for it: by so little that rounding hides it, or where all of the
        channel's results are at a limit.

        Args:
            bias: integers of any size, in float64, one for each channel.
            scale: steps of the result for each unit of a sum.
            limits: the least and the greatest result less its zero point.

        Raises:
            GraphError: sums don't fit.
        """
        low, high = INT32_MIN - self.least, INT32_MAX - self.most
        moved = np.clip(bias, low, np.maximum(low, high))
        hidden = np.abs(moved - bias) * scale <= MOVED
        at_top = (moved + self.least) * scale >= limits[1] + 1
        at_bottom = (moved + self.most) * scale <= limits[0] - 1
        alike = hidden | (at_top & (moved < bias)) | (at_bottom & (moved > bias))
        wrong = np.flatnonzero((low > high) | ~alike)
        if len(wrong):
            channel = int(wrong[0])
            ends = bias[channel] + self.least[channel], bias[channel] + self.most[channel]
            raise GraphError(
                "expected sums of products and bias within 32 bits, -2147483648 to 2147483647, "
                f"found {ends[0]:.0f} to {ends[1]:.0f} in output channel {channel}"
            )
        return np.asarray(moved.astype(np.int32))


def check_products(count: int, first_zero: int, second_zero: int) -> None:
    """Checks sums of products of two tensors of int8 less their zero points.

    Raises:
        GraphError: sums of so many may not fit in 32 bits.
    """
    largest = count * _farthest(first_zero) * _farthest(second_zero)
    if largest > INT32_MAX:
        raise GraphError(
            "expected sums of products within 32 bits, -2147483648 to 2147483647, found up to "
            f"{largest} of {count} products"
        )


def _farthest(zero_point: int) -> int:
    """The largest difference of an int8 and a zero point."""
    return max(zero_point + 128, 127 - zero_point)


def within(sums: Array) -> Array:
    """Exact sums, as they are.

    Raises:
        GraphError: one is beyond 32 bits: devices would give another number.
    """
    if sums.size and not (sums.min() >= INT32_MIN and sums.max() <= INT32_MAX):
        raise GraphError(
            "expected sums within 32 bits, -2147483648 to 2147483647, found "
            f"{sums.min():.0f} to {sums.max():.0f}"
        )
    return sums
