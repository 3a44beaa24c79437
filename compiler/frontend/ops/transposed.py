"""Transposed convolution of an image, as convolutions by parts of its filter.

With a stride of s, the pixels of the result whose rows leave the remainder r see the taps k with
``k % s == (r + cut) % s`` alone, ``cut`` being the rows that are cut off in front. So each pair of
remainders is a plain convolution of the data by every s-th tap, turned around, and the results take
turns in the result's rows and columns: no zero is multiplied (Dumoulin and Visin, "A guide to
convolution arithmetic for deep learning", 2016, chapter 4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Array, Shape


@dataclass(frozen=True)
class Phase:
    """One remainder along one dimension: every ``stride``-th tap from ``first`` on, turned around,
    over the data with ``pads`` in front and behind."""

    first: int
    stride: int
    pads: tuple[int, int]

    def taps(self, weight: Array, axis: int) -> Array:
        """The taps of a filter that this phase uses."""
        places = np.arange(self.first, weight.shape[axis], self.stride)[::-1]
        return weight.take(places, axis)


def phases(size: int, kernel: int, stride: int, cut: tuple[int, int]) -> list[Phase] | None:
    """The phases along one dimension, by their remainder.

    Args:
        size: pixels of the data.
        kernel: taps of the filter.
        stride: pixels of the result from one pixel of the data to the next.
        cut: pixels of the full result that are cut off in front and behind.

    Returns:
        None where the phases aren't alike (the stride doesn't divide the result's size, or is more
        than the taps), or would cut the data.
    """
    total = full_size(size, kernel, stride, cut)
    if total % stride or kernel < stride:
        return None
    result = []
    for remainder in range(stride):
        first = (remainder + cut[0]) % stride
        taps = len(range(first, kernel, stride))
        ahead = (remainder + cut[0] - first) // stride
        pads = taps - 1 - ahead, total // stride - 1 + ahead - (size - 1)
        if min(pads) < 0:
            return None
        result.append(Phase(first, stride, pads))
    return result


def full_size(size: int, kernel: int, stride: int, cut: tuple[int, int]) -> int:
    """Pixels of the result along one dimension; arguments as of :func:`phases`."""
    return (size - 1) * stride + kernel - sum(cut)


class Filter:
    """A constant filter [I, O / groups, KH, KW], or one of a signal, [I, O / groups, K], which may
    be quantized."""

    def __init__(self, view: OnnxNode, groups: int) -> None:
        self.draft, self.name, self.groups = view.draft, view.operand(1), groups
        self.source = self.draft.dequantized(self.name)
        values = self.draft.constants.get(self.source.data if self.source else self.name)
        self.values = None if values is None else values.reshape(image_shape(values.shape))

    @property
    def known(self) -> bool:
        """Whether it is a constant, whose scales stay with their channels when it is rearranged."""
        return self.values is not None and (
            self.source is None or self.source.axis is None or self.groups == 1
        )

    def part(self, rows: Phase, columns: Phase, name: str) -> str:
        """The part of two phases as a convolution's weight [O, I / groups, KH', KW']."""
        assert self.values is not None
        taps = columns.taps(rows.taps(self.values, 2), 3)
        inputs, outputs, *kernel = taps.shape
        split = taps.reshape(self.groups, inputs // self.groups, outputs, *kernel)
        turned = split.swapaxes(1, 2).reshape(self.groups * outputs, -1, *kernel)
        weight = self.draft.add_constant(f"{name}.weight", np.ascontiguousarray(turned))
        if self.source is None:
            return weight
        axis = None if self.source.axis is None else 0
        node = replace(
            self.source,
            name=self.draft.fresh(f"{name}.dequantize"),
            output=f"{name}.real",
            data=weight,
            axis=axis,
        )
        return self.draft.emit(node, "float32")


def image_shape(shape: Shape) -> Shape:
    """The shape of an image, or that of a signal as an image of one row."""
    return shape if len(shape) == 4 else (*shape[:2], 1, shape[2])


def emit_phases(view: OnnxNode, groups: int, cuts: list[tuple[int, int]]) -> bool:
    """Adds a transposed convolution of float32 as convolutions by parts of its filter.

    Args:
        view: a ConvTranspose of images or signals, without dilations.
        groups: of channels that see each other alone.
        cuts: pixels of the full result that are cut off along rows and columns, or columns alone.

    Pixels that a stride doesn't divide are computed up to one that it does, and cut off.

    Returns:
        Whether it was added; not where the filter isn't known, or a part of it has no taps.
    """
    weight = Filter(view, groups)
    rank = len(cuts)
    ones = (1,) * (2 - rank)
    strides = *ones, *view.integers("strides", (1,) * rank)
    image, kernel = (image_shape(view.shape(n)) for n in (0, 1))
    ends = [(0, 0) for _ in ones] + cuts
    spatial = list(zip(image[2:], kernel[2:], strides, ends, strict=True))
    sizes = [full_size(*dimension) for dimension in spatial]
    rows, columns = (
        phases(size, taps, stride, (low, high + whole % -stride))
        for (size, taps, stride, (low, high)), whole in zip(spatial, sizes, strict=True)
    )
    if not weight.known or rows is None or columns is None:
        return False
    make, parts = Maker(view), []
    data = view.operand(0) if rank == 2 else make.reshape(view.operand(0), image)
    for number, (down, across) in enumerate(product(rows, columns)):
        node = ops.Conv2d(
            **make.names(),
            data=data,
            weight=weight.part(down, across, f"{view.name}.part{number}"),
            bias=view.optional(2),
            groups=groups,
            strides=(1, 1),
            dilations=(1, 1),
            pads=(down.pads[0], across.pads[0], down.pads[1], across.pads[1]),
        )
        parts.append(make.add(node, "float32"))
    if len(parts) > 1:
        turns = {"rows": len(rows), "columns": len(columns)}
        joined = ops.Interleave(**make.names(), parts=tuple(parts), **turns)
        parts = [make.cropped(make.add(joined, "float32"), sizes)]
    batch, channels, _, length = make.shape(parts[0])
    make.result(parts[0] if rank == 2 else make.reshape(parts[0], (batch, channels, length)))
    return True
