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
from vdla.compiler.graph.ops.blocked import WORD
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

BUSY = 10  # sums at once that keep the multipliers busy: two of them, five cycles each
OFTEN = 512  # columns from which on it is worth it to rearrange the rows
WIDEST = 8  # vectors of a tile
BAND_BYTES = 1 << 19  # of the left factor, rearranged
FLOAT_BYTES = 4
UNSIGNED = 128  # what makes an int8 a uint8


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
    start, total = recipe.read(bias) if bias is not None else None, _elements(acc)

    def element(*i: Expr) -> Expr:
        return total(*i) if start is None else total(*i) + start[i[-1]]

    return te.compute((*batch, m, n), element, "out")


def _elements(acc: Tensor) -> Callable[..., Expr]:
    """What tiles […, M/r, N/(w*l), r, w, l] hold at […, m, n]."""
    *_, high, wide, lanes = acc.shape

    def element(*i: Expr) -> Expr:
        *stack, y, x = i
        t, r = te.floordiv(y, high), te.floormod(y, high)
        p, rest = te.floordiv(x, wide * lanes), te.floormod(x, wide * lanes)
        return acc[(*stack, t, p, r, te.floordiv(rest, lanes), te.floormod(rest, lanes))]

    return element


def products_of_bytes(
    recipe: Recipe, a: Tensor, shift: int, weight: Array, start: Array
) -> Callable[..., Expr]:
    """``start[n] + Σ_k uint8(a[…, m, k] + shift) * weight[k, n]`` at […, m, n], in int32.

    ``a`` is of bytes, ``weight`` of int8; four of each are one step (``target.cpu.dot4``). All rows
    are rearranged, in tiles [M/r, K/4, r, 4], and what the shift makes of them converted.
    """
    (k, n), (*stack, m, _) = weight.shape, a.shape
    lanes, words = recipe.lanes, -(-k // WORD)
    high, wide = tile_of(m, -(-n // lanes), recipe.word_registers)
    table = recipe.constant(PANELS, packed_words(weight, wide, lanes))
    first = recipe.constant("start", packed(start.reshape(1, n), wide, lanes)[:, 0])
    tiles = _up_to_bands(-(-m // high), WORD * words * high)

    def byte(*i: Expr) -> Expr:
        *where, t, word, r, rest = i
        row, step = te.minimum(t * high + r, m - 1), word * WORD + rest
        value = (a[(*where, row, step)].astype("int32") + shift).astype("uint8")
        return value if k % WORD == 0 else te.select(step < k, value, te.const(0, "uint8"))

    rows = te.compute((*stack, tiles, words, high, WORD), byte, ROWS)
    step, rest = te.reduce_axis((0, words), "k"), te.reduce_axis((0, WORD), "byte")

    def tile(*i: Expr) -> Expr:
        *where, t, p, r, v, l = i
        data, factor = rows[(*where, t, step, r, rest)], table[p, step, v, l, rest]
        product = data.astype("int32") * factor.astype("int32")
        return te.sum(product, axis=[step, rest], init=first[p, v, l])

    shape = (*stack, tiles, -(-n // (wide * lanes)), high, wide, lanes)
    return _elements(te.compute(shape, tile, TILE))


def packed_words(matrix: Array, wide: int, lanes: int) -> Array:
    """[K, N] as [N/(w*l), K/4, w, l, 4]; what is beyond the last row or column is 0."""
    k, n = matrix.shape
    whole = np.zeros((-(-k // WORD) * WORD, n), matrix.dtype)
    whole[:k] = matrix
    panels = packed(whole, wide, lanes)
    words = panels.reshape(len(panels), -1, WORD, wide, lanes)
    return np.ascontiguousarray(np.moveaxis(words, 2, -1))


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


def tiles_of_a_band(tiles: int, size: int) -> int:
    """How many tiles of the left factor, of ``size`` bytes, stay in the second-level cache: alike
    in number."""
    most = max(BAND_BYTES // size, 1)
    return -(-tiles // -(-tiles // most))


def _rearranged(n: int, high: int) -> bool:
    """Whether rows are read so often, and of so many at once, that they are rearranged."""
    return n >= OFTEN and high > 1


def _whole_bands(m: int, n: int, k: int, high: int) -> int:
    """How many tiles there are, up to a whole number of bands where there are bands."""
    tiles = -(-m // high)
    return _up_to_bands(tiles, FLOAT_BYTES * k * high) if _rearranged(n, high) else tiles


def _up_to_bands(tiles: int, size: int) -> int:
    band = tiles_of_a_band(tiles, size)
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
