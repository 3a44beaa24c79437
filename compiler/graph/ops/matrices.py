"""Products of matrices with output columns in the lanes of vectors.

A tile of r rows and w vectors of columns stays in registers while the sum runs over k; each step
multiplies one element of every row with every vector. Both factors are rearranged so that a step
finds side by side what it needs: the right one, at compile time if it is a constant, in panels
[N/(w*l), K, w, l]; the left one, where it is used often enough, in tiles of rows [M/r, K, r] (Goto
and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", TOMS 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import PANELS, ROWS, TILE
from vdla.compiler.graph.ir import Array, Recipe, Shape
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

BUSY = 10  # sums at once that keep the multipliers busy: two of them, five cycles each
OFTEN = 512  # columns from which on it is worth it to rearrange the rows
WIDEST = 8  # vectors of a tile
BAND_BYTES = 1 << 19  # of the left factor, rearranged
FLOAT_BYTES = 4


def tile_of(rows: int, vectors: int, registers: int) -> tuple[int, int]:
    """(rows, vectors) of a tile: registers hold its sums, and what one step reads of the right
    factor and of one row.

    Rows and vectors are rounded up to whole tiles, so that smaller ones may have less to do.
    """
    found = []
    for most in range(1, min(vectors, WIDEST, (registers - 1) // 2) + 1):
        wide = -(-vectors // -(-vectors // most))
        fitting = (registers - 1) // wide - 1
        high = -(-rows // -(-rows // fitting))
        padded = -(-rows // high) * high * -(-vectors // wide) * wide
        loads = (high + wide) / (high * wide)  # for each multiplication
        found.append((padded * (max(1.0, BUSY / (high * wide)) + loads), high, wide))
    _, high, wide = min(found)
    return high, wide


def product_in_lanes(
    recipe: Recipe, a: Tensor, b: str, bias: str | None = None, transposed: bool = False
) -> Tensor:
    """[…, M, N]: bias[n] + Σ_k a[…, m, k] * b[…, k, n] in float32; stacks of matrices are
    broadcast.

    ``transposed``: b is [N, K].
    """
    shape = recipe.shape(b)
    k, n = (shape[-1], shape[-2]) if transposed else shape[-2:]
    m, lanes = a.shape[-2], recipe.lanes
    high, wide = tile_of(m, -(-n // lanes), recipe.registers)
    width = wide * lanes
    batch = np.broadcast_shapes(a.shape[:-2], shape[:-2])
    right = _panels(recipe, b, wide, transposed)
    left = _rows(a, high, n)
    step = te.reduce_axis((0, k), "k")

    def tile(*i: Expr) -> Expr:
        *stack, t, p, r, v, l = i
        x = left(*spread(a.shape[:-2], stack), t, r, step)
        return te.sum(x * right[(*spread(right.shape[:-4], stack), p, step, v, l)], axis=step)

    tiles = _whole_bands(m, n, k, high)
    acc = te.compute((*batch, tiles, -(-n // width), high, wide, lanes), tile, TILE)
    start = recipe.read(bias) if bias is not None else None

    def element(*i: Expr) -> Expr:
        *stack, y, x = i
        t, r = te.floordiv(y, high), te.floormod(y, high)
        p, rest = te.floordiv(x, width), te.floormod(x, width)
        total = acc[(*stack, t, p, r, te.floordiv(rest, lanes), te.floormod(rest, lanes))]
        return total if start is None else total + start[x]

    return te.compute((*batch, m, n), element, "out")


def _panels(recipe: Recipe, b: str, wide: int, transposed: bool) -> Tensor:
    """The right factor as […, N/(w*l), K, w, l]; columns beyond the last are 0."""
    lanes, known = recipe.lanes, recipe.value(b)
    if known is not None:
        matrix = known.swapaxes(-1, -2) if transposed else known
        return recipe.constant(PANELS, packed(matrix, wide, lanes))
    tensor = recipe.read(b)
    *stack, k, n = tensor.shape
    if transposed:
        k, n = n, k
    panels = -(-n // (wide * lanes))

    def element(*i: Expr) -> Expr:
        *where, p, row, v, l = i
        column = (p * wide + v) * lanes + l
        value = tensor[(*where, column, row) if transposed else (*where, row, column)]
        if n == panels * wide * lanes:
            return value
        return te.select(column < n, value, te.const(0.0, "float32"))

    return te.compute((*stack, panels, k, wide, lanes), element, PANELS)


def packed(matrix: Array, wide: int, lanes: int) -> Array:
    """[…, K, N] as […, N/(w*l), K, w, l]; columns beyond the last are 0."""
    *stack, k, n = matrix.shape
    panels = -(-n // (wide * lanes))
    whole = np.zeros((*stack, k, panels * wide * lanes), matrix.dtype)
    whole[..., :n] = matrix
    split = whole.reshape(*stack, k, panels, wide, lanes)
    return np.ascontiguousarray(np.moveaxis(split, -4, -3))


def tiles_of_a_band(tiles: int, k: int, high: int) -> int:
    """How many tiles of the left factor, alike in number, stay in the second-level cache."""
    most = max(BAND_BYTES // (FLOAT_BYTES * k * high), 1)
    return -(-tiles // -(-tiles // most))


def _rearranged(n: int, high: int) -> bool:
    """Whether rows are read so often, and of so many at once, that they are rearranged."""
    return n >= OFTEN and high > 1


def _whole_bands(m: int, n: int, k: int, high: int) -> int:
    """How many tiles there are, up to a whole number of bands where there are bands."""
    tiles = -(-m // high)
    if not _rearranged(n, high):
        return tiles
    band = tiles_of_a_band(tiles, k, high)
    return -(-tiles // band) * band


def _rows(a: Tensor, high: int, n: int) -> Callable[..., Expr]:
    """The element of the left factor in row r of a tile t, at k; rows beyond the last repeat it."""
    *stack, m, k = a.shape
    tiles = _whole_bands(m, n, k, high)

    def element(*i: Expr) -> Expr:
        *where, t, r, step = i
        row = t * high + r
        return a[(*where, row if m == tiles * high else te.minimum(row, m - 1), step)]

    if not _rearranged(n, high):
        return element
    rows = te.compute((*stack, tiles, k, high), lambda *i: element(*i[:-2], i[-1], i[-2]), ROWS)
    return lambda *i: rows[(*i[:-2], i[-1], i[-2])]


def spread(sizes: Shape, stack: Sequence[Expr]) -> list[Expr]:
    """The index of a matrix in a stack that is broadcast."""
    inner = stack[len(stack) - len(sizes) :]
    return [te.const(0, "int32") if n == 1 else i for n, i in zip(sizes, inner, strict=True)]
