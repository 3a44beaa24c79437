"""Images of another size, each pixel made of its neighbours: bilinear resizing.

Weights are integers: those of half pixels at twice the size are quarters, those of aligned corners
parts of the result's size less one. So sums of integers by them are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import GraphError, Node, Recipe
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

MOST_WEIGHT = 1 << 23  # of all weights of a pixel: 255 << 23 < 1 << 31

Tap = Callable[[Expr], tuple[Expr, Expr]]  # a neighbour's place along an axis, and its weight


@dataclass(frozen=True, kw_only=True)
class AnyInterpolate(Node, operator=False):
    """Interpolation of an image, for elements of any type: ``rows`` [OH, H] and ``columns`` [OW, W]
    are integers.

    ``Σ rows[y, i] * columns[x, j] * data[…, i, j]``; all rows have one sum, and all columns.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "rows", "columns")
    PARAMETERS: ClassVar[tuple[str, ...]] = ("rows", "columns")

    data: str
    rows: str
    columns: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, rows, columns = shapes
        if len(data) != 4 or data[2:] != (rows[1], columns[1]):
            raise self.error(f"an image of {rows[1]} x {columns[1]} pixels", list(data))
        return (*data[:2], rows[0], columns[0])

    def total(self, args: Sequence[Array], dtype: type) -> Array:
        """The weighted sums in a type."""
        data, rows, columns = args
        return np.asarray(rows.astype(dtype) @ (data.astype(dtype) @ columns.T.astype(dtype)))

    def sums(self, recipe: Recipe, read: Callable[..., Expr], dtype: str) -> Tensor:
        """The weighted sums: of few columns first, then of few rows."""
        n, c, h, _ = recipe.shape(self.data)
        rows, columns = (
            self._taps(recipe, self.rows, dtype),
            self._taps(recipe, self.columns, dtype),
        )

        def across(b: Expr, k: Expr, y: Expr, x: Expr) -> Expr:
            terms = [read(b, k, y, place) * weight for place, weight in (t(x) for t in columns)]
            return sum(terms[1:], terms[0])

        lines = te.compute((n, c, h, recipe.out_shape[3]), across, "lines")

        def down(b: Expr, k: Expr, y: Expr, x: Expr) -> Expr:
            terms = [lines[b, k, place, x] * weight for place, weight in (t(y) for t in rows)]
            return sum(terms[1:], terms[0])

        return te.compute(recipe.out_shape, down, "sums")

    def _taps(self, recipe: Recipe, name: str, dtype: str) -> list[Tap]:
        weights = recipe.value(name)
        assert weights is not None
        count = int((weights != 0).sum(axis=1).max())
        order = np.argsort(weights == 0, axis=1, kind="stable")[:, :count].astype(np.int32)
        factors = np.take_along_axis(weights, order, axis=1).astype(dtype)
        places, table = recipe.constant(f"{name}.places", order), recipe.constant(name, factors)

        def tap(number: int) -> Tap:
            return lambda i: (places[i, number], table[i, number])

        return [tap(number) for number in range(count)]


def weight_of(rows: Array, columns: Array) -> int:
    """The sum of all weights of a pixel."""
    return int(rows[0].sum()) * int(columns[0].sum())


@dataclass(frozen=True, kw_only=True)
class Interpolate(AnyInterpolate, Quantizable):
    """The weighted mean of neighbours."""

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        wide = np.dtype(kind.dtype).type
        return np.asarray(self.total(args, wide) / wide(weight_of(args[1], args[2])))

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        sums = self.sums(recipe, lambda *i: data[i], "float32")
        rows, columns = recipe.value(self.rows), recipe.value(self.columns)
        assert rows is not None
        assert columns is not None
        whole = te.const(float(weight_of(rows, columns)), "float32")
        return te.compute(recipe.out_shape, lambda *i: sums[i] / whole, "mean")

    def quantized(self, island: Island) -> Node:
        """A :class:`QInterpolate`."""
        data, quant = island.source(self.data)
        known = island.editor.constants
        whole = weight_of(known[self.rows], known[self.columns])
        if whole > MOST_WEIGHT:
            raise GraphError(f"expected weights that sum up to {MOST_WEIGHT:,}, found {whole:,}")
        scale = float(np.float32(quant.scale / (np.float64(island.out.scale) * whole)))
        return QInterpolate(
            **island.names,
            data=data,
            rows=self.rows,
            columns=self.columns,
            zeros=(quant.zero_point,),
            requant=island.requant(scale),
        )


@dataclass(frozen=True, kw_only=True)
class QInterpolate(Requantized, AnyInterpolate):
    """``Σ rows * columns * (data - zeros[0])`` in int32, requantized."""

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        total = self.total((args[0].astype(np.int64) - self.zeros[0], *args[1:]), np.int64)
        return self.narrow(total)

    def express(self, recipe: Recipe) -> Tensor:
        data, (zero,), narrow = recipe.read(self.data), self.zeros, self.narrowing(recipe)
        sums = self.sums(recipe, lambda *i: data[i].astype("int32") - zero, "int32")
        return te.compute(recipe.out_shape, lambda *i: narrow(sums[i]), "out")

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The sum at the result's scale."""
        value = args[0].astype(np.float64) - self.zeros[0]
        total = self.total((value, *args[1:]), np.float64)
        size = self.total((np.abs(value), *args[1:]), np.float64)
        (scale,) = self.requant.scale
        return total * scale, size * scale, 12
