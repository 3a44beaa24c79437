"""Batch normalization at inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Array, Node, Recipe, Shape, TensorType
from vdla.compiler.te import Tensor


@dataclass(frozen=True, kw_only=True)
class BatchNorm(Node):
    """``data * factor[c] + offset[c]``: the inference form, its two vectors precomputed."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "factor", "offset")

    data: str
    factor: str
    offset: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        column = (-1, *(1,) * (args[0].ndim - 2))
        return np.asarray(args[0] * args[1].reshape(column) + args[2].reshape(column))

    def express(self, recipe: Recipe) -> Tensor:
        data, factor, offset = (recipe.read(n) for n in (self.data, self.factor, self.offset))
        return te.compute(
            recipe.out_shape, lambda *i: data[i] * factor[i[1]] + offset[i[1]], "normalized"
        )
