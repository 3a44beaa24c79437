"""Elements from other places, which are known at compile time: slices, pads, tiles, gathers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import IntegerNode, Node, Recipe
from vdla.compiler.graph.ops.functions import like
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

OUTSIDE = -1  # the place of an element that isn't the data's


@dataclass(frozen=True, kw_only=True)
class AnyTake(Node, operator=False):
    """Selection of elements along each axis, for elements of any type.

    ``shape`` is the result's; ``places`` are p, q, … one behind another: for every index along
    each axis the data's, or -1.
    """

    data: str
    shape: tuple[int, ...]
    places: tuple[int, ...]
    fill: float = 0.0

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        tables = self.tables()
        if len(shapes[0]) != len(self.shape) or len(self.places) != sum(self.shape):
            raise self.error(f"places for {len(shapes[0])} axes", len(self.places))
        for table, size in zip(tables, shapes[0], strict=True):
            if table and not (min(table) >= OUTSIDE and max(table) < size):
                raise self.error(f"places below {size}", list(table))
        return self.shape

    def tables(self) -> list[tuple[int, ...]]:
        """The places along each axis."""
        ends = accumulate(self.shape, initial=0)
        return [self.places[a:b] for a, b in pairwise(ends)]

    @cached_property
    def even_places(self) -> Sequence[tuple[int, int]] | None:
        """The first place along each axis and the distance from each one to the next.

        None where some of the places aren't at even distances, or are outside.
        """
        result = []
        for table in self.tables():
            step = table[1] - table[0] if len(table) > 1 else 1
            even = (
                range(table[0], table[0] + step * len(table), step)
                if step
                else table[:1] * len(table)
            )
            if OUTSIDE in table or table != tuple(even):
                return None
            result.append((table[0], step))
        return result

    def start_of_run(self, shape: Shape) -> int | None:
        """Number of elements of data of ``shape`` that come before the result, in row-major order.

        None where the result isn't one run of the data's elements.
        """
        places = self.even_places
        if places is None or any(step != 1 for _, step in places):
            return None
        outer = next((n for n, size in enumerate(self.shape) if size > 1), len(shape))
        if self.shape[outer + 1 :] != shape[outer + 1 :]:
            return None
        return sum(first * prod(shape[n + 1 :]) for n, (first, _) in enumerate(places))

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        result = args[0]
        for axis, table in enumerate(self.tables()):
            places = np.asarray(table)
            result = np.take(result, np.maximum(places, 0), axis=axis)
            if (places == OUTSIDE).any():
                column = (places == OUTSIDE).reshape([-1] + [1] * (len(self.shape) - axis - 1))
                result = np.where(column, np.asarray(self.fill).astype(kind.dtype), result)
        return np.ascontiguousarray(result).reshape(self.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.image(self.data) if recipe.block(self.data) else recipe.read(self.data)
        result = [_Axis(recipe, axis, table) for axis, table in enumerate(self.tables())]

        def value(*i: Expr) -> Expr:
            here = data(*(axis.place(v) for axis, v in zip(result, i, strict=True)))
            inside = [c for axis, v in zip(result, i, strict=True) for c in axis.inside(v)]
            if not inside:
                return here
            return te.select(te.all(*inside), here, like(self.fill, here))

        return recipe.compute(value, "taken")

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of the data, of which it takes whole blocks."""
        block = operands[0].block
        if not block:
            return 0
        _, channels, *_ = self.tables()
        whole = channels[0] % block == 0 and len(channels) % block == 0 and channels[0] >= 0
        return block if whole and all(b == a + 1 for a, b in pairwise(channels)) else 0


@dataclass(frozen=True, kw_only=True)
class QTake(IntegerNode, AnyTake):
    """:class:`Take` on integers of one scale."""


@dataclass(frozen=True, kw_only=True)
class Take(AnyTake):
    """``output[i, j, …] = data[p[i], q[j], …]``; ``fill`` where one of the places is outside."""

    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)
    ON_INT8: ClassVar[type[Node] | None] = QTake

    @property
    def integer(self) -> type[Node] | None:
        """:class:`QTake` where all elements are the data's or 0: others may be no integer's."""
        return None if OUTSIDE in self.places and self.fill != 0 else QTake


def repetition(data: str, size: Shape, output: str, shape: Shape) -> QTake:
    """The node that repeats the axes of one index as often as another shape has it."""
    tables = (range(n) if n == m else [0] * n for n, m in zip(shape, size, strict=True))
    places = tuple(place for table in tables for place in table)
    return QTake(name=output, output=output, data=data, shape=shape, places=places)


class _Axis:
    """Index of the data for each element along one axis of the result: by a formula where there is
    one.
    """

    def __init__(self, recipe: Recipe, axis: int, table: Sequence[int]) -> None:
        known = [n for n, place in enumerate(table) if place != OUTSIDE]
        self.first, self.last = (known[0], known[-1]) if known else (0, -1)
        self.size = len(table)
        self.start = table[self.first] if known else 0
        steps = {b - a for a, b in pairwise(table[self.first : self.last + 1])}
        self.step = next(iter(steps), 0)
        self.table: Tensor | None = None
        if len(steps) > 1 or not known:
            self.table = recipe.constant(f"places{axis}", np.asarray(table, np.int32))
            self.gaps = OUTSIDE in table

    def place(self, i: Expr) -> Expr:
        """The data's index for one of the result's."""
        if self.table is not None:
            return self.table[i]
        return (i - self.first) * self.step + self.start

    def inside(self, i: Expr) -> list[Expr]:
        """When there is one."""
        if self.table is not None:
            return [self.table[i] >= 0] if self.gaps else []
        low = [i >= self.first] if self.first > 0 else []
        return low + ([i <= self.last] if self.last < self.size - 1 else [])
