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
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.targets.processor.operators.tiles import READ, Tiling, best_tiling
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.support.numbers import ceil_div

EXACT = 1 << 29  # sums below it times 24 bits are exact in float64
EXACT_FLOAT = 1 << 24  # sums below it are exact in float32
WHOLE = 1.5 * 2**23  # float32 has no bits for a fraction from 2**23 to 2**24
FEW_CHANNELS = 8  # of which rows are copied as they lie, and not channel beside channel
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


def even_part(size: int, most: int) -> int:
    """The size of each part where ``size`` is cut into as few parts of at most ``most`` as can
    be."""
    return ceil_div(size, ceil_div(size, most))


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


# Places -----------------------------------------------------------------------------------------


def tiling_of(conv: AnyConv2d, recipe: Recipe, lanes: int, registers: int) -> Tiling:
    """The tiles of a convolution's result, whose sums lie in vectors of ``lanes`` channels."""
    _, channels, rows, columns = recipe.shape(conv.output)
    weight = recipe.shape(conv.weight)
    pointwise = [*weight[2:], *conv.strides] == [1] * 4 and not any(conv.pads)
    if is_depthwise(conv, recipe.shape(conv.data), weight):
        image = rows, columns
        return best_tiling(image, 1, registers, pointwise=pointwise, weight_read=READ)
    blocks = ceil_div(channels, lanes)
    return best_tiling((rows, columns), blocks, registers, pointwise=pointwise)


def sums_shape(conv: AnyConv2d, recipe: Recipe, lanes: int, tiling: Tiling) -> Shape:
    """[N, O/l, H, W, l] of a convolution's sums, H and W whole tiles, O whole vectors."""
    n, o, _, _ = recipe.shape(conv.output)
    return (n, ceil_div(o, lanes), *tiling.whole, lanes)


def image_of_sums(conv: AnyConv2d, recipe: Recipe, sums: Tensor, tiling: Tiling) -> Place:
    """The sum at n, block, y, x, channel of the block of the result's image."""
    image = recipe.shape(conv.output)[2:]
    if tiling.grid == image:
        return lambda *i: sums[i]
    place = _moved(image, tiling.grid)
    return lambda b, block, y, x, l: sums[b, block, *place(y, x), l]


def _moved(source: Shape, target: Shape) -> Callable[[Expr, Expr], tuple[Expr, Expr]]:
    """The row and column in one image of a place in another, which has the same places in rows of
    another length."""
    columns, width = source[1], target[1]

    def place(y: Expr, x: Expr) -> tuple[Expr, Expr]:
        number = y * columns + x
        return te.floordiv(number, width), te.floormod(number, width)

    return place


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

    ``source`` is what has it: ``padded``, the stage [N, C/inner, H, W, inner] or [N, C/inner,
    inner, H, W] with a copy of it, where there is anything to move, to convert or to fill, or the
    convolution's own operand.
    """

    at: Place
    source: Tensor
    padded: Tensor | None


def read_data(
    conv: AnyConv2d,
    recipe: Recipe,
    inner: int,
    reading: Reading,
    tiling: Tiling,
    *,
    in_rows: bool = False,
) -> Data:
    """A convolution's data in blocks of ``inner`` channels, as many columns as its tiles read.

    ``in_rows``: a copy has rows of single channels, which are read element by element.
    """
    n, c, h, w = recipe.shape(conv.data)
    _, _, kh, kw = recipe.shape(conv.weight)
    top, left, _, _ = conv.pads
    down, across = tiling.whole
    rows = (down - 1) * conv.strides[0] + (kh - 1) * conv.dilations[0] + 1
    columns = (across - 1) * conv.strides[1] + (kw - 1) * conv.dilations[1] + 1
    lies_so = recipe.block(conv.data) == inner and not any(conv.pads)
    own = tiling.grid == recipe.shape(conv.output)[2:]
    size = (h, w) if own else tiling.grid  # of an image that has the data's places in other rows
    place = _moved(size, (h, w))
    if lies_so and rows <= size[0] and columns <= size[1] and not reading.converts:
        data = recipe.read(conv.data)
        if own:
            return Data(lambda *i: data[i], data, None)
        return Data(lambda b, block, y, x, l: data[b, block, *place(y, x), l], data, None)
    image = recipe.image(conv.data)

    def value(b: Expr, block: Expr, y: Expr, x: Expr, channel: Expr) -> Expr:
        row, column = y - top, x - left
        at = (row, column) if own else place(row, column)
        real = reading.convert(image(b, block * inner + channel, *at))
        within = [inside(row, size[0]), inside(column, size[1])]
        if c % inner:
            within.append(block * inner + channel < c)
        return te.select(te.all(*within), real, reading.outside)

    blocks = ceil_div(c, inner)
    if in_rows:
        padded = te.compute(
            (n, blocks, inner, rows, columns), lambda b, o, l, y, x: value(b, o, y, x, l), "padded"
        )
        return Data(lambda b, o, y, x, l: padded[b, o, l, y, x], padded, padded)
    padded = te.compute((n, blocks, rows, columns, inner), value, "padded")
    return Data(lambda *i: padded[i], padded, padded)


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
