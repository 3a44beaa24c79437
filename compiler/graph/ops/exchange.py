"""Vectors one behind another as the pixels of an image, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import IntegerNode, Recipe
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor

VECTORS = 2  # dimensions of vectors [N, C]


@dataclass(frozen=True, kw_only=True)
class QExchange(IntegerNode):
    """Vectors [N, C] as the pixels of an image [1, C, 1, N], or such pixels as vectors."""

    data: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if len(shapes[0]) == VECTORS:
            rows, channels = shapes[0]
            return 1, channels, 1, rows
        if len(shapes[0]) != 4 or (shapes[0][0], shapes[0][2]) != (1, 1):
            raise self.error("vectors [N, C] or an image [1, C, 1, N]", list(shapes[0]))
        return shapes[0][3], shapes[0][1]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        matrix = args[0] if args[0].ndim == VECTORS else args[0][0, :, 0]
        return np.ascontiguousarray(matrix.T).reshape(kind.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data, zero = recipe.read(self.data), te.const(0, "int32")
        if len(data.shape) == VECTORS:
            return te.compute(recipe.out_shape, lambda n, c, y, x: data[x, c], "pixels")
        return te.compute(recipe.out_shape, lambda n, c: data[zero, c, zero, n], "vectors")
