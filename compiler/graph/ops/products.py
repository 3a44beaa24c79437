"""Sums of int8 products with their requantization: what convolutions and dense layers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, TypedDict

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.types import Array, Requant, Shape
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class Products(Node, operator=False):
    """Data times weights, one sum for each output channel, and a bias."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "weight", "bias")
    PARAMETERS: ClassVar[tuple[str, ...]] = ("weight", "bias")

    data: str
    weight: str

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        return 2 * prod(result) * prod(shapes[1][1:])

    def check_channels(self, shapes: Sequence[Shape], channels: int) -> None:
        """The bias has one entry per output channel.

        Raises:
            GraphError: it hasn't.
        """
        if len(shapes) > 2 and shapes[2] != (channels,):
            raise self.error(f"a bias of shape [{channels}]", list(shapes[2]))


@dataclass(frozen=True, kw_only=True)
class FloatProducts(Products, Quantizable, operator=False):
    """``bias[o] + Σ data * weight``."""

    bias: str | None = None

    def scaled(
        self, factor: Array, offset: Array, constants: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        """The weights and the bias of the sums times ``factor`` plus ``offset``, one of each for
        every output channel."""
        weight = constants[self.weight]
        bias = constants[self.bias] if self.bias else np.zeros_like(factor)
        return weight * factor.reshape(-1, *[1] * (weight.ndim - 1)), bias * factor + offset

    def is_depthwise(self, shapes: Sequence[Shape]) -> bool:
        """Whether each output channel is one channel of the data times weights, in their order."""
        return False

    def whole(self, weights: Array) -> tuple[FloatProducts, Array]:
        """The layer in which every output channel reads all of the data, and its weights for those
        given: zeros where groups of channels don't see each other."""
        return self, weights


@dataclass(frozen=True, kw_only=True)
class QProducts(Requantized, Products, operator=False):
    """``acc = bias[o] + Σ (data - zeros[0]) * weight`` in int32, then requantized by channel:
    ``requant.scale[o] = float32(x_scale * w_scale[o] / y_scale)``."""

    bias: str

    def check_channels(self, shapes: Sequence[Shape], channels: int) -> None:
        """The bias and the scales have one entry per output channel."""
        super().check_channels(shapes, channels)
        if len(self.requant.scale) != channels:
            raise self.error(f"{channels} scales", len(self.requant.scale))

    def accumulated(self, args: Sequence[Array]) -> Array:
        """``acc`` of the operands, exact, in int64; the channels are its second dimension."""
        raise NotImplementedError

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, Array | int]:
        """The sum at the result's scale: exact in int32, then made a float and multiplied by a
        scale that is a product and a quotient of floats."""
        acc = self.accumulated(args)
        value = acc * np.reshape(self.requant.scale, (-1, *[1] * (acc.ndim - 2)))
        return value, np.abs(value), 4


class ProductFields(TypedDict):
    """Fields that every :class:`QProducts` is made of."""

    name: str
    output: str
    data: str
    weight: str
    bias: str
    zeros: tuple[int, ...]
    requant: Requant


def quantized_products(
    node: Node, data: str, weight: str, bias: str | None, island: Island
) -> ProductFields:
    """The fields of a :class:`QProducts` for a float convolution or dense layer."""
    data, quant = island.source(data)
    weight, weight_scale = island.weight(weight)
    product = np.float32(quant.scale) * weight_scale
    scale = tuple(float(s) for s in product / np.float32(island.out.scale))
    requant = island.requant(*scale)
    return {
        **island.names,
        "data": data,
        "weight": weight,
        "bias": island.bias(bias, product, weight, quant.zero_point),
        "zeros": (quant.zero_point,),
        "requant": requant,
    }


def centered(x: Array, zero_point: int) -> Array:
    """Integers less their zero point, in float64: partial sums stay far below 2**53, so matrix
    products of them are exact."""
    return x.astype(np.float64) - zero_point


def bias_of(recipe: Recipe, bias: str | None, wide: str) -> Callable[[Expr], Expr]:
    """The bias of a channel; 0 where there is none."""
    if bias is None:
        zero = te.const(0, wide)
        return lambda c: zero
    tensor = recipe.read(bias)
    return lambda c: tensor[c]
