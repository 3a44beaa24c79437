"""Vectors one behind another as the pixels of an image, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Array, IntegerNode, Recipe, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class QRowsAsImage(IntegerNode):
    """``output[0, c, 0, n] = data[n, c]``: vectors [N, C] become pixels of [1, C, 1, N]."""

    data: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if len(shapes[0]) != 2:
            raise self.error("vectors [N, C]", list(shapes[0]))
        rows, channels = shapes[0]
        return 1, channels, 1, rows

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.ascontiguousarray(args[0].T).reshape(kind.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)

        def value(n: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
            return data[x, c]

        return te.compute(recipe.out_shape, value, "pixels")


@dataclass(frozen=True, kw_only=True)
class QImageAsRows(IntegerNode):
    """``output[n, c] = data[0, c, 0, n]``: pixels of [1, C, 1, N] become vectors [N, C]."""

    data: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if len(shapes[0]) != 4 or (shapes[0][0], shapes[0][2]) != (1, 1):
            raise self.error("an image [1, C, 1, N]", list(shapes[0]))
        return shapes[0][3], shapes[0][1]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.ascontiguousarray(args[0].reshape(kind.shape[::-1]).T)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        zero = te.const(0, "int32")
        return te.compute(recipe.out_shape, lambda n, c: data[zero, c, zero, n], "vectors")
