"""3 by 3 convolutions of floats by Winograd's minimal filtering, with channels in lanes.

An output tile of m by m comes from a tile of (m+2) by (m+2) of the image, transformed: there a
convolution is one multiplication per element and channel, 36 for 16 outputs with m = 4 instead of
144 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016)::

    V = Bᵀ d B        of each tile d of the image      [(m+2)², tiles, C]
    M = V U           products of matrices             [(m+2)², tiles, O]
    Y = Aᵀ M A        of each tile                     [m², tiles, O]

U = G g Gᵀ of the weights g is computed at compile time. The transforms add numbers of different
size: results differ from those of a plain sum by some 1e-5 of their size. It runs so::

    for band of rows of tiles:
        transform the image's tiles                         shared by threads
        for blocks:                                         shared by threads
            products, a tile of registers at a time
            for tile: transform back, epilogue

Every weight is read once for a band. Where the weights stay in the second-level cache, bands are so
small that their images and products stay there too; else there are few bands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import inside
from vdla.compiler.graph.ir import Graph, Node, Recipe
from vdla.compiler.graph.ops.conv2d import Conv2d
from vdla.compiler.graph.types import Array
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.targets.processor.operators.image import divisor, float_parameters
from vdla.compiler.targets.processor.operators.nests import in_registers, share
from vdla.compiler.targets.processor.operators.template import Template
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.support.numbers import ceil_div

TAPS = 3
TILE = 4  # outputs of a tile, each way
SIDE = TILE + TAPS - 1  # elements of a transformed tile, each way
POINTS = (0, 1, -1, 2, -2)  # where the polynomials of Cook and Toom are evaluated, and infinity
MOST_BYTES = 12 << 20  # of transformed weights: more don't stay in a cache
LEAST = 12  # columns of an image from which on tiles aren't mostly padding
FLOAT_BYTES = 4
CACHE_BYTES = 1 << 20  # of the second level


@dataclass(frozen=True)
class Image:
    """The stages of the image: its tiles with their padding, transformed one way, and both ways."""

    tiles: Tensor
    half: Tensor
    whole: Tensor


@dataclass(frozen=True)
class Winograd(Template[Conv2d]):
    """``dots`` are the sums of the products, ``products`` all of them of a band; ``half`` and
    ``sums`` [N, O/l, H, W, l] are transformed back one way and both ways."""

    NODES: ClassVar[tuple[type[Node], ...]] = (Conv2d,)

    image: Image
    weight: Tensor
    dots: Tensor
    products: Tensor
    half: Tensor
    sums: Tensor
    result: Tensor
    registers: int

    @classmethod
    def refusal(cls, node: Conv2d, graph: Graph, processor: Processor) -> str | None:
        """Reason against a node: it takes large 3 by 3 convolutions of stride 1 in blocks of
        channels.
        """
        data, weight, result = (
            graph.tensors[name] for name in (node.data, node.weight, node.output)
        )
        plain = (node.strides, node.dilations, node.groups) == ((1, 1), (1, 1), 1)
        if not processor.winograd:
            return "the processor is to do without"
        if not plain or weight.shape[2:] != (TAPS, TAPS):
            return f"it isn't {TAPS} by {TAPS}, of stride 1, one group and no dilation"
        if not data.block or not result.block:
            return "its channels don't lie in blocks"
        size = FLOAT_BYTES * SIDE**2 * weight.shape[0] * weight.shape[1]
        if min(result.shape[2:]) < LEAST or size > MOST_BYTES:
            return "its image is too small, or its weights are too large"
        return None

    @classmethod
    def of(cls, node: Conv2d, recipe: Recipe, processor: Processor) -> Winograd:
        """The transforms, the products between them, and the bias."""
        weight, start = float_parameters(node, recipe)
        n, o, oh, ow = recipe.shape(node.output)
        lanes, inner = recipe.block(node.output), recipe.block(node.data)
        wide = _vectors_of_a_tile(o // lanes)
        down, across, blocks = ceil_div(oh, TILE), ceil_div(ow, TILE), o // lanes
        image = _transformed(node, recipe, down, across)
        table = recipe.constant("weight", transformed_weights(weight, lanes, inner))
        rc = te.reduce_axis((0, weight.shape[1] // inner), "rc")
        rl = te.reduce_axis((0, inner), "rl")

        def dot(b: Expr, y: Expr, x: Expr, p: Expr, k: Expr, l: Expr) -> Expr:
            factor = table[y, x, te.floordiv(k, wide), rc, rl, te.floormod(k, wide), l]
            return te.sum(image.whole[b, y, x, p, rc, rl] * factor, axis=[rc, rl])

        shape = (n, SIDE, SIDE, down * across, blocks, lanes)
        dots = te.compute(shape, dot, "dots")
        products = te.compute(shape, lambda *i: dots[i], "product")
        a = cook_toom(TILE, TAPS, POINTS).a

        def rows(b: Expr, k: Expr, y: Expr, x: Expr, column: Expr, l: Expr) -> Expr:
            tile = te.floordiv(y, TILE) * across + x
            return _combined(a, te.floormod(y, TILE), lambda i: products[b, i, column, tile, k, l])

        half = te.compute((n, blocks, down * TILE, across, SIDE, lanes), rows, "rows")
        own = recipe.constant("bias", start.reshape(-1, lanes))

        def value(b: Expr, k: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
            tile, place = te.floordiv(x, TILE), te.floormod(x, TILE)
            return own[k, l] + _combined(a, place, lambda j: half[b, k, y, tile, j, l])

        sums = te.compute((n, blocks, down * TILE, across * TILE, lanes), value, "sums")
        result = te.compute(recipe.out_shape, lambda *i: sums[i], "out")
        registers = processor.vectors.registers
        return cls(image, table, dots, products, half, sums, result, registers)

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """All stages that aren't reductions."""
        image = self.image
        return (image.tiles, image.half, image.whole, self.products, self.half, self.sums)

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """Bands of rows of tiles."""
        down, across = self.sums.shape[2] // TILE, self.sums.shape[3] // TILE
        wide = _vectors_of_a_tile(self.sums.shape[1])
        row = FLOAT_BYTES * self.image.whole.span // (self.sums.shape[0] * down)
        weights = FLOAT_BYTES * prod(self.weight.shape)
        most = CACHE_BYTES // 8 if weights < CACHE_BYTES * 5 // 8 else CACHE_BYTES
        high = divisor(down, max(most // row, 1))
        out = s[result]
        n, o, y, x, l = out.axis
        y, yi = out.split(y, factor=TILE)
        band, y = out.split(y, factor=high)
        x, xi = out.split(x, factor=TILE)
        o, oi = out.split(o, factor=wide)
        in_registers(out, [n, band, o, oi, y, x], [yi, xi], l)
        out.parallel(o)
        for tensor in (self.sums, self.half):
            s[tensor].compute_at(out, x)
        self._transform_back(s)
        s[self.products].compute_at(out, o)
        self._multiply(s, high * across, wide)
        s[self.image.whole].compute_at(out, band)
        self._transform(s)

    def _transform_back(self, s: Schedule) -> None:
        *outer, y, x, l = s[self.sums].axis
        in_registers(s[self.sums], outer, [y, x], l)
        *outer, y, x, column, l = s[self.half].axis
        in_registers(s[self.half], [*outer, x, column], [y], l)

    def _multiply(self, s: Schedule, tiles: int, wide: int) -> None:
        """Products of matrices, one for each element of a tile."""
        products, dots = s[self.products], s[self.dots]
        n, y, x, p, k, l = products.axis
        po, pi = products.split(p, factor=divisor(tiles, (self.registers - 1) // wide - 1))
        in_registers(products, [n, y, x, po], [pi, k], l)
        dots.compute_at(products, po)
        *outer, p, k, l = dots.axis
        in_registers(dots, [*outer, *dots.reduce_axis], [p, k], l)

    def _transform(self, s: Schedule) -> None:
        """The image, tile by tile."""
        whole, half, tiles = (s[t] for t in (self.image.whole, self.image.half, self.image.tiles))
        n, y, x, p, block, l = whole.axis
        in_registers(whole, [n, p, block, y], [x], l)
        half.compute_at(whole, block)
        *outer, y, x, l = half.axis
        in_registers(half, [*outer, x], [y], l)
        tiles.compute_at(whole, block)
        tiles.vectorize(tiles.axis[-1])
        share(whole, [n, p], prod(self.dots.shape))


# The transforms ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Matrices:
    """Winograd's matrices of F(m, r): ``a`` [m, m+r-1], ``g`` [m+r-1, r], ``b`` [m+r-1, m+r-1]."""

    a: Array
    g: Array
    b: Array


@cache
def cook_toom(m: int, r: int, points: tuple[int, ...]) -> Matrices:
    """The matrices with which ``a ((g w) * (b d))`` is m outputs of a filter of r taps (Blahut,
    "Fast Algorithms for Signal Processing", section 5.2); there are m + r - 2 points."""
    at = [Fraction(p) for p in points]
    a = [[p**i for p in at] + [Fraction(i == m - 1)] for i in range(m)]
    g, b = [], []
    for n, p in enumerate(at):
        others = at[:n] + at[n + 1 :]
        scale = prod(p - q for q in others)
        g.append([p**k / scale for k in range(r)])
        b.append([*_with_roots(others), Fraction(0)])
    g.append([Fraction(k == r - 1) for k in range(r)])
    b.append(_with_roots(at))
    return Matrices(*(np.array(x, dtype=np.float64) for x in (a, g, b)))


def _with_roots(roots: Sequence[Fraction]) -> list[Fraction]:
    """Coefficients of the polynomial with these roots, the lowest power's first."""
    result = [Fraction(1)]
    for root in roots:
        result = [
            low - root * high
            for low, high in zip([Fraction(0), *result], [*result, Fraction(0)], strict=True)
        ]
    return result


def _transformed(conv: Conv2d, recipe: Recipe, down: int, across: int) -> Image:
    """[N, m+2, m+2, tiles, C/l, l]: the image's tiles, transformed."""
    n, c, h, w = recipe.shape(conv.data)
    lanes = recipe.block(conv.data)
    blocks, (top, left, _, _) = c // lanes, conv.pads
    data, b = recipe.read(conv.data), cook_toom(TILE, TAPS, POINTS).b

    shape = (n, down * across, blocks, SIDE, SIDE, lanes)

    def pixel(batch: Expr, p: Expr, block: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        row = te.floordiv(p, across) * TILE + y - top
        column = te.floormod(p, across) * TILE + x - left
        seen = data[batch, block, row, column, l]
        return te.select(te.all(inside(row, h), inside(column, w)), seen, te.const(0.0, "float32"))

    tiles = te.compute(shape, pixel, "padded")

    def rows(batch: Expr, p: Expr, block: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        return _combined(b, y, lambda i: tiles[batch, p, block, i, x, l])

    half = te.compute(shape, rows, "turned")

    def value(batch: Expr, y: Expr, x: Expr, p: Expr, block: Expr, l: Expr) -> Expr:
        return _combined(b, x, lambda j: half[batch, p, block, y, j, l])

    whole = te.compute((n, SIDE, SIDE, down * across, blocks, lanes), value, "image")
    return Image(tiles, half, whole)


def _combined(matrix: Array, row: Expr, element: Callable[[int], Expr]) -> Expr:
    """Σ_i matrix[row, i] * element(i), without the zeros: for each row an expression of its own, of
    which the compiler takes one where the loop over rows is unrolled."""
    result = [_weighted(coefficients, element) for coefficients in matrix]
    total = result[-1]
    for n in reversed(range(len(result) - 1)):
        total = te.select(te.equal(row, n), result[n], total)
    return total


def _weighted(coefficients: Array, element: Callable[[int], Expr]) -> Expr:
    total: Expr | None = None
    for i, factor in enumerate(coefficients):
        if factor == 0:
            continue
        x = element(i)
        term = x if factor == 1 else x * te.const(float(factor), "float32")
        total = term if total is None else total + term
    assert total is not None
    return total


def transformed_weights(weight: Array, lanes: int, inner: int) -> Array:
    """[m+2, m+2, O/(w*l), C/i, i, w, l] of weights [O, C, 3, 3], i channels of the data lying side
    by side."""
    g = cook_toom(TILE, TAPS, POINTS).g
    o, c = weight.shape[:2]
    wide = _vectors_of_a_tile(o // lanes)
    table = np.einsum("yi,ocij,xj->yxco", g, weight.astype(np.float64), g)
    split = table.reshape(*table.shape[:2], c, o // (wide * lanes), wide, lanes)
    panels = np.moveaxis(split, 2, 3).astype(np.float32)
    shape = (*panels.shape[:3], c // inner, inner, wide, lanes)
    return np.ascontiguousarray(panels).reshape(shape)


def _vectors_of_a_tile(blocks: int) -> int:
    """Number of blocks of output channels in a tile of registers: 2, or 3 where they are odd."""
    return 2 if blocks % 2 == 0 else divisor(blocks, 3)
