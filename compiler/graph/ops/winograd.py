"""3 by 3 convolutions of floats by Winograd's minimal filtering, with channels in lanes.

An output tile of m by m comes from a tile of (m+2) by (m+2) of the image, transformed: there a
convolution is one multiplication per element and channel, 36 for 16 outputs with m = 4 instead of
144 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016)::

    V = Bᵀ d B        of each tile d of the image      [(m+2)², tiles, C]
    M = V U           products of matrices             [(m+2)², tiles, O]
    Y = Aᵀ M A        of each tile                     [m², tiles, O]

U = G g Gᵀ of the weights g is computed at compile time. The transforms add numbers of different
size: results differ from those of a plain sum by some 1e-5 of their size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import DOTS, KEPT, SUMS, TRANSFORMED, inside
from vdla.compiler.graph.ir import Array, Recipe
from vdla.compiler.graph.ops.blocked import Convolution, divisor
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

TAPS = 3
TILE = 4  # outputs of a tile, each way
POINTS = (0, 1, -1, 2, -2)  # where the polynomials of Cook and Toom are evaluated, and infinity
MOST_BYTES = 12 << 20  # of transformed weights: more don't stay in a cache
LEAST = 12  # columns of an image from which on tiles aren't mostly padding
FLOAT_BYTES = 4
WIDE = 2  # vectors of a tile of registers


@dataclass(frozen=True)
class Matrices:
    """Those of F(m, r): ``a`` [m, m+r-1], ``g`` [m+r-1, r], ``b`` [m+r-1, m+r-1]."""

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
    found = [Fraction(1)]
    for root in roots:
        found = [
            low - root * high
            for low, high in zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)
        ]
    return found


def fits(conv: Convolution, recipe: Recipe) -> bool:
    """Whether the algorithm computes a convolution, and is worth it."""
    weight, lanes = recipe.shape(conv.weight), recipe.lanes
    plain = (conv.strides, conv.dilations, conv.groups) == ((1, 1), (1, 1), 1)
    blocks = recipe.block(conv.data) == recipe.block(conv.output) == lanes
    *_, rows, columns = recipe.shape(conv.output)
    size = FLOAT_BYTES * (TILE + 2) ** 2 * weight[0] * weight[1]
    return (
        recipe.winograd and plain and blocks and weight[2:] == (TAPS, TAPS)
        and min(rows, columns) >= LEAST and size <= MOST_BYTES
    )  # fmt: skip


def winograd_sums(conv: Convolution, recipe: Recipe, bias: str | None) -> Tensor:
    """[N, O/l, OH, OW, l] up to whole tiles: bias + Σ data * weight."""
    weight = recipe.value(conv.weight)
    assert weight is not None
    given = recipe.value(bias) if bias is not None else None
    start = np.zeros(len(weight), np.float32) if given is None else given
    n, o, oh, ow = recipe.shape(conv.output)
    lanes, wide = recipe.lanes, divisor(o // recipe.lanes, WIDE)
    down, across = -(-oh // TILE), -(-ow // TILE)
    side, blocks = TILE + TAPS - 1, o // lanes
    image = _transformed(conv, recipe, down, across)
    table = recipe.constant("weight", transformed_weights(weight, lanes))
    rc = te.reduce_axis((0, weight.shape[1] // lanes), "rc")
    rl = te.reduce_axis((0, lanes), "rl")

    def dot(b: Expr, y: Expr, x: Expr, p: Expr, k: Expr, l: Expr) -> Expr:
        factor = table[y, x, te.floordiv(k, wide), rc, rl, te.floormod(k, wide), l]
        return te.sum(image[b, y, x, p, rc, rl] * factor, axis=[rc, rl])

    shape = (n, side, side, down * across, blocks, lanes)
    dots = te.compute(shape, dot, DOTS)
    product = te.compute(shape, lambda *i: dots[i], "product")
    a = cook_toom(TILE, TAPS, POINTS).a

    def rows(b: Expr, k: Expr, y: Expr, x: Expr, column: Expr, l: Expr) -> Expr:
        tile = te.floordiv(y, TILE) * across + x
        return _combined(a, te.floormod(y, TILE), lambda i: product[b, i, column, tile, k, l])

    half = te.compute((n, blocks, down * TILE, across, side, lanes), rows, "rows")
    own = recipe.constant("bias", start.reshape(-1, lanes))

    def value(b: Expr, k: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        tile, place = te.floordiv(x, TILE), te.floormod(x, TILE)
        return own[k, l] + _combined(a, place, lambda j: half[b, k, y, tile, j, l])

    return te.compute((n, blocks, down * TILE, across * TILE, lanes), value, SUMS)


def _transformed(conv: Convolution, recipe: Recipe, down: int, across: int) -> Tensor:
    """[N, m+2, m+2, tiles, C/l, l]: the image's tiles, transformed."""
    n, c, h, w = recipe.shape(conv.data)
    lanes, side = recipe.lanes, TILE + TAPS - 1
    blocks, (top, left, _, _) = c // lanes, conv.pads
    data, b = recipe.read(conv.data), cook_toom(TILE, TAPS, POINTS).b

    shape = (n, down * across, blocks, side, side, lanes)

    def pixel(batch: Expr, p: Expr, block: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        row = te.floordiv(p, across) * TILE + y - top
        column = te.floormod(p, across) * TILE + x - left
        seen = data[batch, block, row, column, l]
        return te.select(te.all(inside(row, h), inside(column, w)), seen, te.const(0.0, "float32"))

    tiles = te.compute(shape, pixel, KEPT)

    def rows(batch: Expr, p: Expr, block: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        return _combined(b, y, lambda i: tiles[batch, p, block, i, x, l])

    half = te.compute(shape, rows, "turned")

    def value(batch: Expr, y: Expr, x: Expr, p: Expr, block: Expr, l: Expr) -> Expr:
        return _combined(b, x, lambda j: half[batch, p, block, y, j, l])

    return te.compute((n, side, side, down * across, blocks, lanes), value, TRANSFORMED)


def _combined(matrix: Array, row: Expr, element: Callable[[int], Expr]) -> Expr:
    """Σ_i matrix[row, i] * element(i), without the zeros: for each row an expression of its own, of
    which the compiler takes one where the loop over rows is unrolled."""
    found = [_weighted(coefficients, element) for coefficients in matrix]
    total = found[-1]
    for n in reversed(range(len(found) - 1)):
        total = te.select(te.equal(row, n), found[n], total)
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


def transformed_weights(weight: Array, lanes: int) -> Array:
    """[m+2, m+2, O/(w*l), C/l, l, w, l] of weights [O, C, 3, 3]."""
    g = cook_toom(TILE, TAPS, POINTS).g
    o, c = weight.shape[:2]
    wide = divisor(o // lanes, WIDE)
    table = np.einsum("yi,ocij,xj->yxco", g, weight.astype(np.float64), g)
    split = table.reshape(*table.shape[:2], c, o // (wide * lanes), wide, lanes)
    panels = np.moveaxis(split, 2, 3).astype(np.float32)
    shape = (*panels.shape[:3], c // lanes, lanes, wide, lanes)
    return np.ascontiguousarray(panels).reshape(shape)
