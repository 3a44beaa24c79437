"""Pools over images: the largest element, or the mean, under a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import IntegerNode, Node, Recipe
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.numbers import pool_scale
from vdla.compiler.graph.ops.window import Windowed
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.types import Array, Pair, Shape, TensorType
from vdla.compiler.te import IterVar, Tensor
from vdla.compiler.tir.ir import Expr

MOST_MULTIPLE = 1 << 23  # with which sums of int8's differences stay in int32: 255 << 23 < 1 << 31


@dataclass(frozen=True, kw_only=True)
class Pool(Windowed, operator=False):
    """A window that leaves the channels as they are."""

    kernel: Pair

    def kernel_of(self, shapes: Sequence[Shape]) -> Pair:
        return self.kernel

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return (*shapes[0][:2], *self.places(shapes))

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of the operand."""
        return operands[0].block

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        return prod(result) * prod(self.kernel)

    def axes(self) -> list[IterVar]:
        """The two axes that a pool reduces over."""
        h, w = self.kernel
        return [te.reduce_axis((0, h), "ry"), te.reduce_axis((0, w), "rx")]


@dataclass(frozen=True, kw_only=True)
class AnyMaxPool(Pool, operator=False):
    """Expression of both max pools, of floats and of integers."""

    def express(self, recipe: Recipe) -> Tensor:
        dtype = recipe.out_dtype
        lowest = -128 if dtype == "int8" else -np.inf
        seen, axes = self.seen(recipe, te.const(lowest, dtype)), self.axes()
        return recipe.compute(lambda *i: te.max(seen(*i, *axes), axis=axes))


@dataclass(frozen=True, kw_only=True)
class QMaxPool(IntegerNode, AnyMaxPool):
    """The largest int8 under the window; padding is -128, which never wins."""

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.asarray(self.views(args[0], self.kernel, -128).max(axis=(2, 3)))


@dataclass(frozen=True, kw_only=True)
class MaxPool(AnyMaxPool):
    """The largest element under the window; padding never wins."""

    ON_INT8: ClassVar[type[Node] | None] = QMaxPool

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.asarray(self.views(args[0], self.kernel, -np.inf).max(axis=(2, 3)))


@dataclass(frozen=True, kw_only=True)
class AnyAvgPool(Pool, operator=False):
    """Divisors and expression of both average pools, of floats and of integers.

    ``include_pad``: padding counts as zeros, else not at all.
    """

    include_pad: bool = False

    def counts(self, shape: Sequence[int]) -> Array:
        """[OH, OW]: the divisor at each output place, for data of ``shape``."""
        ones = np.ones((1, 1, *shape[2:]))
        views = self.views(ones, self.kernel, float(self.include_pad))
        return np.asarray(views.sum(axis=(2, 3))[0, 0])

    def multiple(self, shape: Sequence[int]) -> int:
        """The least common multiple of all divisors, for data of ``shape``."""
        return lcm(*(max(int(count), 1) for count in np.unique(self.counts(shape))))

    def check_multiple(self, shape: Sequence[int]) -> None:
        """Raises GraphError where sums of int8 data of ``shape``, times their factors, leave
        int32."""
        if (multiple := self.multiple(shape)) > MOST_MULTIPLE:
            expected = f"divisors whose least common multiple is at most {MOST_MULTIPLE:,}"
            raise self.error(expected, f"{multiple:,}")


@dataclass(frozen=True, kw_only=True)
class AvgPool(AnyAvgPool, Quantizable):
    """The mean under the window."""

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        total = self.views(args[0], self.kernel, 0).sum(axis=(2, 3), dtype=kind.dtype)
        return np.asarray(total / self.counts(args[0].shape).astype(kind.dtype))

    def express(self, recipe: Recipe) -> Tensor:
        seen, axes = self.seen(recipe, te.const(0, "float32")), self.axes()
        total = recipe.compute(lambda *i: te.sum(seen(*i, *axes), axis=axes), "total")
        counts = self.counts(recipe.shape(self.data)).astype(np.float32)
        table = recipe.constant("count", counts)
        return te.compute(recipe.out_shape, lambda *i: total[i] / table[i[2], i[3]], "out")

    def quantized(self, island: Island) -> Node:
        """A :class:`QAvgPool`."""
        data, quant = island.source(self.data)
        shape = island.editor.shape(data)
        self.check_multiple(shape)
        scale = pool_scale(quant.scale, island.out.scale, self.multiple(shape))
        fields = {**self.values(), **island.names, "data": data}
        return QAvgPool(**fields, zeros=(quant.zero_point,), requant=island.requant(scale))


@dataclass(frozen=True, kw_only=True)
class QAvgPool(Requantized, AnyAvgPool):
    """The mean of int8 values under the window, requantized once.

    ``sum = Σ (data - zeros[0])`` in int32, and what is requantized is ``sum * (m / count)``, with
    ``requant.scale = float32(x_scale / (y_scale * m))``. ``count`` is the kernel's area when
    ``include_pad`` (or where nothing is padded), else the number of real elements under the
    window; ``m`` is the least common multiple of all counts.
    """

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        result = super().result_shape(shapes)
        self.check_multiple(shapes[0])
        return result

    def factors(self, shape: Sequence[int]) -> Array:
        """[OH, OW]: what the sum at each output place is multiplied by, for data of ``shape``."""
        counts = np.maximum(self.counts(shape), 1).astype(np.int64)
        return np.asarray(self.multiple(shape) // counts)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        centered = args[0].astype(np.float64) - self.zeros[0]
        total = self.views(centered, self.kernel, 0).sum(axis=(2, 3)).astype(np.int64)
        return self.narrow(total * self.factors(args[0].shape))

    def express(self, recipe: Recipe) -> Tensor:
        (zero,), axes = self.zeros, self.axes()
        seen = self.seen(recipe, te.const(zero, "int8"))

        def total(*i: Expr) -> Expr:
            return te.sum(seen(*i, *axes).astype("int32") - zero, axis=axes)

        acc = recipe.compute(total, "total")
        factors = self.factors(recipe.shape(self.data)).astype(np.int32)
        table = recipe.constant("factor", factors) if factors.max() > 1 else None
        narrow = self.narrowing(recipe)

        def value(*i: Expr) -> Expr:
            return narrow(acc[i] if table is None else acc[i] * table[i[2], i[3]])

        return te.compute(recipe.out_shape, value, "out")

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, Array]:
        """The sum at the result's scale."""
        centered = args[0].astype(np.float64) - self.zeros[0]
        counts = np.maximum(self.counts(args[0].shape), 1)
        views = self.views(centered, self.kernel, 0)
        scale = self.requant.scale[0] * self.factors(args[0].shape)
        total, size = views.sum(axis=(2, 3)), np.abs(views).sum(axis=(2, 3))
        return total * scale, size * scale, counts + 4
