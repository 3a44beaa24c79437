"""Addition of two tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import clipped, shifted
from vdla.compiler.graph.ir import (
    DTYPES,
    Array,
    IntegerNode,
    Pair,
    Recipe,
    Shape,
    TensorType,
)
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.numbers import add_terms, requantize
from vdla.compiler.graph.ops.elementwise import (
    QUANTIZED,
    Binary,
    broadcast_operands,
    broadcast_shape,
    common_block,
    equal_shape,
    spread_block,
)
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.numbers import pack_scale


@dataclass(frozen=True, kw_only=True)
class Add(Quantizable):
    """``a + b``, with numpy's broadcasting."""

    ELEMENTWISE: ClassVar[bool] = True
    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")
    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)

    a: str
    b: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return broadcast_shape(self, shapes)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.asarray(args[0] + args[1], kind.dtype)

    def express(self, recipe: Recipe) -> Tensor:
        a, b = broadcast_operands(recipe, self.a, self.b)
        return te.compute(recipe.out_shape, lambda *i: a(i) + b(i), "added")

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result, of which an operand may be spread."""
        return spread_block(operands)

    def quantized(self, island: Island) -> QAdd:
        """A :class:`QAdd` of operands that are spread to one shape."""
        (a, quant_a), (b, quant_b) = island.source(self.a), island.source(self.b)
        a, b = island.spread(a), island.spread(b)
        scales = (island.ratio(quant_a), island.ratio(quant_b))
        add_terms(*scales)
        return QAdd(
            **island.names,
            a=a,
            b=b,
            scales=scales,
            a_zp=quant_a.zero_point,
            b_zp=quant_b.zero_point,
            out_zp=island.out.zero_point,
            **island.clip,
        )


@dataclass(frozen=True, kw_only=True)
class QAdd(IntegerNode):
    """An int8 addition in fixed point.

    ``scales`` are float32 ``(a_scale / y_scale, b_scale / y_scale)``, the second negative for a
    difference; ``sum = (a - a_zp) * A + (b - b_zp) * B`` in int32 with
    ``A, B, k = add_terms(*scales)``;
    ``output = clip(rq(sum, 2**-k) + out_zp, lo, hi)``. ``a`` and ``b`` have one shape.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")
    CLIPS: ClassVar[bool] = True

    a: str
    b: str
    scales: tuple[float, float]
    a_zp: int
    b_zp: int
    out_zp: int
    lo: int = -128
    hi: int = 127

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return equal_shape(self, shapes)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        zero_points = (self.a_zp, self.b_zp, self.out_zp)
        return fixed_point_sum(args[0], args[1], self.scales, zero_points, (self.lo, self.hi))

    def express(self, recipe: Recipe) -> Tensor:
        a, b = recipe.read(self.a), recipe.read(self.b)
        term_a, term_b, k = add_terms(*self.scales)

        def value(*i: Expr) -> Expr:
            left = (a[i].astype("int32") - self.a_zp) * term_a
            right = (b[i].astype("int32") - self.b_zp) * term_b
            return clipped(shifted(left + right, k), self.out_zp, self.lo, self.hi)

        return te.compute(recipe.out_shape, value, "added")

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of both operands, which lie alike."""
        return common_block(operands)

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The sum at the result's scale."""
        a = (args[0].astype(np.float64) - self.a_zp) * self.scales[0]
        b = (args[1].astype(np.float64) - self.b_zp) * self.scales[1]
        return a + b, np.abs(a) + np.abs(b), 5


def _difference(node: Binary, island: Island) -> QAdd:
    """``a - b``: the addition of b at a negative scale."""
    total = Add(name=node.name, output=node.output, a=node.a, b=node.b).quantized(island)
    return replace(total, scales=(total.scales[0], -total.scales[1]))


QUANTIZED["sub"] = _difference


def fixed_point_sum(
    a: Array,
    b: Array,
    scales: tuple[float, float],
    zero_points: tuple[int, int, int],
    limits: Pair,
) -> Array:
    """A :class:`QAdd` of two arrays; ``zero_points`` are a's, b's and the result's."""
    term_a, term_b, k = add_terms(*scales)
    total = (a.astype(np.int64) - zero_points[0]) * term_a
    total = total + (b.astype(np.int64) - zero_points[1]) * term_b
    return requantize(total, pack_scale(2.0**-k), zero_points[2], *limits)
