"""Axes in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.axes import RESULT, Axes
from vdla.compiler.graph.ir import IntegerNode, Node, Recipe
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import Tensor


@dataclass(frozen=True, kw_only=True)
class AnyTranspose(Node, operator=False):
    """Data and permutation of every transposition, for elements of any type."""

    data: str
    perm: tuple[int, ...]

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if sorted(self.perm) != list(range(len(shapes[0]))):
            raise self.error(f"a permutation of {len(shapes[0])} axes", list(self.perm))
        return tuple(shapes[0][p] for p in self.perm)

    def aligned_axes(self, shapes: Sequence[Shape], result: Shape) -> Axes:
        return [frozenset({(0, axis), (RESULT, n)}) for n, axis in enumerate(self.perm)]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.ascontiguousarray(args[0].transpose(self.perm))

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        place = [self.perm.index(axis) for axis in range(len(self.perm))]
        return te.compute(
            recipe.out_shape, lambda *i: data[tuple(i[p] for p in place)], "transposed"
        )


@dataclass(frozen=True, kw_only=True)
class QTranspose(IntegerNode, AnyTranspose):
    """:class:`Transpose` on integers."""

    NOT_ACCELERATED: ClassVar[str] = "channel blocks can't be transposed in place"


@dataclass(frozen=True, kw_only=True)
class Transpose(AnyTranspose):
    """``output[i[perm[0]], i[perm[1]], …] = data[i]``, as numpy's."""

    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)
    ON_INT8: ClassVar[type[Node] | None] = QTranspose
