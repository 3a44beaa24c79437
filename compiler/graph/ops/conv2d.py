"""Convolutions of images.

Their plain expression reads a padded copy of the data in N, H, W, C order, centered and widened to
int16, and weights as [O, KH, KW * I]: the innermost loop is a dot product over neighbouring bytes
of a row, which LLVM vectorizes. A depthwise convolution has no such product;
there the channels are the innermost loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import clipped, inside, requantized, shifted
from vdla.compiler.graph.ir import Array, Node, Pair, Recipe, Shape, TensorType
from vdla.compiler.graph.island import Island
from vdla.compiler.graph.numbers import add_terms, pack_scales, requantize
from vdla.compiler.graph.ops.add import QAdd, fixed_point_sum
from vdla.compiler.graph.ops.products import (
    FloatProducts,
    Products,
    QProducts,
    bias_of,
    centered,
    quantized_products,
    word_of,
)
from vdla.compiler.graph.ops.table import LEAST, QTable, check_table
from vdla.compiler.graph.ops.window import Windowed
from vdla.compiler.graph.rounding import in_the_middle
from vdla.compiler.graph.sums import within
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr


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
        n, _, oh, ow = recipe.shape(self.output)
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
    """An int8 convolution with its requantization and clip.

    ``acc = bias[o] + Σ (data - in_zp) * weight`` in int32, a padded position contributing nothing;
    ``output = clip(rq(acc, scale[o]) + out_zp, lo, hi)``. ``scale`` holds float32 values, one per
    output channel: ``float32(x_scale * w_scale[o] / y_scale)``.
    """

    def accumulated(self, args: Sequence[Array]) -> Array:
        total = self.products(centered(args[0], self.in_zp), args[1].astype(np.float64))
        return within(total.astype(np.int64) + args[2][:, None, None])

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        words = pack_scales(self.scale)[:, None, None]
        return requantize(self.accumulated(args), words, self.out_zp, self.lo, self.hi)

    def express(self, recipe: Recipe) -> Tensor:
        acc = self.sums(recipe, self.bias, self.in_zp, "int32")
        word = word_of(recipe, self.scale)

        def value(b: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
            return requantized(acc[b, y, x, c], word(c), self.out_zp, self.lo, self.hi)

        return self.finished(recipe, value)

    def with_addition(self, addition: Node) -> Node | None:
        """A :class:`QConv2dAdd`."""
        if type(self) is not QConv2d or not isinstance(addition, QAdd):
            return None
        first = addition.a == self.output
        values = dict(self.attributes())
        return QConv2dAdd(
            name=self.name,
            output=addition.output,
            data=self.data,
            weight=self.weight,
            bias=self.bias,
            residual=addition.b if first else addition.a,
            add_scales=addition.scales if first else (addition.scales[1], addition.scales[0]),
            res_zp=addition.b_zp if first else addition.a_zp,
            add_zp=addition.out_zp,
            add_lo=addition.lo,
            add_hi=addition.hi,
            **values,
        )

    def with_table(self, look_up: Node) -> Node | None:
        """A :class:`QConv2dTable` or, with a residual, a :class:`QConv2dAddTable`."""
        kinds: dict[type[QConv2d], type[_LookedUp]] = {
            QConv2d: QConv2dTable, QConv2dAdd: QConv2dAddTable,
        }  # fmt: skip
        if type(self) not in kinds or not isinstance(look_up, QTable):
            return None
        values = self.values() | {"output": look_up.output, "table": look_up.table}
        return kinds[type(self)](**values)

    def finished(self, recipe: Recipe, value: Callable[..., Expr]) -> Tensor:
        """The node's result from the convolution's int8 value at an element, as the result lies."""
        return te.compute(recipe.out_shape, value, "out")


@dataclass(frozen=True, kw_only=True)
class QConv2dAdd(QConv2d):
    """A :class:`QConv2d` and the :class:`QAdd` of its int8 result with ``residual``.

    The fields of ``QConv2d`` make the convolution's int8 value ``v`` (zero point ``out_zp``); then
    ``sum = (v - out_zp) * A + (residual - res_zp) * B`` and
    ``output = clip(rq(sum, 2**-k) + add_zp, add_lo, add_hi)``, with
    ``A, B, k = add_terms(*add_scales)``. A residual [1, C, 1, 1] is added at each pixel.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "weight", "bias", "residual")
    ADDEND: ClassVar[str] = "residual"
    CLIPS: ClassVar[bool] = False  # the sum is clipped later

    residual: str
    add_scales: tuple[float, float]
    res_zp: int
    add_zp: int
    add_lo: int = -128
    add_hi: int = 127

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        result = super().result_shape(shapes)
        if shapes[3] not in (result, (1, result[1], 1, 1)):
            raise self.error(f"a residual of shape {list(result)}", list(shapes[3]))
        return result

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        value = super().evaluate(args, kind)
        zero_points = (self.out_zp, self.res_zp, self.add_zp)
        limits = (self.add_lo, self.add_hi)
        return fixed_point_sum(value, args[3], self.add_scales, zero_points, limits)

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, Array | int]:
        """The sum of both terms; of any size where the convolution's own rounding is undecided."""
        unclear = in_the_middle(*super().before_rounding(args))
        value = super().evaluate(args, TensorType((), "int8")).astype(np.float64)
        own = (value - self.out_zp) * self.add_scales[0]
        other = (args[3].astype(np.float64) - self.res_zp) * self.add_scales[1]
        return own + other, np.where(unclear, np.inf, np.abs(own) + np.abs(other)), 5

    def finished(self, recipe: Recipe, value: Callable[..., Expr]) -> Tensor:
        residual = recipe.read(self.residual)
        term, term_residual, k = add_terms(*self.add_scales)

        def total(*i: Expr) -> Expr:
            left = (value(*i).astype("int32") - self.out_zp) * term
            place = i if residual.shape == recipe.out_shape else (0, i[1], 0, 0)
            right = (residual[place].astype("int32") - self.res_zp) * term_residual
            return clipped(shifted(left + right, k), self.add_zp, self.add_lo, self.add_hi)

        return te.compute(recipe.out_shape, total, "out")


@dataclass(frozen=True, kw_only=True)
class _LookedUp(QConv2d, operator=False):
    """Convolution that looks its int8 result ``v`` up: ``output = table[v + 128]``."""

    PARAMETERS: ClassVar[tuple[str, ...]] = ("weight", "bias", "table")
    CLIPS: ClassVar[bool] = False  # the table's results aren't those of the clip

    table: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        check_table(self, shapes[-1])
        return super().result_shape(shapes[:-1])

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        value = super().evaluate(args[:-1], kind)
        return np.asarray(args[-1][value.astype(np.int32) - LEAST])

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, Array | int]:
        """Any size where the value looked up may round either way, and none elsewhere."""
        unclear = in_the_middle(*super().before_rounding(args[:-1]))
        return np.full(unclear.shape, 0.25), np.where(unclear, np.inf, 0.0), 1

    def finished(self, recipe: Recipe, value: Callable[..., Expr]) -> Tensor:
        before, table = super().finished(recipe, value), recipe.read(self.table)
        return te.compute(
            recipe.out_shape, lambda *i: table[before[i].astype("int32") - LEAST], "looked_up"
        )


@dataclass(frozen=True, kw_only=True)
class QConv2dTable(_LookedUp):
    """A :class:`QConv2d` and the :class:`QTable` of its int8 result."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "weight", "bias", "table")


@dataclass(frozen=True, kw_only=True)
class QConv2dAddTable(_LookedUp, QConv2dAdd):
    """A :class:`QConv2dAdd` and the :class:`QTable` of its int8 result."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "weight", "bias", "residual", "table")


@dataclass(frozen=True, kw_only=True)
class QSelect(QConv2d):
    """A :class:`QConv2d` with at most one weight of 1 for each output channel, the others 0."""

    MOVES: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class QSelectAdd(QConv2dAdd):
    """A :class:`QSelect` and what is in the other channels already, as the residual."""

    MOVES: ClassVar[bool] = True
