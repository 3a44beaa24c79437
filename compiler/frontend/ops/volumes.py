"""Convolutions and pools of quantized volumes, as those of images.

A volume [N, C, D, H, W] is the images [N * D, C, H, W]. What a window sees along the depth is
brought together before it: the images of all taps as channels for a convolution, or with rows that
take turns. So each sum is one of integers, and is rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vdla.compiler.frontend.maker import Maker
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.graph.types import Array
from vdla.compiler.graph.window import Window

SWAP = (0, 2, 1, 3, 4)  # channels and depth


def images(make: Maker, data: str) -> str:
    """The images [N * D, C, H, W] of a volume, one after another."""
    n, c, d, h, w = make.shape(data)
    return make.reshape(make.transpose(data, SWAP), (n * d, c, h, w))


def volume(make: Maker, data: str, batch: int) -> str:
    """The volume [N, C, D, H, W] of images, one after another."""
    count, c, h, w = make.shape(data)
    return make.transpose(make.reshape(data, (batch, count // batch, c, h, w)), SWAP)


def convolution(
    make: Maker, data: str, weight: str, window: Window, groups: int
) -> tuple[str, str, Window] | None:
    """The operands and the window of images by which a quantized volume is convolved.

    Args:
        make: adds the nodes.
        data: the volume.
        weight: [O, C / groups, KD, KH, KW].
        window: of three dimensions.
        groups: of channels that see each other alone.

    Returns:
        None where the data aren't quantized, or the weight isn't known.
    """
    if not make.is_quantized(data):
        return None
    taps, (n, c, d, *_) = window.kernel[0], make.shape(data)
    if groups == 1:
        filters = make.parameter(weight, _as_channels)
    else:
        filters = make.parameter(weight, lambda array: _as_rows(array, window.dilations[1]))
    if filters is None:
        return None
    seen = _taken(make, images(make, data), n, _places(window, d))
    if groups > 1:
        return _by_turns(make, seen, taps), filters, _flat(window, taps)
    count, _, h, w = make.shape(seen)
    return make.reshape(seen, (count // taps, taps * c, h, w)), filters, _flat(window)


def pooled(make: Maker, data: str, window: Window, include: bool | None) -> str | None:
    """The largest elements, or the means, of a quantized volume; None where that isn't possible.

    ``include`` says of means whether they count padding; of the largest elements it is None.
    """
    if not make.is_quantized(data):
        return None
    n, _, d, *_ = make.shape(data)
    places, taps = _places(window, d), window.kernel[0]
    outside = any(OUTSIDE in each for each in places)
    flat = _flat(window, taps)
    if include is None:
        within = [[p for p in each if p != OUTSIDE] for each in places]
        if not all(within):
            return None
        inner, source = _flat(window), images(make, data)
        first = ops.MaxPool(**make.names(), data=source, kernel=inner.size, **inner.steps)
        repeated = [(each * taps)[:taps] for each in within]  # the largest stays the largest
        seen = _by_turns(make, _taken(make, make.add(first, "float32"), n, repeated), taps)
        node: ops.MaxPool | ops.AvgPool = ops.MaxPool(
            **make.names(), data=seen, kernel=(taps, 1), strides=(taps, 1)
        )
    elif window.dilations[1] > 1 or (outside and not include):
        return None
    else:
        seen = _by_turns(make, _taken(make, images(make, data), n, places), taps)
        node = ops.AvgPool(
            **make.names(), data=seen, kernel=flat.size, **flat.steps, include_pad=include
        )
    return volume(make, make.add(node, "float32"), n)


def _places(window: Window, depth: int) -> list[list[int]]:
    """The depths that each place of a result sees, ``OUTSIDE`` for padding."""
    (stride, *_), (dilation, *_) = window.strides, window.dilations
    padded = depth + window.pads[0] + window.pads[3]
    count = (padded - window.extents[0]) // stride + 1
    starts = [place * stride - window.pads[0] for place in range(count)]
    seen = [[start + tap * dilation for tap in range(window.kernel[0])] for start in starts]
    return [[p if 0 <= p < depth else OUTSIDE for p in each] for each in seen]


def _taken(make: Maker, data: str, batch: int, places: Sequence[Sequence[int]]) -> str:
    """The images that each place of a result sees, one after another."""
    depth = make.shape(data)[0] // batch
    table = [
        OUTSIDE if place == OUTSIDE else n * depth + place
        for n in range(batch)
        for each in places
        for place in each
    ]
    return make.along(data, 0, table)


def _by_turns(make: Maker, data: str, taps: int) -> str:
    """One image of every ``taps`` images, whose rows take turns in it."""
    count, c, h, w = make.shape(data)
    if taps == 1:
        return data
    split = make.reshape(data, (count // taps, taps, c, h, w))
    return make.reshape(make.transpose(split, (0, 2, 3, 1, 4)), (count // taps, c, h * taps, w))


def _flat(window: Window, turns: int = 1) -> Window:
    """The rows and columns of a window, over images whose rows are ``turns`` volumes' by turns."""
    _, top, left, _, bottom, right = window.pads
    if turns == 1:  # as it is: without zeros between dilated rows
        return Window(
            window.kernel[1:], window.strides[1:], (top, left, bottom, right), window.dilations[1:]
        )
    rows = ((window.kernel[1] - 1) * window.dilations[1] + 1) * turns
    return Window(
        (rows, window.kernel[2]),
        (window.strides[1] * turns, window.strides[2]),
        (top * turns, left, bottom * turns, right),
        (1, window.dilations[2]),
    )


def _as_channels(weight: Array) -> Array:
    """[O, KD * I, KH, KW]: the taps along the depth as channels."""
    o, i, kd, kh, kw = weight.shape
    return weight.swapaxes(1, 2).reshape(o, kd * i, kh, kw)


def _as_rows(weight: Array, dilation: int) -> Array:
    """[O, I, KH * KD, KW]: the taps along the depth as rows that take turns; the rows between two
    dilated ones are 0."""
    o, i, kd, kh, kw = weight.shape
    dilation = 1 if kd == 1 else dilation
    result = np.zeros((o, i, (kh - 1) * dilation + 1, kd, kw), weight.dtype)
    result[:, :, ::dilation] = weight.swapaxes(2, 3)
    return result.reshape(o, i, -1, kw)
