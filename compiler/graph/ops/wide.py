"""Tensors of 16 bits: int32 numbers from -MOST to MOST, and what computes with them.

A product multiplies int8 alone, so a tensor of 16 bits is read as two **bytes**, ``x = 256 * high +
low``, which are two images one behind another, low before high: [2 * N, C, H, W] of [N, C, H, W].
A product of both is a sum of two, ``(low_sum >> 8) + high_sum``, in steps of 256 times a step of
the low byte's product. MOST is the largest number whose high byte is an int8.

    Quantize16  Dequantize16      from and to real numbers
    QBytes                        both bytes
    QWideConv2d                   products of bytes or of int8, to 16 bits or to int8
    QWideSum                      a weighted sum of one or two tensors, to 16 bits or to int8
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.axes import Axes, by_element
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import GraphError, Node, Recipe
from vdla.compiler.graph.numbers import pack_scales, requantize
from vdla.compiler.graph.ops.conv2d import AnyConv2d
from vdla.compiler.graph.ops.quantize import AnyDequantize, Scaled
from vdla.compiler.graph.types import Array, Requant, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.numbers import INT32_MAX, INT32_MIN

BYTE_BITS = 8
MOST = 127 * 256 + 127
AFTER_BITS = 15  # of the factors of sums behind the point
SUM_BITS = 17  # of what is multiplied with a factor
MOST_FACTOR = (1 << 24) - 1  # a multiplier takes 25 bits, one of them the sign
SIXTEEN = frozenset({"int16", "uint16", "int32"})
MOST_OFFSET = 1 << 29  # of a QWideSum: with both products and half a step an int32
WEIGHT_BITS = 14  # of the weights of a QWideSum: two products of 16 bits fit in an int32


# Real numbers -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Quantize16(Scaled):
    """``clip(round_half_even(data / scale[c]) + zero_point[c], low, high)``, to int16 or uint16, or
    as int32."""

    CONVERTS: ClassVar[str] = "numbers"
    NOT_ACCELERATED: ClassVar[str] = "float input becomes integers"
    WRITES: ClassVar[frozenset[str]] = SIXTEEN

    low: int
    high: int

    @property
    def bits(self) -> str:
        """The tensor of integers: its result."""
        return self.output

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        scale, zero = (self.along(v, args[0].ndim) for v in (self.scale, self.zero_point))
        with np.errstate(invalid="ignore"):
            steps = np.rint(args[0].astype(np.float32) / scale.astype(np.float32))
        limited = np.clip(steps.astype(np.float64) + zero, self.low, self.high)
        return limited.astype(kind.dtype).reshape(kind.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        scale = self.lookup(recipe, self.scale, "scale", "float32")
        zero = self.lookup(recipe, self.zero_point, "zero", "int32")
        low, high = (
            self.lookup(recipe, [float(bound - z) for z in self.zero_point], name, "float32")
            for name, bound in (("low", self.low), ("high", self.high))
        )

        def value(*i: Expr) -> Expr:
            limited = te.minimum(te.maximum(te.rint(data[i] / scale(i)), low(i)), high(i))
            return (limited.astype("int32") + zero(i)).astype(recipe.out_dtype)

        return te.compute(recipe.out_shape, value, "quantized")


@dataclass(frozen=True, kw_only=True)
class Dequantize16(AnyDequantize):
    """``(data - zero_point[c]) * scale[c]`` in float32, of at most 17 bits."""

    READS: ClassVar[frozenset[str]] = SIXTEEN


# Bytes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class QBytes(Node):
    """The low and the high byte of int32 [N, …] of 16 bits, as int8 [2 * N, …]: of n, those at
    ``2 * n`` and ``2 * n + 1``."""

    READS: ClassVar[frozenset[str]] = frozenset({"int32"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8"})

    data: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        first, *rest = shapes[0]
        return 2 * first, *rest

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        high = (args[0] + (1 << (BYTE_BITS - 1))) >> BYTE_BITS
        low = args[0] - (high << BYTE_BITS)
        return np.stack([low, high], axis=1).reshape(kind.shape).astype(np.int8)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)

        def value(n: Expr, *i: Expr) -> Expr:
            whole = data[(te.floordiv(n, 2), *i)]
            high = (whole + (1 << (BYTE_BITS - 1))) >> BYTE_BITS
            low = whole - high * (1 << BYTE_BITS)
            return te.select(te.floormod(n, 2) > 0, high, low).astype("int8")

        return te.compute(recipe.out_shape, value, "bytes")

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of its data."""
        return operands[0].block


# Products ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Steps16:
    """Numbers, one for each channel, by which sums become 16 bits, without leaving an int32:
    ``((clip(sum, low, high) >> before) * factor + 2**14) >> 15``."""

    low: Array
    high: Array
    before: Array
    factor: Array

    @classmethod
    def of(cls, scale: Array, limits: tuple[int, int]) -> Steps16:
        """The numbers for sums whose unit is ``scale`` steps of a result within limits.

        Raises:
            GraphError: a unit is so large that a factor doesn't fit.
        """
        scale = scale.astype(np.float64)
        reach = np.minimum(np.ceil(MOST / np.maximum(scale, 1e-12)), INT32_MAX)
        before = np.maximum(np.ceil(np.log2(reach + 1)) - SUM_BITS, 0).astype(np.int64)
        factor = np.rint(scale * 2.0 ** (AFTER_BITS + before)).astype(np.int64)
        if factor.max() > MOST_FACTOR:
            raise GraphError(f"expected sums in units below 512 steps, found {scale.max():g}")
        half, divisor = 1 << (AFTER_BITS - 1), np.maximum(factor, 1)
        most = (((limits[1] + 1) << AFTER_BITS) - half - 1) // divisor
        least = -((half - (limits[0] << AFTER_BITS)) // divisor)
        ends = (least << before, ((most + 1) << before) - 1)
        low, high = (np.clip(end, INT32_MIN, INT32_MAX).astype(np.int32) for end in ends)
        return cls(low, high, before.astype(np.int32), factor.astype(np.int32))


@dataclass(frozen=True, kw_only=True)
class QWideConv2d(AnyConv2d):
    """A convolution, or a dense layer of [N, I], of int8 weights with data of 16 bits, a result of
    16 bits, or both.

    ``sum = bias[o] + Σ (data - zero) * weight`` of int8 data; of ``bytes``, where ``zero`` is 0,
    ``sum = ((bias[0, o] + Σ low * weight) >> 8) + bias[1, o] + Σ high * weight``. With ``requant``
    the result is int8 and the sum is requantized; without, it is int32 of 16 bits, by ``low``,
    ``high``, ``before`` and ``factor`` [O], as :class:`Steps16` says.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = (
        "data", "weight", "bias", "low", "high", "before", "factor",
    )  # fmt: skip
    PARAMETERS: ClassVar[tuple[str, ...]] = OPERANDS[1:]
    READS: ClassVar[frozenset[str]] = frozenset({"int8"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8", "int32"})

    bias: str
    bytes: bool
    zero: int = 0
    requant: Requant | None = None
    low: str | None = None
    high: str | None = None
    before: str | None = None
    factor: str | None = None

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, weight, bias, *rows = shapes
        (channels,) = weight[:1]
        if bias != ((2, channels) if self.bytes else (channels,)):
            raise self.error(f"biases of {channels} channels", list(bias))
        if any(row != (channels,) for row in rows) or len(rows) != (4 if not self.requant else 0):
            raise self.error(f"4 rows of {channels} numbers, or a requantization", len(rows))
        batch = data[0] // 2 if self.bytes else data[0]
        if len(weight) == 2:
            if len(data) not in (2, 4) or prod(data[1:]) != weight[1]:
                raise self.error(f"data of shape [N, {weight[1]}]", list(data))
            return batch, channels
        _, *result = super().result_shape((data, weight))
        return batch, *result

    @property
    def is_plain(self) -> bool:
        """Whether it multiplies, and nothing comes behind: always."""
        return True

    @property
    def op(self) -> str:
        """With how many bits it reads and writes."""
        return f"{type(self).__name__}{16 if self.bytes else 8}to{8 if self.requant else 16}"

    def accumulated(self, args: Sequence[Array]) -> Array:
        """The sums, exact."""
        data, weight, bias = (x.astype(np.float64) for x in args[:3])
        total = self._products(data - self.zero, weight).astype(np.int64)
        column = (-1, *(1,) * (total.ndim - 2))
        if not self.bytes:
            return np.asarray(total + args[2].astype(np.int64).reshape(column))
        low, high = (total[first::2] for first in (0, 1))
        biases = [bias[number].astype(np.int64).reshape(column) for number in (0, 1)]
        return np.asarray(((low + biases[0]) >> BYTE_BITS) + high + biases[1])

    def _products(self, data: Array, weight: Array) -> Array:
        if weight.ndim == 2:
            return np.asarray(data.reshape(len(data), -1) @ weight.T)
        return self.products(data, weight)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        total = self.accumulated(args)
        column = (-1, *(1,) * (total.ndim - 2))
        if self.requant is not None:
            words = pack_scales(self.requant.scale).reshape(column)
            return requantize(total, words, *self.requant.limits)
        low, high, before, factor = (x.astype(np.int64).reshape(column) for x in args[3:])
        scaled = (np.clip(total, low, high) >> before) * factor
        return ((scaled + (1 << (AFTER_BITS - 1))) >> AFTER_BITS).astype(np.int32)

    def express(self, recipe: Recipe) -> Tensor:
        acc, dense = self._sums(recipe), len(recipe.shape(self.output)) == 2
        total = self._total(recipe, acc)
        finish = self._finish(recipe)
        if dense:
            return te.compute(recipe.out_shape, lambda n, c: finish(total(n, 0, 0, c), c), "out")
        return te.compute(recipe.out_shape, lambda n, c, y, x: finish(total(n, y, x, c), c), "out")

    def _sums(self, recipe: Recipe) -> Tensor:
        """Sums of products [N, OH, OW, O], without biases."""
        if len(recipe.shape(self.weight)) == 4:
            return self.sums(recipe, None, self.zero, "int32")
        weight, batch = recipe.read(self.weight), recipe.shape(self.data)[0]
        data = recipe.read(self.data, (batch, weight.shape[1]))
        step = te.reduce_axis((0, weight.shape[1]), "i")

        def dot(n: Expr, y: Expr, x: Expr, c: Expr) -> Expr:
            value = data[n, step].astype("int32") - self.zero
            return te.sum(value * weight[c, step].astype("int32"), axis=step)

        return te.compute((data.shape[0], 1, 1, weight.shape[0]), dot, "acc")

    def _total(self, recipe: Recipe, acc: Tensor) -> Callable[..., Expr]:
        bias = recipe.read(self.bias)
        if not self.bytes:
            return lambda n, y, x, c: acc[n, y, x, c] + bias[c]
        return lambda n, y, x, c: (
            ((acc[n * 2, y, x, c] + bias[0, c]) >> BYTE_BITS) + acc[n * 2 + 1, y, x, c] + bias[1, c]
        )

    def _finish(self, recipe: Recipe) -> Callable[[Expr, Expr], Expr]:
        requant = self.requant
        if requant is not None:
            words = recipe.constant("scale", pack_scales(requant.scale))
            return lambda total, c: requantized(total, words[c], *requant.limits)
        assert self.low and self.high and self.before and self.factor  # noqa: PT018
        low, high, before, factor = map(
            recipe.read, (self.low, self.high, self.before, self.factor)
        )

        def value(total: Expr, c: Expr) -> Expr:
            limited = te.maximum(te.minimum(total, high[c]), low[c])
            scaled = (limited >> before[c]) * factor[c]
            return (scaled + (1 << (AFTER_BITS - 1))) >> AFTER_BITS

        return value


# Sums -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class QWideSum(Node):
    """``clip((Σ_i (operands[i] - zeros[i]) * weights[i] + offset) / 2**shift, low, high)``, rounded
    half up, as int32 of 16 bits; of one or two tensors of one shape, each int8 or int32 of 16 bits,
    whose zero point is 0, and of a constant ``offset``, int32 below ``MOST_OFFSET``, which
    broadcasts to their shape and has as many axes.

    With ``requant`` the result is int8: the sum is requantized, and ``low`` and ``high`` aren't
    used.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("terms", "offset")
    COUNTED: ClassVar[str] = "weights"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("offset",)
    READS: ClassVar[frozenset[str]] = frozenset({"int8", "int32"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8", "int32"})

    terms: tuple[str, ...]
    zeros: tuple[int, ...]
    weights: tuple[int, ...]
    shift: int
    low: int = -MOST
    high: int = MOST
    requant: Requant | None = field(default=None)
    offset: str | None = None

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        terms = shapes[: len(self.terms)]
        if any(shape != shapes[0] for shape in terms) or not 1 <= len(terms) <= 2:
            raise self.error("one or two operands of one shape", [list(s) for s in terms])
        for offset in shapes[len(terms) :]:
            sizes = zip(offset, terms[0], strict=False)
            if len(offset) != len(terms[0]) or any(a not in (1, b) for a, b in sizes):
                raise self.error(f"an offset that broadcasts to {list(terms[0])}", list(offset))
        return terms[0]

    def aligned_axes(self, shapes: Sequence[Shape], result: Shape) -> Axes:
        return () if self.offset else by_element(shapes, result)

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of all operands, which lie alike."""
        blocks = {each.block for each in operands}
        return blocks.pop() if len(blocks) == 1 else 0

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        count = len(self.terms)
        pairs = zip(args[:count], self.zeros, self.weights, strict=True)
        total = sum((x.astype(np.int64) - zero) * weight for x, zero, weight in pairs)
        total = np.asarray(total + sum(each.astype(np.int64) for each in args[count:]))
        if self.requant is not None:
            word = pack_scales(self.requant.scale)[0]
            return requantize(total, word, *self.requant.limits)
        rounded = (total + self.half) >> self.shift
        return np.asarray(np.clip(rounded, self.low, self.high), np.int32)

    @property
    def half(self) -> int:
        """Half of what a step of the result is of the sum."""
        return (1 << self.shift) >> 1

    def express(self, recipe: Recipe) -> Tensor:
        tensors = [recipe.read(name) for name in self.terms]
        offset = self._offset(recipe)

        def value(*i: Expr) -> Expr:
            pairs = zip(tensors, self.zeros, self.weights, strict=True)
            products = [(x[i].astype("int32") - zero) * weight for x, zero, weight in pairs]
            total = products[0] + products[1] if len(products) > 1 else products[0]
            total = offset(total, i)
            if self.requant is not None:
                word = te.const(int(pack_scales(self.requant.scale)[0]), "int32")
                return requantized(total, word, *self.requant.limits)
            rounded = (total + self.half) >> self.shift
            return te.minimum(te.maximum(rounded, self.low), self.high)

        return te.compute(recipe.out_shape, value, "sum")

    def _offset(self, recipe: Recipe) -> Callable[[Expr, Sequence[Expr]], Expr]:
        """The sum and the offset, as a function of the sum and an index of the result."""
        if self.offset is None:
            return lambda total, i: total
        array, block = recipe.read(self.offset), recipe.block(self.output)

        def added(total: Expr, i: Sequence[Expr]) -> Expr:
            if block:
                n, o, y, x, l = i
                i = n, o * block + l, y, x
            sizes = zip(array.shape, i, strict=True)
            return total + array[tuple(te.const(0) if size == 1 else v for size, v in sizes)]

        return added


def weights_of(scales: Sequence[float], offset: float = 0.0) -> tuple[tuple[int, ...], int]:
    """Weights and the shift of a :class:`QWideSum` of terms whose units are ``scales`` steps, and
    of a constant of at most ``offset`` steps.

    Raises:
        GraphError: a unit is too large.
    """
    for shift in range(30, -1, -1):
        weights = tuple(round(scale * 2.0**shift) for scale in scales)
        fits = max(map(abs, weights)) < 1 << WEIGHT_BITS and shift <= 2 * WEIGHT_BITS
        if fits and offset * 2.0**shift < MOST_OFFSET:
            return weights, shift
    raise GraphError(
        f"expected terms in units below {1 << WEIGHT_BITS} steps, found {max(scales):g}"
    )
