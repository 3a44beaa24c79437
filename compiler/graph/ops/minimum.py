"""The lesser of two quantized tensors, element by element; of real ones it is ``Binary``'s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Array, IntegerNode, Recipe, Shape, TensorType
from vdla.compiler.graph.island import Island
from vdla.compiler.graph.numbers import requantize
from vdla.compiler.graph.ops.clip import at_scale
from vdla.compiler.graph.ops.elementwise import QUANTIZED, Binary, equal_shape
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.numbers import pack_scale

Choice = Callable[[Any, Any], Any]


@dataclass(frozen=True, kw_only=True)
class QMinimum(IntegerNode):
    """``clip(min(rq(a - a_zp, scales[0]), rq(b - b_zp, scales[1])) + out_zp, lo, hi)``.

    ``scales`` are float32 ``(a_scale / y_scale, b_scale / y_scale)``; ``a`` and ``b`` have one
    shape. Rounding keeps the order, so this is the float minimum, rounded.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")
    CHOICE: ClassVar[tuple[Choice, Choice]] = (np.minimum, te.minimum)  # of arrays, of expressions

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
        limits = (self.out_zp, self.lo, self.hi)
        a = requantize(args[0].astype(np.int64) - self.a_zp, pack_scale(self.scales[0]), *limits)
        b = requantize(args[1].astype(np.int64) - self.b_zp, pack_scale(self.scales[1]), *limits)
        return np.asarray(self.CHOICE[0](a, b))

    def express(self, recipe: Recipe) -> Tensor:
        limits = (self.out_zp, self.lo, self.hi)
        a = at_scale(recipe.read(self.a), self.scales[0], self.a_zp, limits)
        b = at_scale(recipe.read(self.b), self.scales[1], self.b_zp, limits)

        def value(*i: Expr) -> Expr:
            chosen: Expr = self.CHOICE[1](a(*i), b(*i))
            return chosen

        return te.compute(recipe.out_shape, value, "chosen")

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The chosen one at the result's scale."""
        a = (args[0].astype(np.float64) - self.a_zp) * self.scales[0]
        b = (args[1].astype(np.float64) - self.b_zp) * self.scales[1]
        chosen = np.asarray(self.CHOICE[0](a, b))
        return chosen, np.abs(chosen), 3


def _quantized(node: Binary, island: Island) -> QMinimum:
    (a, quant_a), (b, quant_b) = island.source(node.a), island.source(node.b)
    return QMinimum(
        **island.names,
        a=island.spread(a),
        b=island.spread(b),
        scales=(island.ratio(quant_a), island.ratio(quant_b)),
        a_zp=quant_a.zero_point,
        b_zp=quant_b.zero_point,
        out_zp=island.out.zero_point,
        **island.clip,
    )


QUANTIZED["min"] = _quantized
