"""Elements from, or to, places that are known only at run time.

An index below 0 counts from the end. One beyond the axis has no meaning in ONNX: the nearest
element stands for it, so that nothing outside the tensor is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr


def bounded(index: Expr, size: int) -> Expr:
    """An index that lies within an axis."""
    wide = index.astype("int64")
    positive = te.select(wide < 0, wide + size, wide)
    return te.minimum(te.maximum(positive, 0), size - 1)


def bounded_array(index: Array, size: int) -> Array:
    """Indices that lie within an axis, as numpy arrays."""
    wide = index.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + size, wide), 0, size - 1)


@dataclass(frozen=True, kw_only=True)
class AnyGather(Node, operator=False):
    """Fields and types of the operators that read at indices."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "indices")
    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)

    data: str
    indices: str


@dataclass(frozen=True, kw_only=True)
class Gather(AnyGather):
    """Whole slices along ``axis``: ``output[…, i, …] = data[…, indices[i], …]``."""

    axis: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, indices = shapes
        return (*data[: self.axis], *indices, *data[self.axis + 1 :])

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        data, indices = args
        return np.take(data, bounded_array(indices, data.shape[self.axis]), axis=self.axis)

    def express(self, recipe: Recipe) -> Tensor:
        data, indices, axis = recipe.read(self.data), recipe.read(self.indices), self.axis
        end = axis + len(indices.shape)

        def value(*i: Expr) -> Expr:
            place = bounded(indices[i[axis:end]], data.shape[axis])
            return data[(*i[:axis], place, *i[end:])]

        return te.compute(recipe.out_shape, value, "gathered")


@dataclass(frozen=True, kw_only=True)
class GatherElements(AnyGather):
    """``output[i, j, …] = data[indices[i, j, …], j, …]``, for ``axis`` 0."""

    axis: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, indices = shapes
        fits = len(data) == len(indices) and all(
            b <= a for n, (a, b) in enumerate(zip(data, indices, strict=True)) if n != self.axis
        )
        if not fits:
            raise self.error(f"indices within {list(data)}", list(indices))
        return indices

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        data, indices = args
        index: list[Array] = [*np.indices(indices.shape)]
        index[self.axis] = bounded_array(indices, data.shape[self.axis])
        return np.asarray(data[tuple(index)])

    def express(self, recipe: Recipe) -> Tensor:
        data, indices, axis = recipe.read(self.data), recipe.read(self.indices), self.axis

        def value(*i: Expr) -> Expr:
            return data[(*i[:axis], bounded(indices[i], data.shape[axis]), *i[axis + 1 :])]

        return te.compute(recipe.out_shape, value, "gathered")


@dataclass(frozen=True, kw_only=True)
class GatherND(AnyGather):
    """Slices at whole tuples of indices, their last axis, behind ``batch`` axes in common."""

    batch: int = 0

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, indices = shapes
        depth = indices[-1] if indices else 0
        if not 1 <= depth <= len(data) - self.batch or data[: self.batch] != indices[: self.batch]:
            raise self.error(f"indices into {list(data)}", list(indices))
        return (*indices[:-1], *data[self.batch + depth :])

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        data, indices = args
        outer = np.indices(indices.shape[:-1])[: self.batch]
        inner = [
            bounded_array(indices[..., n], data.shape[self.batch + n])
            for n in range(indices.shape[-1])
        ]
        return np.ascontiguousarray(data[(*outer, *inner)]).reshape(kind.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data, indices = recipe.read(self.data), recipe.read(self.indices)
        depth, rank = indices.shape[-1], len(indices.shape) - 1

        def value(*i: Expr) -> Expr:
            places = [
                bounded(indices[(*i[:rank], n)], data.shape[self.batch + n]) for n in range(depth)
            ]
            return data[(*i[: self.batch], *places, *i[rank:])]

        return te.compute(recipe.out_shape, value, "gathered")
