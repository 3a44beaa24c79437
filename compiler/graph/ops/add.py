"""Addition of two tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.axes import Axes, by_element
from vdla.compiler.graph.express import clipped, shifted
from vdla.compiler.graph.ir import Recipe
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.numbers import add_terms, in_steps, requantize
from vdla.compiler.graph.ops.elementwise import (
    QUANTIZED,
    Binary,
    broadcast_operands,
    broadcast_shape,
    common_block,
    equal_shape,
    spread_block,
)
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.types import DTYPES, Array, Requant, Shape, TensorType
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
        zeros = quant_a.zero_point, quant_b.zero_point
        return QAdd(**island.names, a=a, b=b, zeros=zeros, requant=island.requant(*scales))


@dataclass(frozen=True, kw_only=True)
class QAdd(Requantized):
    """An int8 addition in fixed point.

    ``requant.scale`` are float32 ``(a_scale / y_scale, b_scale / y_scale)``, the second negative
    for a difference; ``sum = (a - zeros[0]) * A + (b - zeros[1]) * B`` in int32 with
    ``A, B, k = add_terms(*scale)``; the result is ``clip(rq(sum, 2**-k) + requant.zero, low,
    high)``. ``a`` and ``b`` have one shape.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")

    a: str
    b: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return equal_shape(self, shapes)

    def aligned_axes(self, shapes: Sequence[Shape], result: Shape) -> Axes:
        return by_element(shapes, result)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return fixed_point_sum(args, self.zeros, self.requant)

    def express(self, recipe: Recipe) -> Tensor:
        a, b = recipe.read(self.a), recipe.read(self.b)
        total = fixed_point_sum_of_elements(self.zeros, self.requant)
        return te.compute(recipe.out_shape, lambda *i: total(a[i], b[i]), "added")

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of both operands, which lie alike."""
        return common_block(operands)

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The sum at the result's scale."""
        a, b = in_steps(args, self.zeros, self.requant.scale)
        return a + b, np.abs(a) + np.abs(b), 5


def _difference(node: Binary, island: Island) -> QAdd:
    """``a - b``: the addition of b at a negative scale."""
    total = Add(name=node.name, output=node.output, a=node.a, b=node.b).quantized(island)
    a, b = total.requant.scale
    return replace(total, requant=replace(total.requant, scale=(a, -b)))


QUANTIZED["sub"] = _difference


def fixed_point_sum(terms: Sequence[Array], zeros: Sequence[int], requant: Requant) -> Array:
    """A :class:`QAdd` of two arrays with their zero points."""
    *factors, k = add_terms(*requant.scale)
    products = zip(terms, zeros, factors, strict=True)
    a, b = ((x.astype(np.int64) - zero) * factor for x, zero, factor in products)
    return requantize(a + b, pack_scale(2.0**-k), *requant.limits)


def fixed_point_sum_of_elements(
    zeros: Sequence[int], requant: Requant
) -> Callable[[Expr, Expr], Expr]:
    """A :class:`QAdd` of two elements with their zero points."""
    term_a, term_b, k = add_terms(*requant.scale)

    def total(a: Expr, b: Expr) -> Expr:
        left = (a.astype("int32") - zeros[0]) * term_a
        right = (b.astype("int32") - zeros[1]) * term_b
        return clipped(shifted(left + right, k), *requant.limits)

    return total
