"""The lesser of two quantized tensors, element by element; of real ones it is ``Binary``'s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.axes import Axes, by_element
from vdla.compiler.graph.ir import Recipe
from vdla.compiler.graph.island import Island
from vdla.compiler.graph.numbers import in_steps, requantize
from vdla.compiler.graph.ops.clip import at_scale
from vdla.compiler.graph.ops.elementwise import QUANTIZED, Binary, equal_shape
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.numbers import pack_scale


@dataclass(frozen=True, kw_only=True)
class QMinimum(Requantized):
    """The lesser of ``a - zeros[0]`` and ``b - zeros[1]``, each requantized.

    ``requant.scale`` are float32 ``(a_scale / y_scale, b_scale / y_scale)``; ``a`` and ``b`` have
    one shape. Rounding keeps the order, so this is the float minimum, rounded.
    """

    CLIPS: ClassVar[bool] = False

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")

    a: str
    b: str

    @staticmethod
    def of_arrays(a: Array, b: Array) -> Array:
        """The chosen one of each two elements."""
        return np.asarray(np.minimum(a, b))

    @staticmethod
    def of_elements(a: Expr, b: Expr) -> Expr:
        """The chosen one of two elements."""
        return te.minimum(a, b)

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return equal_shape(self, shapes)

    def aligned_axes(self, shapes: Sequence[Shape], result: Shape) -> Axes:
        return by_element(shapes, result)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        words = map(pack_scale, self.requant.scale)
        a, b = (
            requantize(x.astype(np.int64) - zero, word, *self.requant.limits)
            for x, zero, word in zip(args, self.zeros, words, strict=True)
        )
        return self.of_arrays(a, b)

    def express(self, recipe: Recipe) -> Tensor:
        terms = zip((self.a, self.b), self.requant.scale, self.zeros, strict=True)
        a, b = (
            at_scale(recipe.read(name), scale, zero, self.requant.limits)
            for name, scale, zero in terms
        )
        return te.compute(recipe.out_shape, lambda *i: self.of_elements(a(*i), b(*i)), "chosen")

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The chosen one at the result's scale."""
        a, b = in_steps(args, self.zeros, self.requant.scale)
        chosen = self.of_arrays(a, b)
        return chosen, np.abs(chosen), 3


def _quantized(node: Binary, island: Island) -> QMinimum:
    (a, quant_a), (b, quant_b) = island.source(node.a), island.source(node.b)
    return QMinimum(
        **island.names,
        a=island.spread(a),
        b=island.spread(b),
        zeros=(quant_a.zero_point, quant_b.zero_point),
        requant=island.requant(island.ratio(quant_a), island.ratio(quant_b)),
    )


QUANTIZED["min"] = _quantized
