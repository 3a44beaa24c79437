"""Convolutions of images.

Their plain expression reads a padded copy of the data in N, H, W, C order, centered and widened to
int16, and weights as [O, KH, KW * I]: the innermost loop is a dot product over neighbouring bytes
of a row, which LLVM vectorizes. A depthwise convolution has no such product;
there the channels are the innermost loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import inside
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.island import Island
from vdla.compiler.graph.ops.epilogue import Step, extended
from vdla.compiler.graph.ops.products import (
    FloatProducts,
    Products,
    QProducts,
    bias_of,
    centered,
    quantized_products,
)
from vdla.compiler.graph.ops.window import Windowed
from vdla.compiler.graph.rounding import in_the_middle
from vdla.compiler.graph.sums import within
from vdla.compiler.graph.types import Array, Pair, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

OWN = 3  # operands of a convolution itself: data, weight, bias
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class AnyConv2d(Products, Windowed, operator=False):
    """Fields and shapes of all convolutions. ``groups`` of channels see each other alone."""

    groups: int = 1
    bias: str | None

    def kernel_of(self, shapes: Sequence[Shape]) -> Pair:
        _, _, h, w = shapes[1]
        return h, w

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, weight = shapes[0], shapes[1]
        if len(weight) != 4:
            raise self.error("a weight of shape [O, I, KH, KW]", list(weight))
        h, w = self.places(shapes)
        if self.groups < 1:
            raise self.error("at least 1 group", self.groups)
        if data[1] != weight[1] * self.groups:
            raise self.error(f"{weight[1] * self.groups} input channels", data[1])
        if weight[0] % self.groups:
            raise self.error(f"output channels divisible by {self.groups} groups", weight[0])
        self.check_channels(shapes, weight[0])
        return (data[0], weight[0], h, w)

    def products(self, x: Array, weight: Array) -> Array:
        """Σ data * weight, in the operands' float type."""
        depthwise = weight.shape[1] == 1 and self.groups == x.shape[1]
        return self._depthwise(x, weight) if depthwise else self._convolved(x, weight)

    def _convolved(self, x: Array, weight: Array) -> Array:
        o, i, kh, kw = weight.shape
        views = self.views(x, (kh, kw), 0)
        n, _, _, _, oh, ow = views.shape
        result = np.empty((n, o, oh, ow), x.dtype)
        per = o // self.groups
        for g in range(self.groups):
            columns = views[:, g * i : (g + 1) * i].reshape(n, i * kh * kw, oh * ow)
            matrix = weight[g * per : (g + 1) * per].reshape(per, -1)
            result[:, g * per : (g + 1) * per] = (matrix @ columns).reshape(n, per, oh, ow)
        return result

    def _depthwise(self, x: Array, weight: Array) -> Array:
        o, _, kh, kw = weight.shape
        views = self.views(x, (kh, kw), 0)
        if o != x.shape[1]:
            views = np.repeat(views, o // x.shape[1], axis=1)
        total = np.zeros((views.shape[0], o, *views.shape[4:]), x.dtype)
        for r in range(kh):
            for s in range(kw):
                total += views[:, :, r, s] * weight[None, :, 0, r, s, None, None]
        return total

    def sums(self, recipe: Recipe, bias: str | None, zero_point: int, wide: str) -> Tensor:
        """[N, OH, OW, O]: bias + Σ data * weight, in int32 or float32."""
        data = recipe.read(self.data)
        o, i, kh, kw = recipe.shape(self.weight)
        padded = self._padded(data, zero_point, "int16" if wide == "int32" else wide)
        n, (oh, ow) = padded.shape[0], recipe.shape(self.output)[2:]
        (sh, sw), (dh, dw) = self.strides, self.dilations
        ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
        per = o // self.groups
        start = bias_of(recipe, bias, wide)
        if i == 1 and self.groups > 1:
            weight = _weight(recipe, self.weight, (2, 3, 0, 1))

            def tap(b: Expr, y: Expr, x: Expr, c: Expr) -> Expr:
                source = te.floordiv(c, per) if per > 1 else c
                seen = padded[b, y * sh + ry * dh, x * sw + rx * dw, source]
                product = seen.astype(wide) * weight(c, 0, ry, rx).astype(wide)
                return te.sum(product, axis=[ry, rx], init=start(c))

            return te.compute((n, oh, ow, o), tap, "acc")
        rc = te.reduce_axis((0, i), "rc")
        weight = _weight(recipe, self.weight, (0, 2, 3, 1))

        def dot(b: Expr, y: Expr, x: Expr, c: Expr) -> Expr:
            source = te.floordiv(c, per) * i + rc if self.groups > 1 else rc
            seen = padded[b, y * sh + ry * dh, x * sw + rx * dw, source]
            product = seen.astype(wide) * weight(c, rc, ry, rx).astype(wide)
            return te.sum(product, axis=[ry, rx, rc], init=start(c))

        return te.compute((n, oh, ow, o), dot, "acc")

    def _padded(self, data: Tensor, zero_point: int, dtype: str) -> Tensor:
        """[N, H, W * C]: centered data with its padding, channels innermost."""
        n, c, h, w = data.shape
        top, left, bottom, right = self.pads

        def value(b: Expr, y: Expr, x: Expr, channel: Expr) -> Expr:
            real: Expr = data[b, channel, y - top, x - left]
            if dtype == "int16":
                real = (real.astype("int32") - zero_point).astype(dtype)
            if not any(self.pads):
                return real
            here = te.all(inside(y - top, h), inside(x - left, w))
            return te.select(here, real, te.const(0, dtype))

        return te.compute((n, h + top + bottom, w + left + right, c), value, "padded")


def _weight(recipe: Recipe, name: str, order: tuple[int, ...]) -> Callable[..., Expr]:
    """The weight at (o, i, y, x); a constant one is rearranged now, its axes in ``order``."""
    array = recipe.value(name)
    if array is None:
        plain = recipe.read(name)
        return lambda *i: plain[i]
    table = recipe.constant("weight", np.ascontiguousarray(array.transpose(order)))
    return lambda *i: table[tuple(i[axis] for axis in order)]


@dataclass(frozen=True, kw_only=True)
class Conv2d(FloatProducts, AnyConv2d):
    """``bias[o] + Σ data * weight``."""

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        total = self.products(args[0], args[1])
        return total + args[2][:, None, None] if len(args) > 2 else total

    def express(self, recipe: Recipe) -> Tensor:
        acc = self.sums(recipe, self.bias, 0, "float32")
        return te.compute(recipe.out_shape, lambda b, c, y, x: acc[b, y, x, c], "out")

    def is_depthwise(self, shapes: Sequence[Shape]) -> bool:
        data, weight = shapes[0], shapes[1]
        return self.groups == data[1] == weight[0]

    def whole(self, weights: Array) -> tuple[FloatProducts, Array]:
        o, i, *kernel = weights.shape
        result = np.zeros((o, i * self.groups, *kernel), weights.dtype)
        for group, rows in enumerate(np.split(np.arange(o), self.groups)):
            result[rows, group * i : (group + 1) * i] = weights[rows]
        return replace(self, groups=1), result

    def quantized(self, island: Island) -> Node:
        """A :class:`QConv2d`."""
        return QConv2d(
            **quantized_products(self, self.data, self.weight, self.bias, island),
            strides=self.strides,
            pads=self.pads,
            dilations=self.dilations,
            groups=self.groups,
        )


@dataclass(frozen=True, kw_only=True)
class QConv2d(QProducts, AnyConv2d):
    """An int8 convolution with its requantization and what comes behind.

    ``acc = bias[o] + Σ (data - zeros[0]) * weight`` in int32, a padded position contributing
    nothing; the result is that, requantized, behind the steps of ``epilogue``. ``moves`` says that
    each output channel has at most one weight of 1, the others being 0: nothing is multiplied for
    its own sake.
    """

    moves: bool = False
    epilogue: tuple[Step, ...] = ()

    @property
    def op(self) -> str:
        """With the steps behind it: ``QConv2d+Add+Table``; a ``Move`` where nothing is multiplied
        for its own sake."""
        own = "Move" if self.moves else type(self).__name__
        steps = (type(step).__name__.removesuffix("Step") for step in self.epilogue)
        return "+".join((own, *steps))

    @property
    def is_plain(self) -> bool:
        """Whether it multiplies, and nothing comes behind."""
        return not self.moves and not self.epilogue

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        result = super().result_shape(shapes[:OWN])
        for step, some in self._steps(shapes):
            step.check(self, result, some)
        return result

    def renamed(self, names: Mapping[str, str]) -> Self:
        """A copy whose steps read other tensors, too."""
        epilogue = tuple(step.renamed(names) for step in self.epilogue)
        return replace(super().renamed(names), epilogue=epilogue)

    def clipped(self, low: int, high: int) -> Node | None:
        """The convolution with narrower bounds, where nothing comes behind them."""
        return None if self.epilogue else super().clipped(low, high)

    def with_step(self, node: Node) -> Node | None:
        """The convolution with one more step."""
        epilogue = None if self.moves else extended(self.epilogue, node, self.output)
        return replace(self, output=node.output, epilogue=epilogue) if epilogue else None

    def accumulated(self, args: Sequence[Array]) -> Array:
        total = self.products(centered(args[0], self.zeros[0]), args[1].astype(np.float64))
        return within(total.astype(np.int64) + args[2][:, None, None])

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        value = self.narrow(self.accumulated(args))
        for step, some in self._steps(args):
            value = step.evaluate(value, some)
        return value

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, Array | int]:
        """Values that the last step rounds, or the sums."""
        result = super().before_rounding(args)
        value = self.narrow(self.accumulated(args)) if self.epilogue else result[0]
        for step, some in self._steps(args):
            result = step.before_rounding(value, in_the_middle(*result), some)
            value = step.evaluate(value, some)
        return result

    def express(self, recipe: Recipe) -> Tensor:
        acc = self.sums(recipe, self.bias, self.zeros[0], "int32")
        narrow = self.narrowing(recipe)
        return self.finished(recipe, lambda b, c, y, x: narrow(acc[b, y, x, c], c))

    def finished(self, recipe: Recipe, value: Callable[..., Expr]) -> Tensor:
        """The node's result from the convolution's int8 value at an element, as the result lies."""
        for step in self.epilogue:
            value = step.express(recipe, value)
        return te.compute(recipe.out_shape, value, "out")

    def _steps(self, operands: Sequence[T]) -> Iterator[tuple[Step, Sequence[T]]]:
        """Each step with its part of what the node reads."""
        first = OWN
        for step in self.epilogue:
            end = first + len(step.own_inputs)
            yield step, operands[first:end]
            first = end
