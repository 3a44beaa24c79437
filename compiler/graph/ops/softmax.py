"""Softmax along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr, ExprLike


@dataclass(frozen=True, kw_only=True)
class Softmax(Node):
    """``exp(data - max) / Σ exp(data - max)`` along ``axis``."""

    READS: ClassVar[frozenset[str]] = frozenset({"float32", "float64"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"float32", "float64"})

    data: str
    axis: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        e = np.exp(args[0] - args[0].max(axis=self.axis, keepdims=True))
        return np.asarray(e / e.sum(axis=self.axis, keepdims=True))

    def absorbs(self, maker: Node) -> bool:
        return maker.ELEMENTWISE

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        shape, axis = data.shape, self.axis
        rest = (*shape[:axis], *shape[axis + 1 :]) or (1,)
        size = shape[axis]

        def at(i: tuple[Expr, ...], k: Expr) -> tuple[Expr, ...]:
            return (*i[:axis], k, *i[axis:])[: len(shape)]

        def without(i: tuple[Expr, ...]) -> tuple[ExprLike, ...]:
            return (*i[:axis], *i[axis + 1 :]) or (0,)

        r, k = te.reduce_axis((0, size), "r"), te.reduce_axis((0, size), "k")
        top = te.compute(rest, lambda *i: te.max(data[at(i, r)], axis=r), "top")
        e = te.compute(shape, lambda *i: te.exp(data[i] - top[without(i)]), "e")
        total = te.compute(rest, lambda *i: te.sum(e[at(i, k)], axis=k), "total")
        return te.compute(shape, lambda *i: e[i] / total[without(i)], "softmax")
