"""Pools over images: the largest element, or the mean, under a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import Array, IntegerNode, Node, Pair, Recipe, Shape, TensorType
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.numbers import f32, pack_scales, pool_scale, requantize
from vdla.compiler.graph.ops.window import Windowed
from vdla.compiler.te import IterVar, Tensor
from vdla.compiler.tir.ir import Expr


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
    """What the two max pools share: all but their elements' type."""

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
    """What the two average pools share.

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
        return QAvgPool(
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


@dataclass(frozen=True, kw_only=True)
class QAvgPool(IntegerNode, AnyAvgPool):
    """The mean of int8 values under the window, requantized once.

    ``sum = Σ (data - in_zp)`` in int32; ``output = clip(rq(sum, s) + out_zp, lo, hi)`` with
    ``s = float32(in_scale / (out_scale * count))``. ``count`` is the kernel's area when
    ``include_pad`` (or where nothing is padded), else the number of real elements under the window.
    """

    CLIPS: ClassVar[bool] = True

    in_scale: float
    out_scale: float
    in_zp: int
    out_zp: int
    lo: int = -128
    hi: int = 127

    @property
    def uniform(self) -> bool:
        """Whether every output has the same divisor, so that ``scale`` is the only scale."""
        return self.include_pad or not any(self.pads)

    @property
    def scale(self) -> float:
        """The scale of a window that lies wholly inside."""
        return pool_scale(self.in_scale, self.out_scale, self.kernel[0] * self.kernel[1])

    def words(self, shape: Sequence[int]) -> Array:
        """[OH, OW]: the packed scale at each output place, for data of ``shape``."""
        counts = self.counts(shape)
        scales = [pool_scale(self.in_scale, self.out_scale, max(int(c), 1)) for c in counts.flat]
        return pack_scales(scales).reshape(counts.shape)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        centered = args[0].astype(np.float64) - self.in_zp
        total = self.views(centered, self.kernel, 0).sum(axis=(2, 3)).astype(np.int64)
        return requantize(total, self.words(args[0].shape), self.out_zp, self.lo, self.hi)

    def express(self, recipe: Recipe) -> Tensor:
        seen, axes = self.seen(recipe, te.const(self.in_zp, "int8")), self.axes()

        def total(*i: Expr) -> Expr:
            return te.sum(seen(*i, *axes).astype("int32") - self.in_zp, axis=axes)

        acc = recipe.compute(total, "total")
        word = _word(recipe, self.words(recipe.shape(self.data)))

        def value(*i: Expr) -> Expr:
            return requantized(acc[i], word(i[2], i[3]), self.out_zp, self.lo, self.hi)

        return te.compute(recipe.out_shape, value, "out")

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, Array]:
        """The sum at the result's scale."""
        centered = args[0].astype(np.float64) - self.in_zp
        counts = np.maximum(self.counts(args[0].shape), 1)
        views = self.views(centered, self.kernel, 0)
        scale = self.in_scale / (self.out_scale * counts)
        total, size = views.sum(axis=(2, 3)), np.abs(views).sum(axis=(2, 3))
        return total * scale, size * scale, counts + 3


def _word(recipe: Recipe, words: Array) -> Callable[[Expr, Expr], Expr]:
    """The packed scale at an output place: a constant if all are equal."""
    if (words == words.flat[0]).all():
        word = te.const(int(words.flat[0]), "int32")
        return lambda y, x: word
    table = recipe.constant("scale", words)
    return lambda y, x: table[y, x]
