"""The expression of a normalization: moments of each pixel, then its channels one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.graph.ops.normalize import FINE, Moments
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
    both, all with their instructions, the last one first. ``below`` comes before the steps,
    ``products`` before the moments but the first.
    """

    data: Tensor
    constants: dict[str, Tensor]
    tiles: Tensor
    pixels: Tensor
    products: Tensor
    below: Tensor
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
    rows = shape.batch * inputs * shape.pixels + -shape.pixels % lanes
    data = te.placeholder((rows, lanes), "int8", "data")
    constants = {
        "factor": te.placeholder((shape.channels, lanes), "int8", "factor"),
        "offset": te.placeholder((shape.channels, lanes), "int8", "offset"),
        "weights": te.placeholder((1, lanes, lanes), "int8", "weights"),
        "scale": te.placeholder((1, lanes), "int32", "scale"),
        "units": te.placeholder((lanes, lanes), "int8", "units"),
        "diagonal": te.placeholder((lanes, lanes), "int32", "diagonal", value_range=(0, 1)),
    }
    if shape.centered or shape.in_zero:
        constants["ones"] = te.placeholder((1, lanes), "int8", "ones")

    def pixel(n: Expr, c: Expr, w: Expr, l: Expr, i: Expr) -> Expr:
        return data[(n * inputs + c) * shape.pixels + w * lanes + l, i]

    tiles = te.compute((shape.batch, inputs, blocks, lanes, lanes), pixel, "tiles")
    pixels = te.compute((shape.batch, inputs, blocks, lanes, lanes), pixel, "pixels")
    mean, root, products, moments = _moments(shape, constants, tiles, pixels, ins)
    units, weights, scale = (constants[name] for name in ("units", "weights", "scale"))
    i, j, k = (te.reduce_axis((0, lanes), name) for name in "ijk")
    result = shape.batch, blocks, shape.channels, lanes

    def digit(of: Tensor, c: Expr, l: Expr, i: Expr) -> Expr:
        return of[c, i].astype("int32") * weights[0, l, i].astype("int32")

    def picked(n: Expr, w: Expr, c: Expr, l: Expr) -> Expr:
        unit = units[te.floormod(c, lanes), i].astype("int32")
        channel = tiles[n, te.floordiv(c, lanes), w, l, i].astype("int32")
        return te.sum(unit * channel, axis=i, init=mean[n, w, l])

    factors = te.compute(
        (shape.channels, lanes),
        lambda c, l: te.sum(digit(constants["factor"], c, l, j), axis=j),
        "factors",
    )
    below = te.compute(result, picked, "below")
    times = te.compute(result, lambda n, w, c, l: below[n, w, c, l] * factors[c, l], "times")
    above = te.compute(result, lambda n, w, c, l: te.rq(times[n, w, c, l], root[n, w, l]), "above")
    moved = te.compute(
        result,
        lambda n, w, c, l: te.sum(
            digit(constants["offset"], c, l, k), axis=k, init=above[n, w, c, l]
        ),
        "moved",
    )
    limits = shape.zero, shape.low, shape.high
    out = te.compute(
        result,
        lambda *at: te.requantize(moved[at], scale[0, at[-1]], *limits).astype("int8"),
        "out",
    )
    steps = [(moved, ins.gemm), (above, ins.alu_scale), (times, ins.alu_mul)]
    terms = [(factors, ins.gemm_zero)]
    inner = products, below, moments, terms, steps
    return NormalizeTensors(data, constants, tiles, pixels, *inner, out)


def _moments(
    shape: NormalizeSizes,
    constants: Mapping[str, Tensor],
    tiles: Tensor,
    pixels: Tensor,
    ins: Intrinsics,
) -> tuple[Tensor, Tensor, Tensor, Steps]:
    """The mean of each pixel and its reciprocal root, the products that squares are taken of, and
    all that is computed for these."""
    m, (batch, _, blocks, lanes, _) = Moments(shape.channels), tiles.shape
    made = _Moments((batch, blocks, lanes))
    products, squares = _squares(made, constants["diagonal"], tiles, pixels, ins)
    if shape.centered or shape.in_zero:
        total = _total(made, constants["ones"], tiles, ins)
    if shape.centered:
        words = te.const(m.mean), te.const(m.square)
        mean = made.step("mean", ins.alu_scale_imm, lambda *at: te.rq(total[at], words[0]))
        minus = made.step("minus", ins.alu_neg, lambda *at: -total[at])
        size = made.step("size", ins.alu_max, lambda *at: te.maximum(total[at], minus[at]))
        word = made.plus("word", ins, size, m.excess << MANTISSA_BITS)
        power = made.step("power", ins.alu_scale, lambda *at: te.rq(size[at], word[at]))
        part = made.step("part", ins.alu_scale_imm, lambda *at: te.rq(power[at], words[1]))
        high = made.raised("high", ins, squares, m.places)
        square = made.step("square", ins.alu_sub, lambda *at: high[at] - part[at])
        start = made.plus("start", ins, square, shape.epsilon)
    else:
        zero = shape.in_zero
        mean = made.step("mean", ins.alu_fill, lambda *at: te.const(FINE * zero))
        if zero:
            twice = made.step("twice", ins.alu_mul_imm, lambda *at: total[at] * te.const(-2 * zero))
            sums = made.step("sums", ins.alu_add, lambda *at: squares[at] + twice[at])
        high = made.raised("high", ins, sums if zero else squares, m.places)
        constant = (shape.channels * zero**2 << m.places) + shape.epsilon
        start = made.plus("start", ins, high, constant)
    inverse = made.step("inverse", ins.alu_rsqrt, lambda *at: te.rsqrt(start[at]))
    root = made.plus("root", ins, inverse, -(shape.shift << MANTISSA_BITS))
    return mean, root, products, made.steps[::-1]


def _total(made: _Moments, ones: Tensor, tiles: Tensor, ins: Intrinsics) -> Tensor:
    """The sum of each pixel's channels."""
    _, inputs, _, lanes, _ = tiles.shape
    c, i = te.reduce_axis((0, inputs), "c"), te.reduce_axis((0, lanes), "i")

    def total(n: Expr, w: Expr, l: Expr) -> Expr:
        one, channel = ones[0, i].astype("int32"), tiles[n, c, w, l, i].astype("int32")
        return te.sum(one * channel, axis=[c, i])

    return made.step("total", ins.gemm_zero, total)


def _squares(
    made: _Moments, diagonal: Tensor, tiles: Tensor, pixels: Tensor, ins: Intrinsics
) -> tuple[Tensor, Tensor]:
    """Products of a block's pixels, and the sum of each pixel's squares, on their diagonal."""
    batch, inputs, blocks, lanes, _ = tiles.shape
    d, j = te.reduce_axis((0, inputs), "d"), te.reduce_axis((0, lanes), "j")
    r, size = te.reduce_axis((0, lanes), "r"), (batch, blocks, lanes, lanes)

    def product(n: Expr, w: Expr, q: Expr, l: Expr) -> Expr:
        a, b = pixels[n, d, w, q, j].astype("int32"), tiles[n, d, w, l, j].astype("int32")
        return te.sum(a * b, axis=[d, j])

    products = te.compute(size, product, "products")
    own = made.step(
        "own", ins.alu_mul, lambda n, w, q, l: products[n, w, q, l] * diagonal[q, l], size
    )
    squares = made.step(
        "squares", ins.alu_add_reduce, lambda n, w, l: te.sum(own[n, w, r, l], axis=r)
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
        """``x`` with so many binary places."""
        return self.step(name, ins.alu_shl_imm, lambda *at: x[at] << places) if places else x
