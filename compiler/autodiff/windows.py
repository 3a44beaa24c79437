"""Adjoints of convolutions and pools.

What a window sees is a selection along rows and one along columns, padding being outside; so the
adjoint of a pool is that of a selection (``moves``). That of a convolution in its data is a
convolution of the gradients, spread by the strides, with the weights turned around; in its weights
it is a convolution of the data with the gradients, in which images are channels, and strides are
dilations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vdla.compiler.autodiff.moves import returned, selected
from vdla.compiler.autodiff.rules import Gradients, rule
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.graph.ops.window import Windowed
from vdla.compiler.tracing.arrays import Array
from vdla.compiler.tracing.nodes import add, array
from vdla.compiler.tracing.shapes import SUM, broadcast_to, full_like, swapaxes, transpose

Tables = list[Sequence[int]]


def _tables(node: Windowed, kernel: Sequence[int], x: Array, y: Array) -> Tables:
    """Places along each axis of an image, of each place of a result and tap of its window."""
    tables: Tables = [range(x.shape[0]), range(x.shape[1])]
    for n in range(2):
        size = x.shape[2 + n]
        seen = (
            place * node.strides[n] + tap * node.dilations[n] - node.pads[n]
            for place in range(y.shape[2 + n])
            for tap in range(kernel[n])
        )
        tables.append([each if 0 <= each < size else OUTSIDE for each in seen])
    return tables


def _spread(values: Array, kernel: Sequence[int]) -> Array:
    """Values of a result, each at all taps of its window: [N, C, OH, KH, OW, KW]."""
    n, c, h, w = values.shape
    return broadcast_to(values.reshape(n, c, h, 1, w, 1), (n, c, h, kernel[0], w, kernel[1]))


def _flat(values: Array) -> Array:
    n, c, h, kh, w, kw = values.shape
    return values.reshape(n, c, h * kh, w * kw)


@rule(ops.AvgPool)
def _avg_pool(node: ops.AvgPool, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    (data,) = x
    share = d / array(node.counts(data.shape).astype(d.dtype))
    tables = _tables(node, node.kernel, data, y)
    return [returned(_flat(_spread(share, node.kernel)), tables, data.shape)]


@rule(ops.MaxPool)
def _max_pool(node: ops.MaxPool, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    """To the largest element of each window; of equal ones each has its share."""
    (data,) = x
    tables = _tables(node, node.kernel, data, y)
    n, c, h, w = y.shape
    seen = selected(data, tables).reshape(n, c, h, node.kernel[0], w, node.kernel[1])
    inside = selected(array(np.ones(data.shape, d.dtype)), tables).reshape(*seen.shape)
    equal = (seen == _spread(y, node.kernel)).astype(d.dtype) * inside
    share = equal * _spread(d, node.kernel) / SUM(equal, axis=(3, 5), keepdims=True)
    return [returned(_flat(share), tables, data.shape)]


@rule(ops.Conv2d)
def _convolution(node: ops.Conv2d, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    data, weight, *bias = x
    sums = [SUM(d, axis=(0, 2, 3))] * len(bias)
    return [_of_data(node, data, weight, d), _of_weight(node, data, weight, d), *sums]


def _of_data(node: ops.Conv2d, data: Array, weight: Array, d: Array) -> Array:
    """Gradients that lie as far apart as windows, convolved with the weights turned around."""
    o, i, *kernel = weight.shape
    g, pads = node.groups, list[tuple[int, int]]()
    spread: Tables = [range(d.shape[0]), range(d.shape[1])]
    for n in range(2):
        size, reach = data.shape[2 + n], node.dilations[n] * (kernel[n] - 1)
        length = node.strides[n] * (d.shape[2 + n] - 1) + 1
        front = reach - node.pads[n]
        behind = size + reach - length - front  # so that as many places are left as rows of data
        table = [
            m // node.strides[n] if m % node.strides[n] == 0 else OUTSIDE for m in range(length)
        ]
        cut = max(-front, 0), max(-behind, 0)
        spread.append(table[cut[0] : length - cut[1]])
        pads.append((max(front, 0), max(behind, 0)))
    if not all(map(len, spread)):  # windows that see nothing but padding
        return full_like(data, 0)
    (top, bottom), (left, right) = pads
    turned = weight[:, :, ::-1, ::-1].reshape(g, o // g, i, *kernel)
    turned = swapaxes(turned, 1, 2).reshape(g * i, o // g, *kernel)
    fields = {
        "strides": (1, 1), "dilations": node.dilations, "pads": (top, left, bottom, right),
        "groups": g,
    }  # fmt: skip
    return _convolved(selected(d, spread), turned, fields)


def _of_weight(node: ops.Conv2d, data: Array, weight: Array, d: Array) -> Array:
    """The data convolved with the gradients: images are channels, and channels are images."""
    _, i, *kernel = weight.shape
    count, g = data.shape[0], node.groups
    images = data.reshape(count, g, i, *data.shape[2:])
    images = transpose(images, [2, 1, 0, 3, 4]).reshape(i, g * count, *data.shape[2:])
    fields = {
        "strides": node.dilations, "dilations": node.strides, "pads": node.pads, "groups": g,
    }  # fmt: skip
    sums = _convolved(images, swapaxes(d, 0, 1), fields)  # [I, O, taps and what is left over]
    return swapaxes(sums[:, :, : kernel[0], : kernel[1]], 0, 1)


def _convolved(data: Array, weight: Array, fields: dict[str, object]) -> Array:
    return add("convolved", ops.Conv2d, [data, weight], str(data.dtype), **fields)
