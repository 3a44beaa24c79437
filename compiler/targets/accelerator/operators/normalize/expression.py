"""The expression of a normalization: moments of each pixel, then its channels one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.graph.ops.normalize import FINE, Moments
from vdla.compiler.graph.ops.wide import BYTE_BITS
from vdla.compiler.graph.ops.wide_normalize import WideMoments
from vdla.compiler.targets.accelerator.description import Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.operators.normalize.space import NormalizeSizes
from vdla.compiler.targets.accelerator.operators.stages import Steps
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.numbers import MANTISSA_BITS
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class NormalizeTensors:
    """The tensors of the expression.

    ``moments`` are made for each block of pixels, ``terms`` for each channel, and ``steps`` for
    both, all with their instructions, the last one first. ``below`` comes before the steps, of 16
    bits in three parts, the last one first; ``products`` before the moments but the first, each of
    ``pixels`` of its own. ``tiles`` are pixels as weights: of 16 bits low bytes, then high ones.
    """

    data: Tensor
    constants: dict[str, Tensor]
    tiles: list[Tensor]
    pixels: list[Tensor]
    products: list[Tensor]
    below: list[Tensor]
    moments: Steps
    terms: Steps
    steps: Steps
    out: Tensor

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order of the function's parameters."""
        return [self.data, *self.constants.values()]


def expression(shape: NormalizeSizes, config: Config) -> NormalizeTensors:
    """The expression of a normalization."""
    ins, lanes = intrinsics(config), config.channel_block
    inputs, blocks = ceil_div(shape.channels, lanes), ceil_div(shape.pixels, lanes)
    # Rows of pixels by image and channel block; the last tile of each ends behind its rows.
    count = 2 if shape.bytes else 1  # images of one: its bytes
    rows = count * shape.batch * inputs * shape.pixels + -shape.pixels % lanes
    data = te.placeholder((rows, lanes), "int8", "data")
    constants = _constants(shape, lanes)

    def lanes_of(name: str, number: int) -> Tensor:
        """The pixels of an image, or of one of its two bytes."""

        def pixel(n: Expr, c: Expr, w: Expr, l: Expr, i: Expr) -> Expr:
            first = (n * count + number) * inputs
            return data[(first + c) * shape.pixels + w * lanes + l, i]

        return te.compute((shape.batch, inputs, blocks, lanes, lanes), pixel, name)

    tiles = [lanes_of(f"tiles{number}", number) for number in range(count)]
    pixels = [lanes_of(f"pixels{at}", number) for at, (number, _) in enumerate(_pairs(shape))]
    mean, root, products, moments = _moments(shape, constants, tiles, pixels, ins)
    weights = constants["weights"]
    j, k = (te.reduce_axis((0, lanes), name) for name in "jk")
    result = shape.batch, blocks, shape.channels, lanes

    def digit(of: Tensor, c: Expr, l: Expr, i: Expr) -> Expr:
        return of[c, i].astype("int32") * weights[0, l, i].astype("int32")

    factors = te.compute(
        (shape.channels, lanes),
        lambda c, l: te.sum(digit(constants["factor"], c, l, j), axis=j),
        "factors",
    )
    below = _below(result, constants, tiles, mean)
    last = below[0]
    times = te.compute(result, lambda n, w, c, l: last[n, w, c, l] * factors[c, l], "times")
    above = te.compute(result, lambda n, w, c, l: te.rq(times[n, w, c, l], root[n, w, l]), "above")
    moved = te.compute(
        result,
        lambda n, w, c, l: te.sum(
            digit(constants["offset"], c, l, k), axis=k, init=above[n, w, c, l]
        ),
        "moved",
    )
    steps = [(moved, ins.gemm), (above, ins.alu_scale), (times, ins.alu_mul)]
    if shape.is_wide:
        out = _limited(moved, shape, ins, steps)
    else:
        limits, scale = (shape.zero, shape.low, shape.high), constants["scale"]
        out = te.compute(
            result,
            lambda *at: te.requantize(moved[at], scale[0, at[-1]], *limits).astype("int8"),
            "out",
        )
    terms = [(factors, ins.gemm_zero)]
    inner = products, below, moments, terms, steps
    return NormalizeTensors(data, constants, tiles, pixels, *inner, out)


def _below(
    dims: tuple[int, ...], constants: Mapping[str, Tensor], tiles: Sequence[Tensor], mean: Tensor
) -> list[Tensor]:
    """The channels below their mean, picked by unit vectors; of bytes the low ones, then twice the
    high ones, by half of what they count: the last part first."""
    lanes = dims[-1]

    def part(name: str, units: Tensor, tile: Tensor, before: Tensor | None) -> Tensor:
        i = te.reduce_axis((0, lanes), f"i_{name}")

        def picked(n: Expr, w: Expr, c: Expr, l: Expr) -> Expr:
            unit = units[te.floormod(c, lanes), i].astype("int32")
            channel = tile[n, te.floordiv(c, lanes), w, l, i].astype("int32")
            start = mean[n, w, l] if before is None else before[n, w, c, l]
            return te.sum(unit * channel, axis=i, init=start)

        return te.compute(dims, picked, name)

    first = part("below", constants["units"], tiles[0], None)
    if len(tiles) == 1:
        return [first]
    half = part("below_half", constants["high_units"], tiles[1], first)
    return [part("below_all", constants["high_units"], tiles[1], half), half, first]


def _limited(moved: Tensor, shape: NormalizeSizes, ins: Intrinsics, steps: Steps) -> Tensor:
    """Numbers of 16 bits, as they are stored; their steps come first."""
    low, high, dims = te.const(shape.low), te.const(shape.high), moved.shape
    under = te.compute(dims, lambda *at: te.minimum(moved[at], high), "under")
    over = te.compute(dims, lambda *at: te.maximum(under[at], low), "over")
    steps[:0] = [(over, ins.alu_max_imm), (under, ins.alu_min_imm)]
    return te.compute(dims, lambda *at: over[at], "out")


def _constants(shape: NormalizeSizes, lanes: int) -> dict[str, Tensor]:
    """The placeholders of constants, by their names."""
    constants = {
        "factor": te.placeholder((shape.channels, lanes), "int8", "factor"),
        "offset": te.placeholder((shape.channels, lanes), "int8", "offset"),
        "weights": te.placeholder((1, lanes, lanes), "int8", "weights"),
    }
    if not shape.is_wide:
        constants["scale"] = te.placeholder((1, lanes), "int32", "scale")
    constants |= {
        "units": te.placeholder((lanes, lanes), "int8", "units"),
        "diagonal": te.placeholder((lanes, lanes), "int32", "diagonal", value_range=(0, 1)),
    }
    if shape.bytes:
        constants["high_units"] = te.placeholder((lanes, lanes), "int8", "high_units")
    if shape.centered or shape.in_zero:
        constants["ones"] = te.placeholder((1, lanes), "int8", "ones")
    return constants


def _pairs(shape: NormalizeSizes) -> Sequence[tuple[int, int]]:
    """The images of each product of two, as sums of squares have them: of 16 bits those of high
    bytes, of both, and of low ones."""
    return ((1, 1), (1, 0), (0, 0)) if shape.bytes else ((0, 0),)


def _moments(
    shape: NormalizeSizes,
    constants: Mapping[str, Tensor],
    tiles: Sequence[Tensor],
    pixels: Sequence[Tensor],
    ins: Intrinsics,
) -> tuple[Tensor, Tensor, list[Tensor], Steps]:
    """The mean of each pixel and its reciprocal root, the products that squares are taken of, and
    all that is computed for these."""
    batch, _, blocks, lanes, _ = tiles[0].shape
    made = _Moments((batch, blocks, lanes))
    products, sums = [], []
    for number, (left, (_, right)) in enumerate(zip(pixels, _pairs(shape), strict=True)):
        name = f"{number}" if shape.bytes else ""
        product, total = _squares(made, name, constants["diagonal"], (left, tiles[right]), ins)
        products.append(product)
        sums.append(total)
    if shape.bytes:
        mean, start = _wide_moments(shape, made, constants, tiles, sums, ins)
    else:
        mean, start = _narrow_moments(shape, made, constants, tiles[0], sums[0], ins)
    inverse = made.step("inverse", ins.alu_rsqrt, lambda *at: te.rsqrt(start[at]))
    root = made.plus("root", ins, inverse, -(shape.shift << MANTISSA_BITS))
    return mean, root, products, made.steps[::-1]


def _narrow_moments(
    shape: NormalizeSizes,
    made: _Moments,
    constants: Mapping[str, Tensor],
    tile: Tensor,
    squares: Tensor,
    ins: Intrinsics,
) -> tuple[Tensor, Tensor]:
    """The mean, and what the root is taken of, of int8."""
    m = Moments(shape.channels)
    if shape.centered or shape.in_zero:
        total = _total(made, "total", constants["ones"], tile, ins)
    if shape.centered:
        mean = made.scaled("mean", ins, total, m.mean)
        size = made.size(total, ins)
        part = made.power(size, m.excess, m.square, ins)
        high = made.raised("high", ins, squares, m.places)
        square = made.step("square", ins.alu_sub, lambda *at: high[at] - part[at])
        return mean, made.plus("start", ins, square, shape.epsilon)
    zero, sums = shape.in_zero, squares
    mean = made.step("mean", ins.alu_fill, lambda *at: te.const(FINE * zero))
    if zero:
        twice = made.step("twice", ins.alu_mul_imm, lambda *at: total[at] * te.const(-2 * zero))
        sums = made.step("sums", ins.alu_add, lambda *at: squares[at] + twice[at])
    high = made.raised("high", ins, sums, m.places)
    constant = (shape.channels * zero**2 << m.places) + shape.epsilon
    return mean, made.plus("start", ins, high, constant)


def _wide_moments(
    shape: NormalizeSizes,
    made: _Moments,
    constants: Mapping[str, Tensor],
    tiles: Sequence[Tensor],
    sums: Sequence[Tensor],
    ins: Intrinsics,
) -> tuple[Tensor, Tensor]:
    """The mean, and what the root is taken of, of 16 bits."""
    m = WideMoments(shape.channels)
    first, second, third = (
        made.raised(f"raised{number}", ins, each, by)
        for number, (each, by) in enumerate(zip(sums, m.shifts, strict=True))
    )
    both = made.step("both", ins.alu_add, lambda *at: first[at] + second[at])
    squares = made.step("all", ins.alu_add, lambda *at: both[at] + third[at])
    if not shape.centered:
        mean = made.step("mean", ins.alu_fill, lambda *at: te.const(0))
        return mean, made.plus("start", ins, squares, shape.epsilon)
    low, high = (
        _total(made, f"total{number}", constants["ones"], tile, ins)
        for number, tile in enumerate(tiles)
    )
    upper = made.raised("upper", ins, high, BYTE_BITS)
    total = made.step("total", ins.alu_add, lambda *at: upper[at] + low[at])
    mean = made.scaled("mean", ins, total, m.mean)
    size = made.raised("cut", ins, made.size(total, ins), -m.cut)
    part = made.power(size, m.excess, m.square, ins)
    square = made.step("square", ins.alu_sub, lambda *at: squares[at] - part[at])
    return mean, made.plus("start", ins, square, shape.epsilon)


def _total(made: _Moments, name: str, ones: Tensor, tiles: Tensor, ins: Intrinsics) -> Tensor:
    """The sum of each pixel's channels."""
    _, inputs, _, lanes, _ = tiles.shape
    c, i = (te.reduce_axis((0, size), f"{x}_{name}") for x, size in (("c", inputs), ("i", lanes)))

    def total(n: Expr, w: Expr, l: Expr) -> Expr:
        one, channel = ones[0, i].astype("int32"), tiles[n, c, w, l, i].astype("int32")
        return te.sum(one * channel, axis=[c, i])

    return made.step(name, ins.gemm_zero, total)


def _squares(
    made: _Moments, number: str, diagonal: Tensor, factors: tuple[Tensor, Tensor], ins: Intrinsics
) -> tuple[Tensor, Tensor]:
    """Products of a block's pixels, and the sum of each pixel's squares, on their diagonal."""
    pixels, tiles = factors
    batch, inputs, blocks, lanes, _ = tiles.shape
    d, j = te.reduce_axis((0, inputs), f"d{number}"), te.reduce_axis((0, lanes), f"j{number}")
    r, size = te.reduce_axis((0, lanes), f"r{number}"), (batch, blocks, lanes, lanes)

    def product(n: Expr, w: Expr, q: Expr, l: Expr) -> Expr:
        a, b = pixels[n, d, w, q, j].astype("int32"), tiles[n, d, w, l, j].astype("int32")
        return te.sum(a * b, axis=[d, j])

    products = te.compute(size, product, f"products{number}")
    own = made.step(
        f"own{number}", ins.alu_mul, lambda n, w, q, l: products[n, w, q, l] * diagonal[q, l], size
    )
    squares = made.step(
        f"squares{number}", ins.alu_add_reduce, lambda n, w, l: te.sum(own[n, w, r, l], axis=r)
    )
    return products, squares


class _Moments:
    """The steps of moments, in their order, each a tensor of ``shape`` with its instruction."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.steps = shape, Steps()

    def step(
        self,
        name: str,
        intrin: TensorIntrin,
        value: Callable[..., Expr],
        shape: tuple[int, ...] | None = None,
    ) -> Tensor:
        """One more."""
        tensor = te.compute(shape or self.shape, value, name)
        self.steps.append((tensor, intrin))
        return tensor

    def plus(self, name: str, ins: Intrinsics, x: Tensor, constant: int) -> Tensor:
        """``x`` and a constant, or ``x`` where that is zero."""
        number = te.const(constant)
        return self.step(name, ins.alu_add_imm, lambda *at: x[at] + number) if constant else x

    def raised(self, name: str, ins: Intrinsics, x: Tensor, places: int) -> Tensor:
        """``x`` with so many binary places more; less where that is negative."""
        if places < 0:
            return self.step(name, ins.alu_shr_imm, lambda *at: x[at] >> -places)
        return self.step(name, ins.alu_shl_imm, lambda *at: x[at] << places) if places else x

    def scaled(self, name: str, ins: Intrinsics, x: Tensor, word: int) -> Tensor:
        """``x`` times the scale of a word."""
        scale = te.const(word)
        return self.step(name, ins.alu_scale_imm, lambda *at: te.rq(x[at], scale))

    def size(self, total: Tensor, ins: Intrinsics) -> Tensor:
        """The absolute value of a sum."""
        minus = self.step("minus", ins.alu_neg, lambda *at: -total[at])
        return self.step("size", ins.alu_max, lambda *at: te.maximum(total[at], minus[at]))

    def power(self, size: Tensor, excess: int, square: int, ins: Intrinsics) -> Tensor:
        """The share of a sum of squares that a sum's size has, by the word of its square."""
        word = self.plus("word", ins, size, excess << MANTISSA_BITS)
        power = self.step("power", ins.alu_scale, lambda *at: te.rq(size[at], word[at]))
        return self.scaled("part", ins, power, square)
