"""Limits to a range, and changes of scale: on integers they are one operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import Array, IntegerNode, Node, Recipe, Shape, TensorType
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.numbers import f32, requantize
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

    def quantized(self, island: Island) -> Node:
        """A :class:`QClip`; the island has the bounds."""
        return rescaled(self.data, island)


@dataclass(frozen=True, kw_only=True)
class QClip(IntegerNode):
    """Relu, Clip and change of scale: ``clip(rq(data - in_zp, scale) + out_zp, lo, hi)``."""

    data: str
    scale: float
    in_zp: int
    out_zp: int
    lo: int = -128
    hi: int = 127

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        centered = args[0].astype(np.int64) - self.in_zp
        return requantize(centered, pack_scale(self.scale), self.out_zp, self.lo, self.hi)

    def express(self, recipe: Recipe) -> Tensor:
        limits = (self.out_zp, self.lo, self.hi)
        value = at_scale(recipe.read(self.data), self.scale, self.in_zp, limits)
        return te.compute(recipe.out_shape, value, "clipped")

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The data at the result's scale."""
        value = (args[0].astype(np.float64) - self.in_zp) * self.scale
        return value, np.abs(value), 3


def rescaled(data: str, island: Island) -> QClip:
    """The :class:`QClip` that brings ``data`` to the scale and the bounds of an island's end."""
    data, quant = island.source(data)
    return QClip(
        **island.names,
        data=data,
        scale=island.ratio(quant),
        in_zp=quant.zero_point,
        out_zp=island.out.zero_point,
        **island.clip,
    )


def at_scale(
    tensor: Tensor, scale: float, zero_point: int, limits: tuple[int, int, int]
) -> Callable[..., Expr]:
    """``tensor`` at an index, brought to the scale of a result; ``limits`` are the result's zero
    point, lowest and highest value."""
    word = te.const(pack_scale(scale), "int32")
    return lambda *i: requantized(tensor[i].astype("int32") - zero_point, word, *limits)
