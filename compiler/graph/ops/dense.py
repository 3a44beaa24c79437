"""Dense layers: every output is a weighted sum of all inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.axes import RESULT, Axes
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.island import Island
from vdla.compiler.graph.ops.products import (
    FloatProducts,
    Products,
    QProducts,
    bias_of,
    centered,
    quantized_products,
)
from vdla.compiler.graph.sums import within
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class AnyDense(Products, operator=False):
    """Shapes and expression of both dense layers, of floats and of integers."""

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, weight = shapes[0], shapes[1]
        image = len(data) in (2, 4) and prod(data[1:]) == weight[-1]
        if not image or len(weight) != 2:
            raise self.error(f"data of shape [N, {weight[-1]}]", list(data))
        self.check_channels(shapes, weight[0])
        return (data[0], weight[0])

    def operands(self, recipe: Recipe) -> tuple[Tensor, Tensor]:
        """The data as vectors, and the weights."""
        weight = recipe.read(self.weight)
        batch = recipe.shape(self.data)[0]
        return recipe.read(self.data, (batch, weight.shape[1])), weight


@dataclass(frozen=True, kw_only=True)
class Dense(FloatProducts, AnyDense):
    """``bias[o] + Σ_i data[n, i] * weight[o, i]``."""

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        total = args[0].reshape(len(args[0]), -1) @ args[1].T
        return total + args[2] if len(args) > 2 else total

    def express(self, recipe: Recipe) -> Tensor:
        data, weight = self.operands(recipe)
        start = bias_of(recipe, self.bias, "float32")
        step = te.reduce_axis((0, data.shape[1]), "i")
        return te.compute(
            recipe.out_shape,
            lambda b, c: te.sum(data[b, step] * weight[c, step], axis=step, init=start(c)),
            "out",
        )

    def quantized(self, island: Island) -> Node:
        """A :class:`QDense`."""
        return QDense(**quantized_products(self, self.data, self.weight, self.bias, island))


@dataclass(frozen=True, kw_only=True)
class QDense(QProducts, AnyDense):
    """An int8 dense layer on data of [N, I], or on images [N, C, H, W] of as many elements.

    ``acc = bias[o] + Σ (data - zeros[0]) * weight`` in int32, requantized.
    """

    def aligned_axes(self, shapes: Sequence[Shape], result: Shape) -> Axes:
        """Vectors, inputs with weights, outputs with weights and biases; of images only these."""
        outputs = frozenset({(RESULT, 1), (1, 0), *((2, 0) for _ in shapes[2:])})
        vectors = frozenset({(RESULT, 0), (0, 0)}), frozenset({(0, 1), (1, 1)})
        return (outputs, *vectors) if len(shapes[0]) == len(result) else (outputs,)

    def accumulated(self, args: Sequence[Array]) -> Array:
        data = centered(args[0].reshape(len(args[0]), -1), self.zeros[0])
        return within((data @ args[1].T.astype(np.float64)).astype(np.int64) + args[2])

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return self.narrow(self.accumulated(args))

    def express(self, recipe: Recipe) -> Tensor:
        data, weight = self.operands(recipe)
        start, narrow = bias_of(recipe, self.bias, "int32"), self.narrowing(recipe)
        step = te.reduce_axis((0, data.shape[1]), "i")

        def dot(b: Expr, c: Expr) -> Expr:
            factor = data[b, step].astype("int32") - self.zeros[0]
            return te.sum(factor * weight[c, step].astype("int32"), axis=step, init=start(c))

        acc = te.compute(recipe.out_shape, dot, "acc")
        return te.compute(recipe.out_shape, lambda b, c: narrow(acc[b, c], c), "out")
