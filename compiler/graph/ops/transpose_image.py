"""Channels and pixels of an image in each other's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import IntegerNode, Recipe
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor


@dataclass(frozen=True, kw_only=True)
class QTransposeImage(IntegerNode):
    """``output[n, w, 0, c] = data[n, c, 0, w]``."""

    data: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        n, c, h, w = shapes[0]
        if h != 1:
            raise self.error("an image [N, C, 1, W]", list(shapes[0]))
        return n, w, 1, c

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.ascontiguousarray(args[0].swapaxes(1, 3))

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        return te.compute(recipe.out_shape, lambda n, c, y, w: data[n, w, y, c], "transposed")
