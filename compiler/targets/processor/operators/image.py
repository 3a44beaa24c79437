"""Images in blocks of channels: what all convolutions of a processor share.

A convolution whose result lies in channel blocks, [N, O/l, OH, OW, l], computes the l channels of a
block at once, some places of the image at a time. Here are the sizes of such tiles, the padded copy
of the data that they read, and how integer sums become int8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import clipped, inside, requantized
from vdla.compiler.graph.ir import Known, Recipe
from vdla.compiler.graph.numbers import pack_scales
from vdla.compiler.graph.ops.conv2d import AnyConv2d, Conv2d, QConv2d
from vdla.compiler.graph.types import Array, Pair, Shape, TensorType
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.targets.processor.operators.nests import in_registers
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr, Var
from vdla.support.numbers import ceil_div

MOST_PLACES = 14  # of an image, whose sums a tile of registers has
EXACT = 1 << 29  # sums below it times 24 bits are exact in float64
EXACT_FLOAT = 1 << 24  # sums below it are exact in float32
WHOLE = 1.5 * 2**23  # float32 has no bits for a fraction from 2**23 to 2**24
INT32 = 2.0**31 - 256  # below it, no zero point makes an int32 overflow

Place = Callable[..., Expr]  # of n, block, y, x, channel in the block


def float_parameters(conv: Conv2d, recipe: Recipe) -> tuple[Array, Array]:
    """The weights [O, I/groups, KH, KW] and the bias [O] of a convolution of floats; 0 where it has
    no bias."""
    weight = recipe.value(conv.weight)
    assert weight is not None
    bias = recipe.value(conv.bias) if conv.bias is not None else None
    return weight, np.zeros(len(weight), np.float32) if bias is None else bias


def integer_parameters(conv: QConv2d, recipe: Recipe) -> tuple[Array, Array]:
    """The weights [O, I/groups, KH, KW] and the bias [O] of a convolution of int8."""
    weight, bias = recipe.value(conv.weight), recipe.value(conv.bias)
    assert weight is not None
    assert bias is not None
    return weight, bias


def divisor(size: int, most: int) -> int:
    """The largest divisor of ``size`` that is at most ``most``."""
    return next(d for d in range(min(size, max(most, 1)), 0, -1) if size % d == 0)


def block_for(
    conv: AnyConv2d, operands: Sequence[TensorType], known: Known, sizes: Sequence[int]
) -> int:
    """The first of some block sizes that a convolution can compute its output channels in.

    Returns:
        0 where there is none, weights aren't known at compile time, or a residual lies otherwise.
    """
    parameters = [name for name in (conv.weight, conv.bias) if name is not None]
    if not all(name in known for name in parameters):
        return 0
    channels = operands[1].shape[0]
    block = next((size for size in sizes if channels % size == 0), 0)
    others = list(zip(conv.inputs, operands, strict=True))[1:]  # the data may be an addend, too
    beside = (kind for name, kind in others if name not in conv.parameters)
    return 0 if any(kind.block != block for kind in beside) else block


def is_depthwise(conv: AnyConv2d, data: Shape, weight: Shape) -> bool:
    """Whether every channel of the result is made of one channel of the data alone."""
    return weight[1] == 1 and conv.groups == data[1] == weight[0]


# Tiles ------------------------------------------------------------------------------------------


def tile_of_image(rows: int, columns: int) -> Pair:
    """Rows and columns of a tile: at most MOST_PLACES places, of similar size over the image."""
    wide = even_part(columns, MOST_PLACES)
    return even_part(rows, MOST_PLACES // wide), wide


def whole_tiles(rows: int, columns: int) -> Pair:
    """The size of an image rounded up to a whole number of tiles."""
    high, wide = tile_of_image(rows, columns)
    return ceil_div(rows, high) * high, ceil_div(columns, wide) * wide


def even_part(size: int, most: int) -> int:
    """The size of each part where ``size`` is cut into as few parts of at most ``most`` as can
    be."""
    return ceil_div(size, ceil_div(size, most))


def places_of_a_tile(height: int, width: int, registers: int) -> Pair:
    """Rows and columns of a tile of an image of whole tiles: they divide it, and leave registers
    for two blocks of channels where that is possible."""
    high, wide = tile_of_image(height, width)
    most = min(MOST_PLACES, registers // 2 - 2)
    wide = divisor(wide, most)
    return divisor(high, most // wide), wide


def sums_shape(conv: AnyConv2d, recipe: Recipe, lanes: int) -> Shape:
    """[N, O/l, H, W, l] of a convolution's sums, H and W whole tiles, O whole vectors."""
    n, o, oh, ow = recipe.shape(conv.output)
    return (n, ceil_div(o, lanes), *whole_tiles(oh, ow), lanes)


@dataclass(frozen=True)
class TileLoops:
    """The loops of a result [N, O/l, H, W, l] that is computed tile by tile.

    ``n``, ``blocks``, ``band``, ``y`` and ``x`` go over images, groups of blocks, bands of rows,
    and the tiles of a band; the loops inside them are unrolled, the last one is a vector.
    """

    n: Var
    blocks: Var
    band: Var
    y: Var
    x: Var


def tile_result(
    out: Stage, places: Pair, blocks: int, rows: int, *, blocks_first: bool = False
) -> TileLoops:
    """Splits the loops of a result into tiles.

    Args:
        out: the stage of the result.
        places: rows and columns of a tile.
        blocks: blocks of channels of a tile.
        rows: rows of tiles of a band.
        blocks_first: whether the loop over blocks is outside that over bands.
    """
    high, wide = places
    n, o, y, x, l = out.axis
    oo, oi = out.split(o, factor=blocks)
    xo, xi = out.split(x, factor=wide)
    yo, yi = out.split(y, factor=high)
    band, yo = out.split(yo, factor=rows)
    outer = [n, oo, band] if blocks_first else [n, band, oo]
    in_registers(out, [*outer, yo, xo], [yi, xi, oi], l)
    return TileLoops(n, oo, band, yo, xo)


# Data -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """Conversion by which a convolution reads an element of its data, and the value of padding."""

    convert: Callable[[Expr], Expr]
    outside: Expr
    converts: bool

    @staticmethod
    def floats() -> Reading:
        """Floats as they are; padding is 0."""
        return Reading(lambda x: x, te.const(0.0, "float32"), converts=False)

    @staticmethod
    def centered(zero: int, dtype: str) -> Reading:
        """An int8 less its zero point, as another type; padding is 0."""
        return Reading(lambda x: (x.astype("int32") - zero).astype(dtype), te.const(0, dtype), True)

    @staticmethod
    def unsigned(zero: int) -> Reading:
        """128 more than an int8, as uint8; padding is the zero point."""
        outside = te.const(zero + 128, "uint8")
        return Reading(lambda x: (x.astype("int32") + 128).astype("uint8"), outside, True)


@dataclass(frozen=True)
class Data:
    """The data of a convolution: its element at n, block, y, x, channel of the block.

    ``padded`` is the stage [N, C/inner, H, W, inner] with a copy of it, where there is anything to
    move, to convert or to fill.
    """

    at: Place
    padded: Tensor | None


def read_data(conv: AnyConv2d, recipe: Recipe, inner: int, reading: Reading) -> Data:
    """A convolution's data in blocks of ``inner`` channels, as many columns as its tiles read."""
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

    lies_so = recipe.block(conv.data) == inner and not any(conv.pads)
    if lies_so and rows <= h and columns <= w and not reading.converts:
        return Data(lambda b, block, y, x, l: image(b, block * inner + l, y, x), None)
    padded = te.compute((n, ceil_div(c, inner), rows, columns, inner), value, "padded")
    return Data(lambda *i: padded[i], padded)


# Results ----------------------------------------------------------------------------------------


def int8_of_sums(conv: QConv2d, recipe: Recipe, sums: Place, *, fused: bool) -> Callable[..., Expr]:
    """The int8 value at n, block, y, x, channel of the block, of int32 or float32 ``sums`` there.

    ``fused``: one instruction of the processor multiplies and adds float32, rounding once.
    """
    weight, bias = integer_parameters(conv, recipe)
    most = largest_sum(weight, bias, conv.zeros[0])
    lanes = recipe.block(conv.output)
    scale = _scaled(recipe, lanes, pack_scales(conv.requant.scale), most, fused=fused)

    def value(b: Expr, c: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        return scale(sums(b, c, y, x, l), *conv.requant.limits, c, l)

    return value


def _scaled(
    recipe: Recipe, lanes: int, words: Array, most: int, *, fused: bool
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
    narrow = fused and most < EXACT_FLOAT and limit < WHOLE / 3
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


def largest_sum(weight: Array, bias: Array, zero: int) -> int:
    """A bound of ``|bias + Σ (x - zero) * weight|`` over all int8 x."""
    widest = max(127 - zero, zero + 128)
    sums = np.abs(weight.astype(np.int64)).sum(axis=tuple(range(1, weight.ndim)))
    return int((sums * widest + np.abs(bias.astype(np.int64))).max())
