"""Pools over images: the largest element, or the mean, under a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import Array, IntegerNode, Node, Pair, Recipe, Shape, TensorType
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.numbers import f32, pool_scale, requantize
from vdla.compiler.graph.ops.window import Windowed
from vdla.compiler.te import IterVar, Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.numbers import pack_scale

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


@dataclass(frozen=True, kw_only=True)
class AvgPool(AnyAvgPool, Quantizable):
    """The mean under the window."""

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        total = self.views(args[0], self.kernel, 0).sum(axis=(2, 3), dtype=np.float32)
        return np.asarray(total / self.counts(args[0].shape).astype(np.float32))

    def express(self, recipe: Recipe) -> Tensor:
        seen, axes = self.seen(recipe, te.const(0, "float32")), self.axes()
        total = recipe.compute(lambda *i: te.sum(seen(*i, *axes), axis=axes), "total")
        counts = self.counts(recipe.shape(self.data)).astype(np.float32)
        table = recipe.constant("count", counts)
        return te.compute(recipe.out_shape, lambda *i: total[i] / table[i[2], i[3]], "out")

    def quantized(self, island: Island) -> Node:
        """A :class:`QAvgPool`."""
        data, quant = island.source(self.data)
        island.check_scale(pool_scale(quant.scale, island.out.scale, 1))
        pool = QAvgPool(
            **island.names,
            data=data,
            in_scale=f32(quant.scale),
            out_scale=f32(island.out.scale),
            in_zp=quant.zero_point,
            out_zp=island.out.zero_point,
            kernel=self.kernel,
            strides=self.strides,
            pads=self.pads,
            dilations=self.dilations,
            include_pad=self.include_pad,
            **island.clip,
        )
        pool.check_multiple(island.editor.tensors[data].shape)
        return pool


@dataclass(frozen=True, kw_only=True)
class QAvgPool(IntegerNode, AnyAvgPool):
    """The mean of int8 values under the window, requantized once.

    ``sum = Σ (data - in_zp)`` in int32, and
    ``output = clip(rq(sum * (m / count), s) + out_zp, lo, hi)``
    with ``s = float32(in_scale / (out_scale * m))``. ``count`` is the kernel's area when
    ``include_pad`` (or where nothing is padded), else the number of real elements under the
    window; ``m`` is the least common multiple of all counts.
    """

    CLIPS: ClassVar[bool] = True

    in_scale: float
    out_scale: float
    in_zp: int
    out_zp: int
    lo: int = -128
    hi: int = 127

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        result = super().result_shape(shapes)
        self.check_multiple(shapes[0])
        return result

    def check_multiple(self, shape: Sequence[int]) -> None:
        """Raises GraphError where sums of data of ``shape``, times their factors, leave int32."""
        if (multiple := self.multiple(shape)) > MOST_MULTIPLE:
            expected = f"divisors whose least common multiple is at most {MOST_MULTIPLE:,}"
            raise self.error(expected, f"{multiple:,}")

    def multiple(self, shape: Sequence[int]) -> int:
        """The least common multiple of all divisors, for data of ``shape``."""
        return lcm(*(max(int(count), 1) for count in np.unique(self.counts(shape))))

    def factors(self, shape: Sequence[int]) -> Array:
        """[OH, OW]: what the sum at each output place is multiplied by, for data of ``shape``."""
        counts = np.maximum(self.counts(shape), 1).astype(np.int64)
        return np.asarray(self.multiple(shape) // counts)

    def scale(self, shape: Sequence[int]) -> float:
        """The scale of all sums, multiplied by their factors."""
        return pool_scale(self.in_scale, self.out_scale, self.multiple(shape))

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        shape = args[0].shape
        centered = args[0].astype(np.float64) - self.in_zp
        total = self.views(centered, self.kernel, 0).sum(axis=(2, 3)).astype(np.int64)
        word = pack_scale(self.scale(shape))
        return requantize(total * self.factors(shape), word, self.out_zp, self.lo, self.hi)

    def express(self, recipe: Recipe) -> Tensor:
        seen, axes = self.seen(recipe, te.const(self.in_zp, "int8")), self.axes()

        def total(*i: Expr) -> Expr:
            return te.sum(seen(*i, *axes).astype("int32") - self.in_zp, axis=axes)

        acc = recipe.compute(total, "total")
        shape = recipe.shape(self.data)
        factors = self.factors(shape).astype(np.int32)
        table = recipe.constant("factor", factors) if factors.max() > 1 else None
        word = te.const(pack_scale(self.scale(shape)), "int32")

        def value(*i: Expr) -> Expr:
            multiplied = acc[i] if table is None else acc[i] * table[i[2], i[3]]
            return requantized(multiplied, word, self.out_zp, self.lo, self.hi)

        return te.compute(recipe.out_shape, value, "out")

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, Array]:
        """The sum at the result's scale."""
        centered = args[0].astype(np.float64) - self.in_zp
        counts = np.maximum(self.counts(args[0].shape), 1)
        views = self.views(centered, self.kernel, 0)
        scale = self.in_scale / (self.out_scale * counts)
        total, size = views.sum(axis=(2, 3)), np.abs(views).sum(axis=(2, 3))
        return total * scale, size * scale, counts + 3
