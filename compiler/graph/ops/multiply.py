"""The product of two quantized tensors, element by element; of real ones it is ``Binary``'s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.axes import Axes, by_element
from vdla.compiler.graph.ir import Recipe
from vdla.compiler.graph.island import Island
from vdla.compiler.graph.ops.elementwise import QUANTIZED, Binary, broadcast_operands
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class QMultiply(Requantized):
    """``(a - zeros[0]) * (b - zeros[1])``, requantized.

    ``requant.scale`` is ``a_scale * b_scale / y_scale`` in float32. ``b`` has the shape of ``a``,
    or is a **gate**: one value for each channel of each image, [N, C, 1, 1].
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")

    a: str
    b: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if shapes[1] not in (shapes[0], gate_shape(shapes[0])):
            expected = f"a second operand of shape {list(shapes[0])}, or one value for each channel"
            raise self.error(expected, list(shapes[1]))
        return shapes[0]

    def aligned_axes(self, shapes: Sequence[Shape], result: Shape) -> Axes:
        return by_element(shapes, result)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return self.narrow(self._products(args, np.int64))

    def express(self, recipe: Recipe) -> Tensor:
        a, b = broadcast_operands(recipe, self.a, self.b)
        narrow, (zero_a, zero_b) = self.narrowing(recipe), self.zeros

        def value(*i: Expr) -> Expr:
            return narrow((a(i).astype("int32") - zero_a) * (b(i).astype("int32") - zero_b))

        return te.compute(recipe.out_shape, value, "multiplied")

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The product at the result's scale."""
        value = self._products(args, np.float64) * self.requant.scale[0]
        return value, np.abs(value), 5

    def _products(self, args: Sequence[Array], kind: type) -> Array:
        a, b = args
        return np.asarray((a.astype(kind) - self.zeros[0]) * (b.astype(kind) - self.zeros[1]))


def gate_shape(shape: Shape) -> Shape:
    """One value for each channel of each image; of vectors, their own shape."""
    return (*shape[:2], *(1 for _ in shape[2:]))


def _quantized(node: Binary, island: Island) -> QMultiply:
    shape = island.editor.tensors[node.output].shape
    names = sorted((node.a, node.b), key=lambda name: island.editor.tensors[name].shape != shape)
    (a, quant_a), (b, quant_b) = (island.source(name) for name in names)
    scale = np.float32(quant_a.scale) * np.float32(quant_b.scale) / np.float32(island.out.scale)
    return QMultiply(
        **island.names,
        a=island.spread(a),
        b=island.spread(b, gate_shape(shape)),
        zeros=(quant_a.zero_point, quant_b.zero_point),
        requant=island.requant(float(scale)),
    )


QUANTIZED["mul"] = _quantized
