"""Products of matrices with output columns in the lanes of vectors.

A tile of r rows and w vectors of columns stays in registers while the sum runs over k; each step
multiplies one element of every row with every vector. Both factors are rearranged so that a step
finds side by side what it needs: the right one, at compile time if it is a constant, in panels
[N/(w*l), K, w, l]; the left one, where it is used often enough, in tiles of rows [M/r, K, r] (Goto
and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", TOMS 2008).

Threads share the tiles. Tiles of the left factor are rearranged for a band of them, which stays in
the second-level cache while every panel of the right factor passes it once.

Of bytes, four steps of k are one instruction: panels are [N/(w*l), K/4, w, l, 4], and all rows are
rearranged, [M/r, K/4, r, 4]. Where there are tile registers, rows are [M/r, r, K/4, 4], K up to a
multiple of 64, and one intrinsic has the sums of a whole tile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph, Node, Recipe
from vdla.compiler.graph.ops.dense import Dense, QDense
from vdla.compiler.graph.ops.matmul import MatMul, spread
from vdla.compiler.graph.ops.matmul_integer import MatMulInteger
from vdla.compiler.graph.types import Array
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.targets.processor.description.intrinsics import (
    MOST_TILES,
    TILE_BYTES,
    TILE_ROWS,
    WORD_BYTES,
    tile_product,
)
from vdla.compiler.targets.processor.description.processor import Processor, Vectors
from vdla.compiler.targets.processor.operators.image import even_part
from vdla.compiler.targets.processor.operators.nests import (
    in_registers,
    schedule_nest,
    sums_in_registers,
)
from vdla.compiler.targets.processor.operators.template import Template
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.runtime.dtypes import dtype_of
from vdla.support.numbers import ceil_div

BUSY = 10  # sums at once that keep the multipliers busy: two of them, five cycles each
OFTEN = 512  # columns from which on it is worth it to rearrange the rows
WIDEST = 8  # vectors of a tile
BAND_BYTES = 1 << 19  # of the left factor, rearranged
MANY = 8  # matrices of a stack, which threads then share
FEWEST_ROWS = 8  # of which a product is worth tile registers of 16
TILE_WORDS = TILE_BYTES // WORD_BYTES
UNSIGNED = 128  # what makes an int8 a uint8

Element = Callable[..., Expr]  # of a matrix in a stack, at […, m, n]


@dataclass(frozen=True)
class Product:
    """The stages of a product: ``sums`` [..., M/r, N/(w*l), r, w, l], and the rearranged factors
    where they aren't constants; ``words`` says that a step is four bytes, ``in_tiles`` that tile
    registers have the sums."""

    sums: Tensor
    rows: Tensor | None
    panels: Tensor | None
    words: bool
    vectors: Vectors
    in_tiles: bool = False

    def element(self, *i: Expr) -> Expr:
        """The sum at […, m, n]."""
        *_, high, wide, lanes = self.sums.shape
        *stack, y, x = i
        t, r = te.floordiv(y, high), te.floormod(y, high)
        p, rest = te.floordiv(x, wide * lanes), te.floormod(x, wide * lanes)
        return self.sums[(*stack, t, p, r, te.floordiv(rest, lanes), te.floormod(rest, lanes))]

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """The rearranged factors."""
        return tuple(tensor for tensor in (self.rows, self.panels) if tensor is not None)

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """Tiles of registers; bands of them where rows are rearranged."""
        *stack, tiles, _, high, wide, lanes = self.sums.shape
        out, sums = s[result], s[self.sums]
        step, *words = sums.reduce_axis
        *stacks, y, x = out.axis
        t, r = out.split(y, factor=high)
        if self.rows is not None:
            kept = self.rows.shape[-3:] if self.words else self.rows.shape[-2:]
            tiles = tiles_of_a_band(tiles, dtype_of(self.rows.dtype).itemsize * prod(kept))
        band, t = out.split(t, factor=min(tiles, ceil_div(result.shape[-2], high)))
        p, x = out.split(x, factor=min(wide * lanes, result.shape[-1]))
        v, l = out.split(x, factor=min(lanes, result.shape[-1]))
        in_registers(out, [*stacks, band, p, t], [r, v], l)
        band, tile = out.fuse(*stacks, band), out.fuse(p, t)
        out.parallel(tile if prod(stack) < MANY else band)
        sums.compute_at(out, tile)
        *_, r, v, _ = sums.axis
        if self.in_tiles:
            sums.tensorize(r, tile_product(high, wide, sums.extent(step) // TILE_WORDS))
        else:
            sums_in_registers(sums, [step], [r, v], words, self.vectors)
        if self.rows is not None:
            s[self.rows].compute_at(out, band)
            self._rearrange_rows(s, s[self.rows])
        if self.panels is not None:
            s[self.panels].vectorize(s[self.panels].axis[-1])
            schedule_nest(s, s[self.panels], self.vectors.lanes)

    def _rearrange_rows(self, s: Schedule, rows: Stage) -> None:
        """Rows of words that lie side by side, as they do in the data, are whole vectors."""
        if not self.in_tiles:
            schedule_nest(s, rows, self.vectors.lanes)
            return
        *_, word, byte = rows.axis
        _, together = rows.split(rows.fuse(word, byte), factor=TILE_BYTES)
        rows.vectorize(together)

    def schedule_sums(self, s: Schedule) -> None:
        """Tiles of registers alone, all of them before anything reads them; threads share them."""
        sums = s[self.sums]
        *outer, r, v, _ = sums.axis
        sums_in_registers(sums, [*outer, *sums.reduce_axis], [r, v], [], self.vectors)
        sums.parallel(sums.fuse(*outer))


# The templates ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Product:
    """Base of the templates of products of floats and of bytes."""

    product: Product
    result: Tensor

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """The rearranged factors."""
        return self.product.placed

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """Tiles of registers; bands of them where rows are rearranged."""
        self.product.schedule(s, result)


class FloatProduct(_Product, Template[MatMul | Dense]):
    """[…, M, N]: bias[n] + Σ_k a[…, m, k] * b[…, k, n]; stacks of matrices are broadcast."""

    NODES: ClassVar[tuple[type[Node], ...]] = (MatMul, Dense)
    DTYPES: ClassVar[tuple[str, ...]] = ("float32", "float64")

    @classmethod
    def refusal(cls, node: MatMul | Dense, graph: Graph, processor: Processor) -> str | None:
        """Reason against a product that isn't of float32 or float64."""
        dtype = graph.tensors[node.output].dtype
        return None if dtype in cls.DTYPES else f"it is a product of {dtype}"

    @classmethod
    def of(cls, node: MatMul | Dense, recipe: Recipe, processor: Processor) -> FloatProduct:
        """The sums, and a dense layer's bias."""
        vectors = vectors_of(processor, recipe.out_dtype)
        if isinstance(node, MatMul):
            product = float_product(recipe, recipe.read(node.a), node.b, vectors)
            return cls(product, te.compute(recipe.out_shape, product.element, "out"))
        rows = recipe.read(node.data, recipe.shape(node.data)[:2])
        product = float_product(recipe, rows, node.weight, vectors, transposed=True)
        bias = recipe.read(node.bias) if node.bias is not None else None

        def value(*i: Expr) -> Expr:
            total = product.element(*i)
            return total if bias is None else total + bias[i[-1]]

        return cls(product, te.compute(recipe.out_shape, value, "out"))


class ByteProduct(_Product, Template[QDense | MatMulInteger]):
    """Products of int8 or uint8 by constant int8, with zero points, in int32."""

    NODES: ClassVar[tuple[type[Node], ...]] = (QDense, MatMulInteger)

    @classmethod
    def of(cls, node: QDense | MatMulInteger, recipe: Recipe, processor: Processor) -> ByteProduct:
        """The sums, and what takes zero points and shifts off them."""
        if isinstance(node, QDense):
            return cls(*_dense(node, recipe, processor.vectors))
        return cls(*_matmul(node, recipe, processor.vectors))


def _dense(node: QDense, recipe: Recipe, vectors: Vectors) -> tuple[Product, Tensor]:
    """A dense layer of int8, requantized."""
    data = recipe.read(node.data, recipe.shape(node.data)[:2])
    weight, bias = recipe.value(node.weight), recipe.value(node.bias)
    assert weight is not None
    assert bias is not None
    more = (node.zeros[0] + UNSIGNED) * weight.astype(np.int64).sum(axis=1)
    start = (bias - more).astype(np.int32)  # modulo 2**32, as the sums are
    product = byte_product(recipe, data, UNSIGNED, weight.T, start, vectors)
    narrow = node.narrowing(recipe)

    def value(b: Expr, c: Expr) -> Expr:
        return narrow(product.element(b, c), c)

    return product, te.compute(recipe.out_shape, value, "out")


def _matmul(node: MatMulInteger, recipe: Recipe, vectors: Vectors) -> tuple[Product, Tensor]:
    """A product of matrices of bytes in int32."""
    b, b_zero = recipe.value(node.b), recipe.value(node.b_zero)
    assert b is not None
    assert b_zero is not None
    a, a_zero = recipe.read(node.a), recipe.read(node.a_zero)
    signed = UNSIGNED if b.dtype == np.uint8 else 0
    weight = (b.astype(np.int32) - signed).astype(np.int8)
    shift = UNSIGNED if recipe.dtype(node.a) == "int8" else 0
    start = np.zeros(weight.shape[1], np.int32)
    product = byte_product(recipe, a, shift, weight, start, vectors)
    sums = recipe.constant("sums", weight.sum(axis=0, dtype=np.int32))
    zeros = np.broadcast_to(b_zero.astype(np.int32) - signed, b.shape[1:])

    def part(*i: Expr) -> Expr:
        return product.element(*i) - (a_zero[0].astype("int32") + shift) * sums[i[-1]]

    if not zeros.any():
        return product, te.compute(recipe.out_shape, part, "out")
    left, table = node.centered_rows(a, a_zero), recipe.constant("zeros", zeros.copy())
    return product, te.compute(recipe.out_shape, lambda *i: part(*i) - table[i[-1]] * left[i[:-1]])


def vectors_of(processor: Processor, dtype: str) -> Vectors:
    """A processor's vectors of float32, or of float64, of which each holds half as many."""
    vectors = processor.vectors
    return replace(vectors, lanes=vectors.lanes // 2) if dtype == "float64" else vectors


# The sums ---------------------------------------------------------------------------------------


def tile_of(rows: int, vectors: int, registers: int) -> tuple[int, int]:
    """(rows, vectors) of a tile: registers hold its sums, and what one step reads of the right
    factor and of one row.

    Rows and vectors are rounded up to whole tiles, so that smaller ones may have less to do.
    """
    choices = []
    for most in range(1, min(vectors, WIDEST, (registers - 1) // 2) + 1):
        wide = ceil_div(vectors, ceil_div(vectors, most))
        fitting = (registers - 1) // wide - 1
        high = ceil_div(rows, ceil_div(rows, fitting))
        padded = ceil_div(rows, high) * high * ceil_div(vectors, wide) * wide
        loads = (high + wide) / (high * wide)  # for each multiplication
        choices.append((padded * (max(1.0, BUSY / (high * wide)) + loads), high, wide))
    _, high, wide = min(choices)
    return high, wide


def float_product(
    recipe: Recipe, a: Tensor, b: str | Array, vectors: Vectors, *, transposed: bool = False
) -> Product:
    """Σ_k a[…, m, k] * b[…, k, n] in the elements' float32 or float64; ``transposed``: b is [N, K].

    ``b`` is a tensor of the graph, or a matrix of the function's own.
    """
    shape = recipe.shape(b) if isinstance(b, str) else b.shape
    k, n = (shape[-1], shape[-2]) if transposed else shape[-2:]
    m, lanes = a.shape[-2], vectors.lanes
    high, wide = tile_of(m, ceil_div(n, lanes), vectors.registers)
    width = wide * lanes
    batch = np.broadcast_shapes(a.shape[:-2], shape[:-2])
    right, panels = _panels(recipe, b, wide, lanes, transposed=transposed)
    left, rows = _rows(a, high, n)
    step = te.reduce_axis((0, k), "k")

    def tile(*i: Expr) -> Expr:
        *stack, t, p, r, v, l = i
        x = left(*spread(a.shape[:-2], stack), t, r, step)
        return te.sum(x * right[(*spread(right.shape[:-4], stack), p, step, v, l)], axis=step)

    tiles = _whole_bands(m, n, k * dtype_of(a.dtype).itemsize, high)
    sums = te.compute((*batch, tiles, ceil_div(n, width), high, wide, lanes), tile, "tile")
    return Product(sums, rows, panels, words=False, vectors=vectors)


def byte_product(
    recipe: Recipe, a: Tensor, shift: int, weight: Array, start: Array, vectors: Vectors
) -> Product:
    """``start[n] + Σ_k uint8(a[…, m, k] + shift) * weight[k, n]`` in int32.

    ``a`` is of bytes, ``weight`` of int8; four of each are one step (``description.dot4``). All
    rows are rearranged, in tiles [M/r, K/4, r, 4], and what the shift makes of them converted.
    """
    (k, n), (*stack, m, _) = weight.shape, a.shape
    lanes, words = vectors.lanes, ceil_div(k, WORD_BYTES)
    in_tiles = vectors.tiles and m >= FEWEST_ROWS and n >= lanes
    if in_tiles:
        words = ceil_div(words, TILE_WORDS) * TILE_WORDS
        high, wide = even_part(m, MOST_TILES * TILE_ROWS), min(MOST_TILES, n // lanes)
    else:
        high, wide = tile_of(m, ceil_div(n, lanes), vectors.word_registers)
    table = recipe.constant("panels", packed_words(weight, wide, lanes, words))
    first = recipe.constant("start", packed(start.reshape(1, n), wide, lanes)[:, 0])
    tiles = _up_to_bands(ceil_div(m, high), WORD_BYTES * words * high)

    def byte(*i: Expr) -> Expr:
        *where, t, r, word, rest = i if in_tiles else (*i[:-3], i[-2], i[-3], i[-1])
        row, step = te.minimum(t * high + r, m - 1), word * WORD_BYTES + rest
        value = (a[(*where, row, step)].astype("int32") + shift).astype("uint8")
        return (
            value if k == words * WORD_BYTES else te.select(step < k, value, te.const(0, "uint8"))
        )

    kept = (high, words) if in_tiles else (words, high)
    rows = te.compute((*stack, tiles, *kept, WORD_BYTES), byte, "rows")
    step, rest = te.reduce_axis((0, words), "k"), te.reduce_axis((0, WORD_BYTES), "byte")

    def tile(*i: Expr) -> Expr:
        *where, t, p, r, v, l = i
        place = (r, step) if in_tiles else (step, r)
        data, factor = rows[(*where, t, *place, rest)], table[p, step, v, l, rest]
        product = data.astype("int32") * factor.astype("int32")
        return te.sum(product, axis=[step, rest], init=first[p, v, l])

    shape = (*stack, tiles, ceil_div(n, wide * lanes), high, wide, lanes)
    sums = te.compute(shape, tile, "tile")
    return Product(sums, rows, None, words=True, vectors=vectors, in_tiles=in_tiles)


# The right factor -------------------------------------------------------------------------------


def _panels(
    recipe: Recipe, b: str | Array, wide: int, lanes: int, *, transposed: bool
) -> tuple[Tensor, Tensor | None]:
    """The right factor as […, N/(w*l), K, w, l], and the stage that makes it, if it is no
    constant; columns beyond the last are 0."""
    known = recipe.value(b) if isinstance(b, str) else b
    if known is not None:
        matrix = known.swapaxes(-1, -2) if transposed else known
        return recipe.constant("panels", packed(matrix, wide, lanes)), None
    assert isinstance(b, str)
    tensor = recipe.read(b)
    *stack, k, n = tensor.shape
    if transposed:
        k, n = n, k
    panels = ceil_div(n, wide * lanes)

    def element(*i: Expr) -> Expr:
        *where, p, row, v, l = i
        column = (p * wide + v) * lanes + l
        value = tensor[(*where, column, row) if transposed else (*where, row, column)]
        if n == panels * wide * lanes:
            return value
        return te.select(column < n, value, te.const(0.0, tensor.dtype))

    stage = te.compute((*stack, panels, k, wide, lanes), element, "panels")
    return stage, stage


def packed(matrix: Array, wide: int, lanes: int) -> Array:
    """[…, K, N] as […, N/(w*l), K, w, l]; columns beyond the last are 0."""
    *stack, k, n = matrix.shape
    panels = ceil_div(n, wide * lanes)
    whole = np.zeros((*stack, k, panels * wide * lanes), matrix.dtype)
    whole[..., :n] = matrix
    split = whole.reshape(*stack, k, panels, wide, lanes)
    return np.ascontiguousarray(np.moveaxis(split, -4, -3))


def packed_words(matrix: Array, wide: int, lanes: int, words: int = 0) -> Array:
    """[K, N] as [N/(w*l), K/4, w, l, 4], of ``words`` words at least; what is beyond the last row
    or column is 0."""
    k, n = matrix.shape
    whole = np.zeros((max(ceil_div(k, WORD_BYTES), words) * WORD_BYTES, n), matrix.dtype)
    whole[:k] = matrix
    panels = packed(whole, wide, lanes)
    split = panels.reshape(len(panels), -1, WORD_BYTES, wide, lanes)
    return np.ascontiguousarray(np.moveaxis(split, 2, -1))


# The left factor --------------------------------------------------------------------------------


def _rows(a: Tensor, high: int, n: int) -> tuple[Element, Tensor | None]:
    """The element of the left factor in row r of a tile t, at k, and the stage that rearranges it,
    if there is one; rows beyond the last repeat it."""
    *stack, m, k = a.shape
    tiles = _whole_bands(m, n, k * dtype_of(a.dtype).itemsize, high)

    def element(*i: Expr) -> Expr:
        *where, t, r, step = i
        row = t * high + r
        return a[(*where, row if m == tiles * high else te.minimum(row, m - 1), step)]

    if not _rearranged(n, high):
        return element, None
    rows = te.compute((*stack, tiles, k, high), lambda *i: element(*i[:-2], i[-1], i[-2]), "rows")
    return lambda *i: rows[(*i[:-2], i[-1], i[-2])], rows


def _rearranged(n: int, high: int) -> bool:
    """Whether rows are read so often, and of so many at once, that they are rearranged."""
    return n >= OFTEN and high > 1


def tiles_of_a_band(tiles: int, size: int) -> int:
    """Number of tiles of the left factor, of ``size`` bytes, that stay in the second-level cache;
    all bands have equally many."""
    most = max(BAND_BYTES // size, 1)
    return ceil_div(tiles, ceil_div(tiles, most))


def _whole_bands(m: int, n: int, row_bytes: int, high: int) -> int:
    """Number of tiles, up to a whole number of bands where there are bands."""
    tiles = ceil_div(m, high)
    return _up_to_bands(tiles, row_bytes * high) if _rearranged(n, high) else tiles


def _up_to_bands(tiles: int, size: int) -> int:
    band = tiles_of_a_band(tiles, size)
    return ceil_div(tiles, band) * band
