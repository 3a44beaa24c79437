"""Products by constant weights most of whose blocks are zero: the other blocks alone.

A block is 16 outputs by 16 inputs (``pieces``). ``parts`` has the sums of each piece, of a tile of
rows in registers with outputs in the lanes of vectors; a table says which of the data a block
multiplies. ``sums`` adds up the pieces of each block of outputs. All loops have ends that are
known, whatever blocks are zero, and threads share the pieces evenly.

Of few rows, several pieces are computed at once, so that sums don't wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph, Node, Recipe
from vdla.compiler.graph.ops.dense import Dense, QDense
from vdla.compiler.graph.ops.matmul import MatMul
from vdla.compiler.graph.types import Array
from vdla.compiler.graph.zero_tiles import zero_share
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.intrinsics import WORD_BYTES
from vdla.compiler.targets.processor.description.processor import Processor, Vectors
from vdla.compiler.targets.processor.operators.nests import (
    in_registers,
    schedule_nest,
    sums_in_registers,
)
from vdla.compiler.targets.processor.operators.pieces import BLOCK, Pieces, pieces_of
from vdla.compiler.targets.processor.operators.product import MANY, UNSIGNED, Product
from vdla.compiler.targets.processor.operators.template import Template
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.support.numbers import ceil_div

LEAST_ZERO = 0.4  # of the blocks, from which on the others alone take less time …
LEAST_BLOCKS = 256  # … in layers of at least so many (benchmarks/sparse_cpu.py)
HIGHEST = 16  # rows of a tile
BUSY = 8  # sums at once that keep the multipliers busy
WORDS = BLOCK // WORD_BYTES  # steps of a block of bytes


@dataclass(frozen=True)
class Sparse(Template[MatMul | Dense | QDense]):
    """``parts`` is […, M/r, P, r, w, l] of P pieces; ``product.sums`` […, M/r, N/16, r, w, l], w
    vectors of l lanes being 16 outputs; ``at_once`` pieces are computed together."""

    NODES: ClassVar[tuple[type[Node], ...]] = (MatMul, Dense, QDense)

    parts: Tensor
    product: Product
    at_once: int
    result: Tensor

    @classmethod
    def refusal(
        cls, node: MatMul | Dense | QDense, graph: Graph, processor: Processor
    ) -> str | None:
        """Reason against weights that are computed, or that have too few zero blocks."""
        dtype = graph.tensors[node.output].dtype
        if not isinstance(node, QDense) and dtype != "float32":
            return f"it is a product of {dtype}"
        weight = _weight(node, graph.constants.get)
        if weight is None or weight.ndim != 2:
            return "it has no matrix of weights that is known"
        blocks = prod(ceil_div(n, BLOCK) for n in weight.shape)
        if blocks < LEAST_BLOCKS:
            return f"it has {blocks} blocks of weights"
        if np.count_nonzero(weight) > (1 - LEAST_ZERO) * blocks * BLOCK**2:
            return f"fewer than {LEAST_ZERO:.0%} of its weights are zero"
        share = zero_share(weight, BLOCK, BLOCK)
        return None if share >= LEAST_ZERO else f"{share:.0%} of its blocks of weights are zero"

    @classmethod
    def of(cls, node: MatMul | Dense | QDense, recipe: Recipe, processor: Processor) -> Sparse:
        """The pieces' sums, the sums of these, and a bias or what requantizes them."""
        weight, vectors = _weight(node, recipe.value), processor.vectors
        assert weight is not None
        if isinstance(node, MatMul):
            factors = _Factors(recipe, recipe.read(node.a), weight, vectors)
            return factors.floats(lambda total, i: total)
        data = recipe.read(node.data, (recipe.shape(node.data)[0], weight.shape[1]))
        factors = _Factors(recipe, data, weight, vectors)
        if isinstance(node, QDense):
            return factors.bytes(node)
        if node.bias is None:
            return factors.floats(lambda total, i: total)
        bias = recipe.read(node.bias)
        return factors.floats(lambda total, i: total + bias[i])

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """The rearranged rows."""
        return self.product.placed

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """All pieces of a tile of rows, then its result; threads share tiles, or pieces where
        there are few tiles."""
        product, vectors = self.product, self.product.vectors
        *stack, tiles, _, high, _, lanes = product.sums.shape
        out, sums, parts = s[result], s[product.sums], s[self.parts]
        *stacks, y, x = out.axis
        t, r = out.split(y, factor=min(high, result.shape[-2]))
        p, x = out.split(x, factor=min(BLOCK, result.shape[-1]))
        v, l = out.split(x, factor=min(lanes, result.shape[-1]))
        in_registers(out, [*stacks, t, p], [r, v], l)
        tile = out.fuse(*stacks, t)
        sums.compute_at(out, p)
        *_, r, v, l = sums.axis
        in_registers(sums, [*sums.reduce_axis], [r, v], l)
        parts.compute_at(out, tile)
        *_, piece, r, v, l = parts.axis
        piece, own = parts.split(piece, factor=self.at_once)
        steps = [*parts.reduce_axis]
        words = [steps.pop()] if product.words else []
        sums_in_registers(parts, [piece, *steps], [r, own, v], words, vectors)
        for rows in product.placed:
            s[rows].compute_at(out, tile)
            schedule_nest(s, s[rows], vectors.lanes)
        if prod(stack) * tiles >= MANY:
            out.parallel(tile)
        else:
            parts.parallel(piece)
            out.parallel(p)


def _weight(node: MatMul | Dense | QDense, value: Callable[[str], Array | None]) -> Array | None:
    """The weights [N, K], or others of another rank; None where they aren't known."""
    if isinstance(node, MatMul):
        known = value(node.b)
        return None if known is None else known.T
    return value(node.weight)


# The sums ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Factors:
    """Rows […, M, K] and the weight [N, K] that they are multiplied by."""

    recipe: Recipe
    data: Tensor
    weight: Array
    vectors: Vectors

    def floats(self, value: Callable[[Expr, Expr], Expr]) -> Sparse:
        """The product of float32; ``value`` makes a result of a sum and its column."""
        recipe, wide = self.recipe, self._wide
        high, at_once = self._tile(self.vectors.registers)
        pieces = pieces_of(self.weight, at_once)
        count, length = pieces.columns.shape
        shape = (count // at_once, at_once, length, BLOCK, wide, self.vectors.lanes)
        table = np.ascontiguousarray(pieces.weights.reshape(shape).transpose(0, 2, 3, 1, 4, 5))
        weights = recipe.constant("blocks", table)
        columns = self._columns(pieces)
        rows = self._float_rows(high)
        s, k = te.reduce_axis((0, length), "s"), te.reduce_axis((0, BLOCK), "k")

        def part(*i: Expr) -> Expr:
            *where, p, r, v, l = i
            group, own = te.floordiv(p, at_once), te.floormod(p, at_once)
            x = rows[(*where, columns[p, s], k, r)]
            return te.sum(x * weights[group, s, k, own, v, l], axis=[s, k])

        parts = te.compute(self._parts(high, count), part, "part")
        sums = self._sums(parts, pieces, None)
        product = Product(sums, rows, None, words=False, vectors=self.vectors)
        out = te.compute(recipe.out_shape, lambda *i: value(product.element(*i), i[-1]), "out")
        return Sparse(parts, product, at_once, out)

    def bytes(self, node: QDense) -> Sparse:
        """The product of int8, requantized: four inputs are one step (``description.dot4``)."""
        recipe, wide, lanes = self.recipe, self._wide, self.vectors.lanes
        high, at_once = self._tile(self.vectors.word_registers)
        pieces = pieces_of(self.weight, at_once)
        count, length = pieces.columns.shape
        shape = (count // at_once, at_once, length, WORDS, WORD_BYTES, wide, lanes)
        table = pieces.weights.reshape(shape).transpose(0, 2, 3, 1, 5, 6, 4)
        weights = recipe.constant("blocks", np.ascontiguousarray(table))
        columns = self._columns(pieces)
        nothing = recipe.constant("nothing", np.zeros((wide, lanes), np.int32))
        rows = self._byte_rows(high)
        s, k, rest = (
            te.reduce_axis((0, n), name)
            for n, name in ((length, "s"), (WORDS, "k"), (WORD_BYTES, "byte"))
        )

        def part(*i: Expr) -> Expr:
            *where, p, r, v, l = i
            group, own = te.floordiv(p, at_once), te.floormod(p, at_once)
            x = rows[(*where, columns[p, s], k, r, rest)].astype("int32")
            factor = weights[group, s, k, own, v, l, rest].astype("int32")
            return te.sum(x * factor, axis=[s, k, rest], init=nothing[v, l])

        parts = te.compute(self._parts(high, count), part, "part")
        sums = self._sums(parts, pieces, self._start(node))
        product = Product(sums, rows, None, words=True, vectors=self.vectors)
        narrow = node.narrowing(recipe)
        out = te.compute(recipe.out_shape, lambda b, c: narrow(product.element(b, c), c), "out")
        return Sparse(parts, product, at_once, out)

    def _start(self, node: QDense) -> Array:
        """Start of sums of unsigned data: the bias, less what the shift adds."""
        bias = self.recipe.value(node.bias)
        assert bias is not None
        more = (node.zeros[0] + UNSIGNED) * self.weight.astype(np.int64).sum(axis=1)
        start = (bias - more).astype(np.int32)  # modulo 2**32, as the sums are
        whole = np.pad(start, (0, -len(start) % BLOCK))
        return whole.reshape(-1, self._wide, self.vectors.lanes)

    def _sums(self, parts: Tensor, pieces: Pieces, start: Array | None) -> Tensor:
        """[…, M/r, N/16, r, w, l]: the pieces of each block of outputs, added up."""
        blocks, most = pieces.places.shape
        *outer, _, high, wide, lanes = parts.shape
        count = parts.shape[-4]
        places = self.recipe.constant("places", pieces.places, (0, count - 1))
        first = None if start is None else self.recipe.constant("start", start)
        q = te.reduce_axis((0, most), "q")

        def total(*i: Expr) -> Expr:
            *where, p, r, v, l = i
            init = te.const(0, parts.dtype) if first is None else first[p, v, l]
            return te.sum(parts[(*where, places[p, q], r, v, l)], axis=q, init=init)

        return te.compute((*outer, blocks, high, wide, lanes), total, "tile")

    def _columns(self, pieces: Pieces) -> Tensor:
        """[P, S]: the block of inputs that each block of a piece multiplies."""
        last = ceil_div(self.weight.shape[1], BLOCK) - 1
        return self.recipe.constant("columns", pieces.columns, (0, last))

    @property
    def _wide(self) -> int:
        """Vectors of a block's outputs."""
        return BLOCK // self.vectors.lanes

    def _tile(self, registers: int) -> tuple[int, int]:
        """Rows of a tile, and how many pieces are computed at once."""
        rows = self.data.shape[-2]
        fitting = min(max((registers - 1) // self._wide - 1, 1), HIGHEST)
        high = ceil_div(rows, ceil_div(rows, fitting))
        return high, max(min(BUSY, fitting * self._wide) // (high * self._wide), 1)

    def _parts(self, high: int, count: int) -> tuple[int, ...]:
        """The shape of the pieces' sums."""
        *stack, m, _ = self.data.shape
        return (*stack, ceil_div(m, high), count, high, self._wide, self.vectors.lanes)

    def _float_rows(self, high: int) -> Tensor:
        """The rows in tiles […, M/r, K/16, 16, r], K filled up with 0."""
        *stack, m, k = self.data.shape

        def element(*i: Expr) -> Expr:
            *where, t, block, rest, r = i
            step = block * BLOCK + rest
            value = self.data[(*where, self._row(t, r, high), step)]
            if k % BLOCK == 0:
                return value
            return te.select(step < k, value, te.const(0.0, "float32"))

        shape = (*stack, ceil_div(m, high), ceil_div(k, BLOCK), BLOCK, high)
        return te.compute(shape, element, "rows")

    def _byte_rows(self, high: int) -> Tensor:
        """The rows in tiles of unsigned bytes […, M/r, K/16, 4, r, 4], K filled up with 0."""
        *stack, m, k = self.data.shape

        def byte(*i: Expr) -> Expr:
            *where, t, block, word, r, rest = i
            step = (block * WORDS + word) * WORD_BYTES + rest
            value = self.data[(*where, self._row(t, r, high), step)].astype("int32") + UNSIGNED
            narrow = value.astype("uint8")
            whole = k % BLOCK == 0
            return narrow if whole else te.select(step < k, narrow, te.const(0, "uint8"))

        shape = (*stack, ceil_div(m, high), ceil_div(k, BLOCK), WORDS, high, WORD_BYTES)
        return te.compute(shape, byte, "rows")

    def _row(self, t: Expr, r: Expr, high: int) -> Expr:
        """Row r of tile t; the last one stands for those beyond it."""
        m = self.data.shape[-2]
        return t * high + r if m % high == 0 else te.minimum(t * high + r, m - 1)
