"""Products of two images, such as the scores of attention: what both have in the same channel, of
each two pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import Array, IntegerNode, Recipe, Shape, TensorType
from vdla.compiler.graph.numbers import requantize
from vdla.compiler.graph.ops.products import centered
from vdla.compiler.graph.sums import within
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.numbers import pack_scale


@dataclass(frozen=True, kw_only=True)
class QMatMul(IntegerNode):
    """``acc[n, o, m] = Σ_c (a[n, c, 0, m] - a_zp) * (b[n, c, 0, o] - b_zp)`` in int32, then
    ``output[n, o, 0, m] = clip(rq(acc, scale) + out_zp, lo, hi)``.

    Of ``a``, [N, C, 1, M], and ``b``, [N, C, 1, O], the result has the pixels of ``a``, and the
    pixels of ``b`` as channels. ``scale`` is ``a_scale * b_scale / y_scale`` in float32.
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
        a, b = shapes
        rows = len(a) == len(b) == 4 and a[2] == b[2] == 1
        if not rows or a[:2] != b[:2]:
            images = "two images [N, C, 1, W] of the same channels"
            raise self.error(images, f"{list(a)} and {list(b)}")
        return a[0], b[3], 1, a[3]

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        return 2 * prod(result) * shapes[0][1]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        word = pack_scale(self.scale)
        return requantize(self._sums(args).astype(np.int64), word, self.out_zp, self.lo, self.hi)

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The sums at the result's scale: exact in int32, then made floats and multiplied by a
        scale that is a product and a quotient of floats."""
        value = self._sums(args) * self.scale
        return value, np.abs(value), 4

    def _sums(self, args: Sequence[Array]) -> Array:
        a, b = centered(args[0][:, :, 0], self.a_zp), centered(args[1][:, :, 0], self.b_zp)
        return within(np.matmul(b.swapaxes(1, 2), a)[:, :, np.newaxis])

    def express(self, recipe: Recipe) -> Tensor:
        a, b = recipe.read(self.a), recipe.read(self.b)
        step = te.reduce_axis((0, a.shape[1]), "c")
        word = te.const(pack_scale(self.scale), "int32")

        def total(n: Expr, o: Expr, y: Expr, m: Expr) -> Expr:
            left = a[n, step, y, m].astype("int32") - self.a_zp
            return te.sum(left * (b[n, step, y, o].astype("int32") - self.b_zp), axis=step)

        acc = te.compute(recipe.out_shape, total, "acc")

        def value(*i: Expr) -> Expr:
            return requantized(acc[i], word, self.out_zp, self.lo, self.hi)

        return te.compute(recipe.out_shape, value, "product")
