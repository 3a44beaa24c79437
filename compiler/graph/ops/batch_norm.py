"""Batch normalization at inference: every channel has a factor and an offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.numbers import affine_terms, pack_scales, requantize
from vdla.compiler.graph.requant import Requantized, word_of
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class BatchNorm(Quantizable):
    """``data * factor[c] + offset[c]``: the inference form, its two vectors precomputed."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "factor", "offset")

    data: str
    factor: str
    offset: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.asarray(args[0] * column(args[1], args[0]) + column(args[2], args[0]))

    def express(self, recipe: Recipe) -> Tensor:
        data, factor, offset = (recipe.read(n) for n in (self.data, self.factor, self.offset))
        block = recipe.block(self.data)

        def value(*i: Expr) -> Expr:
            channel = i[1] * block + i[-1] if block else i[1]
            return data[i] * factor[channel] + offset[channel]

        return te.compute(recipe.out_shape, value, "normalized")

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of the operand."""
        return operands[0].block

    def quantized(self, island: Island) -> Node:
        """A :class:`QBatchNorm`."""
        data, quant = island.source(self.data)
        out, known = np.float64(island.out.scale), island.editor.constants
        scales = known[self.factor].astype(np.float64) * quant.scale / out
        offsets = known[self.offset].astype(np.float64) / out
        affine_terms(scales, offsets)
        return QBatchNorm(
            **island.names,
            data=data,
            offsets=tuple(offsets.tolist()),
            zeros=(quant.zero_point,),
            requant=replace(island.requant(), scale=tuple(scales.tolist())),
        )


@dataclass(frozen=True, kw_only=True)
class QBatchNorm(Requantized):
    """A scale and an offset for each channel of int8 values.

    ``output = clip(rq((data - zeros[0]) * A[c] + B[c], 2**-k[c]) + requant.zero, low, high)``, with
    ``A, B, k = affine_terms(requant.scale, offsets)``; the offsets are in steps of the result.
    """

    data: str
    offsets: tuple[float, ...]

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        channels = {len(self.requant.scale), len(self.offsets)}
        if len(shapes[0]) < 2 or channels != {shapes[0][1]}:
            raise self.error(f"{shapes[0][1:2]} scales and offsets", sorted(channels))
        return shapes[0]

    @property
    def terms(self) -> tuple[Array, Array, Array]:
        """The integers A, B and k of each channel."""
        return affine_terms(np.array(self.requant.scale), np.array(self.offsets))

    @property
    def shifts(self) -> list[float]:
        """The scale that undoes the integers' shift, of each channel."""
        return [2.0 ** -int(k) for k in self.terms[2]]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        data, (factor, offset, _) = args[0].astype(np.int64), self.terms
        total = (data - self.zeros[0]) * column(factor, data) + column(offset, data)
        words = column(pack_scales(self.shifts), data)
        return requantize(total, words, *self.requant.limits)

    def express(self, recipe: Recipe) -> Tensor:
        data, (factor, offset, _) = recipe.read(self.data), self.terms
        factors = recipe.constant("factor", factor.astype(np.int32))
        starts = recipe.constant("offset", offset.astype(np.int32))
        word = word_of(recipe, self.shifts)

        def value(*i: Expr) -> Expr:
            total = (data[i].astype("int32") - self.zeros[0]) * factors[i[1]] + starts[i[1]]
            return requantized(total, word(i[1]), *self.requant.limits)

        return te.compute(recipe.out_shape, value, "normalized")

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The sum at the result's scale; the integers are as exact as 2**-21."""
        data = args[0].astype(np.float64) - self.zeros[0]
        scaled, offset = data * column(np.array(self.requant.scale), data), np.array(self.offsets)
        moved = column(offset, data)
        return scaled + moved, np.abs(scaled) + np.abs(moved), 16


def column(values: Array, data: Array) -> Array:
    """One value per channel, to broadcast against data of [N, C, …]."""
    return values.reshape(-1, *(1,) * (data.ndim - 2))
