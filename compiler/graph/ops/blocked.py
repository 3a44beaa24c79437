"""Convolutions and dense layers with output channels in the lanes of vectors.

A convolution whose result lies in channel blocks, [N, O/l, OH, OW, l], computes the l channels of a
block at once: each input element is multiplied with l weights that lie side by side. The weights
are rearranged at compile time (Georganas et al., "Anatomy of High-Performance Deep Learning
Convolutions on SIMD Architectures", SC'18).

On integers four input channels are one step: data as uint8, 128 more than the int8 they were, times
int8 weights. What is too much, 128 and the zero point times the sum of a channel's weights, is
taken off the bias. Padding is the zero point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import KEPT, clipped, inside, requantized
from vdla.compiler.graph.ir import Array, Pads, Pair, Recipe, Shape
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

MOST_PLACES = 14  # of an image, whose sums a tile of registers has
WORD = 4  # channels that one step takes of integers
EXACT = 1 << 29  # sums below it times 24 bits are exact in float64
EXACT_FLOAT = 1 << 24  # sums below it are exact in float32
WHOLE = 1.5 * 2**23  # float32 has no bits for a fraction from 2**23 to 2**24
INT32 = 2.0**31 - 256  # below it, no zero point makes an int32 overflow

Place = Callable[..., Expr]  # of n, block, y, x, channel in the block


class Convolution(Protocol):
    """What a convolution reads and writes, and where its window goes."""

    @property
    def data(self) -> str:
        """The image."""

    @property
    def weight(self) -> str:
        """[O, I/groups, KH, KW], a constant."""

    @property
    def output(self) -> str:
        """What it writes."""

    @property
    def strides(self) -> Pair:
        """Down and across."""

    @property
    def pads(self) -> Pads:
        """Top, left, bottom, right."""

    @property
    def dilations(self) -> Pair:
        """Down and across."""

    @property
    def groups(self) -> int:
        """Of channels, which see each other alone."""


def divisor(size: int, most: int) -> int:
    """The largest divisor of ``size`` that is at most ``most``."""
    return next(d for d in range(min(size, max(most, 1)), 0, -1) if size % d == 0)


def tile_of_image(rows: int, columns: int) -> Pair:
    """Rows and columns of a tile: at most MOST_PLACES places, alike in size over the image."""
    wide = _alike(columns, MOST_PLACES)
    return _alike(rows, MOST_PLACES // wide), wide


def whole_tiles(rows: int, columns: int) -> Pair:
    """The size of an image up to a whole number of tiles."""
    high, wide = tile_of_image(rows, columns)
    return -(-rows // high) * high, -(-columns // wide) * wide


def _alike(size: int, most: int) -> int:
    """The size of as few parts as there can be of at most ``most``."""
    return -(-size // -(-size // most))


def can_block(conv: Convolution, data: Shape, weight: Shape, lanes: int) -> bool:
    """Whether a convolution of data and weights of these shapes can compute blocks of ``lanes``."""
    return weight[0] % lanes == 0 and (conv.groups == 1 or _depthwise(conv, data, weight))


def _depthwise(conv: Convolution, data: Shape, weight: Shape) -> bool:
    return weight[1] == 1 and conv.groups == data[1] == weight[0]


@dataclass(frozen=True)
class Reading:
    """How a convolution reads an element of its data: as what, and what padding is."""

    convert: Callable[[Expr], Expr]
    outside: Expr
    converts: bool

    @staticmethod
    def floats() -> Reading:
        """As it is."""
        return Reading(lambda x: x, te.const(0.0, "float32"), converts=False)

    @staticmethod
    def centered(zero: int, dtype: str) -> Reading:
        """An int8 less its zero point, as another type."""
        return Reading(lambda x: (x.astype("int32") - zero).astype(dtype), te.const(0, dtype), True)

    @staticmethod
    def unsigned(zero: int) -> Reading:
        """128 more than an int8."""
        outside = te.const(zero + 128, "uint8")
        return Reading(lambda x: (x.astype("int32") + 128).astype("uint8"), outside, True)


def float_sums(conv: Convolution, recipe: Recipe, bias: str | None) -> Tensor:
    """[N, O/l, H, W, l]: bias + Σ data * weight in float32, H and W whole tiles."""
    values = recipe.value(bias) if bias is not None else None
    weight = recipe.value(conv.weight)
    assert weight is not None
    start = np.zeros(len(weight), np.float32) if values is None else values
    if _depthwise(conv, recipe.shape(conv.data), weight.shape):
        return _taps(conv, recipe, weight, start, Reading.floats())
    i = weight.shape[1]
    inner = recipe.block(conv.data) or i
    return _dots(conv, recipe, _split(recipe, conv, weight, inner), start, Reading.floats())


def integer_sums(conv: Convolution, recipe: Recipe, bias: Array, zero: int) -> Tensor:
    """[N, O/l, H, W, l]: bias + Σ (data - zero) * weight, H and W whole tiles.

    In int32; a depthwise convolution's in float32 where they are exact.
    """
    weight = recipe.value(conv.weight)
    assert weight is not None
    if _depthwise(conv, recipe.shape(conv.data), weight.shape):
        if most_of(weight, bias, zero) < EXACT_FLOAT:  # float32 multiplies and adds at once
            reals, start = weight.astype(np.float32), bias.astype(np.float32)
            return _taps(conv, recipe, reals, start, Reading.centered(zero, "float32"))
        return _taps(conv, recipe, weight.astype(np.int16), bias, Reading.centered(zero, "int16"))
    more = (zero + 128) * weight.astype(np.int64).sum(axis=(1, 2, 3))
    start = (bias - more).astype(np.int32)  # of sums that fit in int32 modulo 2**32
    inner = recipe.block(conv.data) or -(-weight.shape[1] // WORD) * WORD
    split = _split(recipe, conv, weight, inner)  # [O/l, I/inner, KH, KW, inner, l]
    words = split.reshape(*split.shape[:4], inner // WORD, WORD, split.shape[-1])
    table = np.ascontiguousarray(words.swapaxes(-1, -2))
    return _dots(conv, recipe, table, start, Reading.unsigned(zero))


def _split(recipe: Recipe, conv: Convolution, weight: Array, inner: int) -> Array:
    """[O/l, I/inner, KH, KW, inner, l]; input channels up to a multiple of ``inner`` are 0."""
    o, i, kh, kw = weight.shape
    lanes, blocks = recipe.block(conv.output), -(-i // inner)
    whole = np.zeros((o, blocks * inner, kh, kw), weight.dtype)
    whole[:, :i] = weight
    split = whole.reshape(o // lanes, lanes, blocks, inner, kh, kw)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 3, 1))


def _taps(conv: Convolution, recipe: Recipe, weight: Array, bias: Array, read: Reading) -> Tensor:
    """The sums of a depthwise convolution."""
    o, _, kh, kw = weight.shape
    lanes, kind = recipe.block(conv.output), str(bias.dtype)
    taps = weight.reshape(o // lanes, lanes, kh, kw).transpose(0, 2, 3, 1)
    table = recipe.constant("weight", np.ascontiguousarray(taps))
    start = recipe.constant("bias", bias.reshape(-1, lanes))
    data = _padded(conv, recipe, lanes, read)
    ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
    (sh, sw), (dh, dw) = conv.strides, conv.dilations

    def tap(b: Expr, c: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        seen = data(b, c, y * sh + ry * dh, x * sw + rx * dw, l)
        product = seen.astype(kind) * table[c, ry, rx, l].astype(kind)
        return te.sum(product, axis=[ry, rx], init=start[c, l])

    return te.compute(_sums_shape(conv, recipe), tap, "acc")


def _dots(conv: Convolution, recipe: Recipe, weight: Array, bias: Array, read: Reading) -> Tensor:
    """The sums of a convolution over all channels.

    ``weight`` is [O/l, I/inner, KH, KW, inner, l], or of words [O/l, I/inner, KH, KW, inner/4, l,
    4].
    """
    _, blocks, kh, kw, *rest = weight.shape
    lanes, kind = recipe.block(conv.output), str(bias.dtype)
    words = len(rest) == 3
    table = recipe.constant("weight", weight)
    start = recipe.constant("bias", bias.reshape(-1, lanes))
    data = _padded(conv, recipe, rest[0] * WORD if words else rest[0], read)
    ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
    rc, rl = te.reduce_axis((0, blocks), "rc"), te.reduce_axis((0, rest[0]), "rl")
    rk = [te.reduce_axis((0, WORD), "rk")] if words else []
    (sh, sw), (dh, dw) = conv.strides, conv.dilations

    def dot(b: Expr, c: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        channel = rl * WORD + rk[0] if rk else rl
        seen = data(b, rc, y * sh + ry * dh, x * sw + rx * dw, channel)
        product = seen.astype(kind) * table[(c, rc, ry, rx, rl, l, *rk)].astype(kind)
        return te.sum(product, axis=[rc, ry, rx, rl, *rk], init=start[c, l])

    return te.compute(_sums_shape(conv, recipe), dot, "acc")


def _sums_shape(conv: Convolution, recipe: Recipe) -> Shape:
    n, o, oh, ow = recipe.shape(conv.output)
    lanes = recipe.block(conv.output)
    return (n, o // lanes, *whole_tiles(oh, ow), lanes)


def _padded(conv: Convolution, recipe: Recipe, inner: int, reading: Reading) -> Place:
    """The data at n, block, y, x, channel of the block, of as many columns as the tiles see.

    A stage of its own, [N, C/inner, H, W, inner], where there is anything to move, to convert or
    to fill.
    """
    n, c, h, w = recipe.shape(conv.data)
    _, _, kh, kw = recipe.shape(conv.weight)
    _, _, oh, ow = recipe.shape(conv.output)
    image, (top, left, _, _) = recipe.image(conv.data), conv.pads
    down, across = whole_tiles(oh, ow)
    rows = (down - 1) * conv.strides[0] + (kh - 1) * conv.dilations[0] + 1
    columns = (across - 1) * conv.strides[1] + (kw - 1) * conv.dilations[1] + 1

    def value(b: Expr, block: Expr, y: Expr, x: Expr, channel: Expr) -> Expr:
        real = reading.convert(image(b, block * inner + channel, y - top, x - left))
        within = [inside(y - top, h), inside(x - left, w)]
        if c % inner:
            within.append(block * inner + channel < c)
        return te.select(te.all(*within), real, reading.outside)

    there = recipe.block(conv.data) == inner and not any(conv.pads) and rows <= h and columns <= w
    if there and not reading.converts:
        return lambda b, block, y, x, l: image(b, block * inner + l, y, x)
    padded = te.compute((n, -(-c // inner), rows, columns, inner), value, KEPT)
    return lambda *i: padded[i]


def scaled(
    recipe: Recipe, lanes: int, words: Array, most: int
) -> Callable[[Expr, int, int, int, Expr, Expr], Expr]:
    """``clip(rq(acc, word) + zero, low, high)`` as int8: of acc, zero, low, high, block, channel.

    How it is rounded depends on what sums of at most ``most`` times a scale of 24 bits can become.
    Where float32 has the sums, one instruction multiplies them and adds a number so large that no
    bits are left for a fraction: it rounds once, half to even, as ``rq`` does. Where float64 has
    the products, it rounds them. Others take ``rq`` itself.
    """
    mantissa, shift = words.astype(np.int64) & 0xFFFFFF, (words.astype(np.int64) >> 24) & 63
    reals = np.ldexp(mantissa.astype(np.float64), -shift)
    limit = most * float(reals.max())
    if most >= EXACT or limit >= INT32:
        table = recipe.constant("scale", words.reshape(-1, lanes))
        return lambda acc, zero, low, high, c, l: requantized(acc, table[c, l], zero, low, high)
    narrow = recipe.fused and most < EXACT_FLOAT and limit < WHOLE / 3
    kind = "float32" if narrow else "float64"
    factors = recipe.constant("scale", reals.astype(kind).reshape(-1, lanes))
    whole = te.const(WHOLE, "float32")

    def value(acc: Expr, zero: int, low: int, high: int, c: Expr, l: Expr) -> Expr:
        if narrow:
            near = te.fma(acc.astype(kind), factors[c, l], whole) - whole
        else:
            near = te.rint(acc.astype(kind) * factors[c, l])
        return clipped(near.astype("int32"), zero, low, high)

    return value


def most_of(weight: Array, bias: Array, zero: int) -> int:
    """What no sum of ``bias + Σ (x - zero) * weight`` over int8 goes beyond."""
    widest = max(127 - zero, zero + 128)
    sums = np.abs(weight.astype(np.int64)).sum(axis=tuple(range(1, weight.ndim)))
    return int((sums * widest + np.abs(bias.astype(np.int64))).max())
