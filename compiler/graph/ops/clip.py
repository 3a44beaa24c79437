"""Limits to a range, and changes of scale: on integers they are one operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.axes import Axes, by_element
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.numbers import f32
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.numbers import pack_scale


@dataclass(frozen=True, kw_only=True)
class Relu(Quantizable):
    """``max(data, 0)``."""

    ELEMENTWISE: ClassVar[bool] = True

    data: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.maximum(args[0], np.float32(0))

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        zero = te.const(0.0, "float32")
        return te.compute(recipe.out_shape, lambda *i: te.maximum(data[i], zero), "positive")

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of the operand."""
        return operands[0].block

    @property
    def bounds(self) -> tuple[float, float]:
        """Zero, and no other."""
        return 0.0, inf

    def quantized(self, island: Island) -> Node:
        """A :class:`QClip`; the island has the bounds."""
        return rescaled(self.data, island)


@dataclass(frozen=True, kw_only=True)
class Clip(Quantizable):
    """``min(max(data, low), high)``; either bound may be infinite."""

    ELEMENTWISE: ClassVar[bool] = True

    data: str
    low: float
    high: float

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.clip(args[0], np.float32(self.low), np.float32(self.high))

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        low, high = (te.const(f32(v), "float32") for v in (self.low, self.high))
        return te.compute(
            recipe.out_shape, lambda *i: te.minimum(te.maximum(data[i], low), high), "clipped"
        )

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of the operand."""
        return operands[0].block

    @property
    def bounds(self) -> tuple[float, float]:
        """The two bounds of the clip."""
        return self.low, self.high

    def quantized(self, island: Island) -> Node:
        """A :class:`QClip`; the island has the bounds."""
        return rescaled(self.data, island)


@dataclass(frozen=True, kw_only=True)
class QClip(Requantized):
    """Relu, Clip and change of scale: ``data - zeros[0]``, requantized."""

    CLIPS: ClassVar[bool] = False

    data: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def aligned_axes(self, shapes: Sequence[Shape], result: Shape) -> Axes:
        return by_element(shapes, result)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return self.narrow(args[0].astype(np.int64) - self.zeros[0])

    def express(self, recipe: Recipe) -> Tensor:
        data, narrow = recipe.read(self.data), self.narrowing(recipe)

        def value(*i: Expr) -> Expr:
            return narrow(data[i].astype("int32") - self.zeros[0])

        return te.compute(recipe.out_shape, value, "clipped")

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The data at the result's scale."""
        value = (args[0].astype(np.float64) - self.zeros[0]) * self.requant.scale[0]
        return value, np.abs(value), 3


def rescaled(data: str, island: Island) -> QClip:
    """The :class:`QClip` that brings ``data`` to the scale and the bounds of an island's end."""
    data, quant = island.source(data)
    requant = island.requant(island.ratio(quant))
    return QClip(**island.names, data=data, zeros=(quant.zero_point,), requant=requant)


def at_scale(
    tensor: Tensor, scale: float, zero_point: int, limits: tuple[int, int, int]
) -> Callable[..., Expr]:
    """``tensor`` at an index, brought to the scale of a result; ``limits`` are the result's zero
    point, lowest and highest value."""
    word = te.const(pack_scale(scale), "int32")
    return lambda *i: requantized(tensor[i].astype("int32") - zero_point, word, *limits)
