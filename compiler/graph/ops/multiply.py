"""The product of two quantized tensors, element by element; of real ones it is ``Binary``'s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import Array, IntegerNode, Recipe, Shape, TensorType
from vdla.compiler.graph.island import Island
from vdla.compiler.graph.numbers import requantize
from vdla.compiler.graph.ops.elementwise import QUANTIZED, Binary, broadcast_operands
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.numbers import pack_scale


@dataclass(frozen=True, kw_only=True)
class QMultiply(IntegerNode):
    """``clip(rq((a - a_zp) * (b - b_zp), scale) + out_zp, lo, hi)``.

    ``scale`` is ``a_scale * b_scale / y_scale`` in float32. ``b`` has the shape of ``a``, or is a
    **gate**: one value for each channel of each image, [N, C, 1, 1].
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")
    CLIPS: ClassVar[bool] = True

    a: str
    b: str
    scale: float
    a_zp: int
    b_zp: int
    out_zp: int
    lo: int = -128
    hi: int = 127

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if shapes[1] not in (shapes[0], gate_shape(shapes[0])):
            expected = f"a second operand of shape {list(shapes[0])}, or one value for each channel"
            raise self.error(expected, list(shapes[1]))
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return requantize(
            self._products(args, np.int64), pack_scale(self.scale), self.out_zp, self.lo, self.hi
        )

    def express(self, recipe: Recipe) -> Tensor:
        a, b = broadcast_operands(recipe, self.a, self.b)
        word = te.const(pack_scale(self.scale), "int32")

        def value(*i: Expr) -> Expr:
            product = (a(i).astype("int32") - self.a_zp) * (b(i).astype("int32") - self.b_zp)
            return requantized(product, word, self.out_zp, self.lo, self.hi)

        return te.compute(recipe.out_shape, value, "multiplied")

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The product at the result's scale."""
        value = self._products(args, np.float64) * self.scale
        return value, np.abs(value), 5

    def _products(self, args: Sequence[Array], kind: type) -> Array:
        return np.asarray((args[0].astype(kind) - self.a_zp) * (args[1].astype(kind) - self.b_zp))


def gate_shape(shape: Shape) -> Shape:
    """One value for each channel of each image; of vectors, their own shape."""
    return (*shape[:2], *(1 for _ in shape[2:]))


def _quantized(node: Binary, island: Island) -> QMultiply:
    shape = island.editor.tensors[node.output].shape
    names = sorted((node.a, node.b), key=lambda name: island.editor.tensors[name].shape != shape)
    (a, quant_a), (b, quant_b) = (island.source(name) for name in names)
    scale = np.float32(quant_a.scale) * np.float32(quant_b.scale) / np.float32(island.out.scale)
    island.check_scale(float(scale))
    return QMultiply(
        **island.names,
        a=island.spread(a),
        b=island.spread(b, gate_shape(shape)),
        scale=float(scale),
        a_zp=quant_a.zero_point,
        b_zp=quant_b.zero_point,
        out_zp=island.out.zero_point,
        **island.clip,
    )


QUANTIZED["mul"] = _quantized
