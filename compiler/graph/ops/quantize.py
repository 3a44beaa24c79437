"""Between real numbers and integers, and between the two ways to store a byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.axes import Axes, by_element
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.numbers import dequantize, quantize
from vdla.compiler.graph.ops.clip import rescaled
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

Numbers = Sequence[float] | Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Scaled(Node, operator=False):
    """One scale and zero point for the tensor (``axis`` None) or one per index along ``axis``."""

    data: str
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def aligned_axes(self, shapes: Sequence[Shape], result: Shape) -> Axes:
        return by_element(shapes, result) if self.axis is None else ()

    @property
    def bits(self) -> str:
        """The tensor of integers."""
        raise NotImplementedError

    @property
    def by_element(self) -> bool:
        """Whether all elements go the same way."""
        return self.axis is None

    def along(self, values: Numbers, rank: int) -> Array:
        """One value, or one per index, to broadcast against a tensor of ``rank`` dimensions."""
        array = np.asarray(values)
        if self.axis is None:
            return array
        return array.reshape([-1 if i == self.axis else 1 for i in range(rank)])

    def lookup(
        self, recipe: Recipe, values: Numbers, suffix: str, dtype: str
    ) -> Callable[[Sequence[Expr]], Expr]:
        """Numbers as a function of an index: a constant, or a table along the axis."""
        axis = self.axis
        if axis is None:
            scalar = te.const(values[0], dtype)
            return lambda i: scalar
        table = recipe.constant(suffix, np.asarray(values, dtype))
        return lambda i: table[i[axis]]


@dataclass(frozen=True, kw_only=True)
class Quantize(Scaled, Quantizable):
    """``saturate(round_half_even(data / scale[c]) + zero_point[c])`` to the output's dtype."""

    CONVERTS: ClassVar[str] = "numbers"
    NOT_ACCELERATED: ClassVar[str] = "float input becomes integers"
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8", "uint8"})

    @property
    def bits(self) -> str:
        """The tensor of integers: its result."""
        return self.output

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        scale, zero = (self.along(v, args[0].ndim) for v in (self.scale, self.zero_point))
        return quantize(args[0], scale, zero, kind.dtype).reshape(kind.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        scale = self.lookup(recipe, self.scale, "scale", "float32")
        zero = self.lookup(recipe, self.zero_point, "zero", "int32")
        limits = np.iinfo(recipe.out_dtype)
        lows = [float(limits.min - z) for z in self.zero_point]
        highs = [float(limits.max - z) for z in self.zero_point]
        low = self.lookup(recipe, lows, "low", "float32")
        high = self.lookup(recipe, highs, "high", "float32")

        def value(*i: Expr) -> Expr:
            rounded = te.rint(data[i] / scale(i))
            limited = te.minimum(te.maximum(rounded, low(i)), high(i))
            return (limited.astype("int32") + zero(i)).astype(recipe.out_dtype)

        return te.compute(recipe.out_shape, value, "quantized")

    def quantized(self, island: Island) -> Node:
        """Behind a Dequantize, a change of scale: a :class:`QClip`."""
        return rescaled(self.data, island)


@dataclass(frozen=True, kw_only=True)
class AnyDequantize(Scaled, operator=False):
    """``(data - zero_point[c]) * scale[c]`` in float32; ``WIDE`` is a type of each type of data
    that holds the difference, int32 where there is none."""

    CONVERTS: ClassVar[str] = "numbers"
    NOT_ACCELERATED: ClassVar[str] = "integers become float output"
    WIDE: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @property
    def bits(self) -> str:
        """The tensor of integers: its data."""
        return self.data

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        scale, zero = (self.along(v, args[0].ndim) for v in (self.scale, self.zero_point))
        return dequantize(args[0], scale, zero).reshape(kind.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        wide = self.WIDE.get(data.dtype, "int32")
        scale = self.lookup(recipe, self.scale, "scale", "float32")
        zero = self.lookup(recipe, self.zero_point, "zero", wide)

        def value(*i: Expr) -> Expr:
            return (data[i].astype(wide) - zero(i)).astype("float32") * scale(i)

        return te.compute(recipe.out_shape, value, "real")


@dataclass(frozen=True, kw_only=True)
class Dequantize(AnyDequantize):
    """``(data - zero_point[c]) * scale[c]`` in float32."""

    READS: ClassVar[frozenset[str]] = frozenset({"int8", "uint8", "int32"})
    WIDE: ClassVar[Mapping[str, str]] = MappingProxyType({"int32": "int64"})


@dataclass(frozen=True, kw_only=True)
class FlipSign(Node):
    """uint8 to int8 or back, the value moved by 128: the top bit flipped."""

    CONVERTS: ClassVar[str] = "numbers"
    NOT_ACCELERATED: ClassVar[str] = "unsigned bytes become signed at the boundary"
    READS: ClassVar[frozenset[str]] = frozenset({"int8", "uint8"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8", "uint8"})

    data: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return (args[0].view(np.uint8) ^ 0x80).view(kind.dtype)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        step = -128 if data.dtype == "uint8" else 128

        def value(*i: Expr) -> Expr:
            return (data[i].astype("int32") + step).astype(recipe.out_dtype)

        return te.compute(recipe.out_shape, value, "flipped")
