"""One geometry of windows: what convolutions and pools step over images with, on every target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypedDict

from vdla.compiler.graph.types import Pads, Pair


class Steps(TypedDict):
    """The fields of an image's node that say where its window goes."""

    strides: Pair
    pads: Pads
    dilations: Pair


@dataclass(frozen=True)
class Window:
    """``kernel`` taps along each dimension of an image, and how they step over it.

    ``pads`` are those in front of every dimension, then those behind it: of rows and columns (top,
    left, bottom, right).
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    dilations: tuple[int, ...] = (1, 1)

    @classmethod
    def square(cls, size: int, stride: int = 1, pad: int | None = None) -> Window:
        """Alike in both directions; by default padded so that a stride of 1 keeps the image's
        size (where ``size`` is odd)."""
        pad = (size - 1) // 2 if pad is None else pad
        return cls((size, size), (stride, stride), (pad, pad, pad, pad))

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.kernel)

    @property
    def taps(self) -> int:
        """Positions under it."""
        return prod(self.kernel)

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements from its first tap to its last along each dimension, both included."""
        pairs = zip(self.kernel, self.dilations, strict=True)
        return tuple(dilation * (taps - 1) + 1 for taps, dilation in pairs)

    @property
    def size(self) -> Pair:
        """Rows and columns of a window over an image."""
        rows, columns = self.kernel
        return rows, columns

    @property
    def steps(self) -> Steps:
        """Strides, pads and dilations of a window over an image, as a node's fields."""
        (sh, sw), (dh, dw), (top, left, bottom, right) = self.strides, self.dilations, self.pads
        return {"strides": (sh, sw), "pads": (top, left, bottom, right), "dilations": (dh, dw)}

    def padded(self, image: Sequence[int]) -> tuple[int, ...]:
        """The sizes of an image with its padding."""
        pads = zip(self.pads[: self.rank], self.pads[self.rank :], strict=True)
        return tuple(size + sum(pad) for size, pad in zip(image, pads, strict=True))

    def places(self, image: Sequence[int]) -> tuple[int, ...]:
        """Number of places that it takes along each dimension of an image; less than one where it
        is larger than the padded image."""
        sizes = zip(self.padded(image), self.extents, self.strides, strict=True)
        return tuple((size - extent) // stride + 1 for size, extent, stride in sizes)
