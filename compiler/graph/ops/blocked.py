"""Float convolutions and dense layers with output channels in the lanes of vectors.

A convolution whose result lies in channel blocks, [N, O/l, OH, OW, l], computes the l channels of a
block at once: each input element is multiplied with l weights that lie side by side. The weights
are rearranged at compile time (Georganas et al., "Anatomy of High-Performance Deep Learning
Convolutions on SIMD Architectures", SC'18).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import KEPT, inside
from vdla.compiler.graph.ir import Recipe, Shape
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

if TYPE_CHECKING:
    from vdla.compiler.graph.ops.conv2d import Conv2d

MOST_COLUMNS = 14  # of an image's row, that a tile of registers has


def whole_tiles(width: int) -> int:
    """The width up to a whole number of tiles, of at most MOST_COLUMNS columns, alike in size."""
    tiles = -(-width // MOST_COLUMNS)
    return tiles * -(-width // tiles)


def can_block(conv: Conv2d, data: Shape, weight: Shape, lanes: int) -> bool:
    """Whether a convolution of data and weights of these shapes can compute blocks of ``lanes``."""
    c, (o, i, _, _) = data[1], weight
    depthwise = i == 1 and conv.groups == c == o
    return o % lanes == 0 and (conv.groups == 1 or depthwise)


def blocked_sums(conv: Conv2d, recipe: Recipe) -> Tensor:
    """[N, O/l, OH, W, l]: bias + Σ data * weight, W a whole number of tiles."""
    n, _, oh, ow = recipe.shape(conv.output)
    lanes, wide = recipe.block(conv.output), whole_tiles(ow)
    o, i, kh, kw = recipe.shape(conv.weight)
    weight = recipe.value(conv.weight)
    assert weight is not None
    ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
    (sh, sw), (dh, dw) = conv.strides, conv.dilations
    start = _bias(conv, recipe, lanes)
    if conv.groups > 1:
        data = _padded(conv, recipe, lanes, wide)
        taps = weight.reshape(o // lanes, lanes, kh, kw).transpose(0, 2, 3, 1)
        table = recipe.constant("weight", np.ascontiguousarray(taps))

        def tap(b: Expr, c: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
            seen = data(b, c, y * sh + ry * dh, x * sw + rx * dw, l)
            return te.sum(seen * table[c, ry, rx, l], axis=[ry, rx], init=start(c, l))

        return te.compute((n, o // lanes, oh, wide, lanes), tap, "acc")
    inner = recipe.block(conv.data) or i
    data = _padded(conv, recipe, inner, wide)
    split = weight.reshape(o // lanes, lanes, i // inner, inner, kh, kw)
    table = recipe.constant("weight", np.ascontiguousarray(split.transpose(0, 2, 4, 5, 3, 1)))
    rc, rl = te.reduce_axis((0, i // inner), "rc"), te.reduce_axis((0, inner), "rl")

    def dot(b: Expr, c: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        seen = data(b, rc, y * sh + ry * dh, x * sw + rx * dw, rl)
        product = seen * table[c, rc, ry, rx, rl, l]
        return te.sum(product, axis=[rc, ry, rx, rl], init=start(c, l))

    return te.compute((n, o // lanes, oh, wide, lanes), dot, "acc")


def _bias(conv: Conv2d, recipe: Recipe, lanes: int) -> Callable[[Expr, Expr], Expr]:
    """The bias of a channel of a block."""
    value = recipe.value(conv.bias) if conv.bias is not None else None
    if value is None:
        zero = te.const(0.0, "float32")
        return lambda c, l: zero
    table = recipe.constant("bias", value.reshape(-1, lanes))
    return lambda c, l: table[c, l]


def _padded(conv: Conv2d, recipe: Recipe, inner: int, wide: int) -> Callable[..., Expr]:
    """The data at n, block, y, x, channel of the block, of as many columns as the tiles see.

    A stage of its own, [N, C/inner, H, W, inner], where there is anything to move or to fill.
    """
    n, c, h, w = recipe.shape(conv.data)
    _, _, kh, kw = recipe.shape(conv.weight)
    oh = recipe.shape(conv.output)[2]
    image, (top, left, _, _) = recipe.image(conv.data), conv.pads
    rows = (oh - 1) * conv.strides[0] + (kh - 1) * conv.dilations[0] + 1
    columns = (wide - 1) * conv.strides[1] + (kw - 1) * conv.dilations[1] + 1

    def value(b: Expr, block: Expr, y: Expr, x: Expr, channel: Expr) -> Expr:
        real = image(b, block * inner + channel, y - top, x - left)
        within = te.all(inside(y - top, h), inside(x - left, w))
        return te.select(within, real, te.const(0.0, "float32"))

    if recipe.block(conv.data) == inner and not any(conv.pads) and columns <= w:
        return lambda b, block, y, x, l: image(b, block * inner + l, y, x)
    padded = te.compute((n, c // inner, rows, columns, inner), value, KEPT)
    return lambda *i: padded[i]


def dense_in_lanes(recipe: Recipe, data: str, weight: str, bias: str | None) -> Tensor:
    """[N, O]: bias + Σ data * weight, computed in blocks of as many outputs as lanes."""
    n, i = recipe.shape(data)[:2]
    values, lanes = recipe.value(weight), recipe.lanes
    assert values is not None
    o = len(values)
    blocks = -(-o // lanes)
    padded = np.zeros((blocks * lanes, i), values.dtype)
    padded[:o] = values
    split = padded.reshape(blocks, lanes, i).transpose(0, 2, 1)
    table = recipe.constant("weight", np.ascontiguousarray(split))
    rows, r = recipe.read(data, (n, i)), te.reduce_axis((0, i), "r")
    acc = te.compute(
        (n, blocks, lanes), lambda b, c, l: te.sum(rows[b, r] * table[c, r, l], axis=r), "acc"
    )
    start = recipe.read(bias) if bias is not None else None

    def value(b: Expr, c: Expr) -> Expr:
        total = acc[b, te.floordiv(c, lanes), te.floormod(c, lanes)]
        return total if start is None else total + start[c]

    return te.compute((n, o), value, "out")
