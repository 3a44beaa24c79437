"""Products of two images, such as the scores of attention: what both have in the same channel, of
each two pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.ops.products import centered
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.sums import within
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class QMatMul(Requantized):
    """``acc[n, o, m] = Σ_c (a[n, c, 0, m] - zeros[0]) * (b[n, c, 0, o] - zeros[1])`` in int32,
    requantized as ``output[n, o, 0, m]``.

    Of ``a``, [N, C, 1, M], and ``b``, [N, C, 1, O], the result has the pixels of ``a``, and the
    pixels of ``b`` as channels. ``requant.scale`` is ``a_scale * b_scale / y_scale`` in float32.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")

    a: str
    b: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return _product_shape(self, shapes)

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        return 2 * prod(result) * shapes[0][1]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return self.narrow(self._sums(args).astype(np.int64))

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, int]:
        """The sums at the result's scale: exact in int32, then made floats and multiplied by a
        scale that is a product and a quotient of floats."""
        value = self._sums(args) * self.requant.scale[0]
        return value, np.abs(value), 4

    def _sums(self, args: Sequence[Array]) -> Array:
        a, b = (centered(x[:, :, 0], zero) for x, zero in zip(args, self.zeros, strict=True))
        return within(np.matmul(b.swapaxes(1, 2), a)[:, :, np.newaxis])

    def express(self, recipe: Recipe) -> Tensor:
        acc, narrow = _sums(recipe, self.a, self.b, self.zeros), self.narrowing(recipe)
        return te.compute(recipe.out_shape, lambda *i: narrow(acc[i]), "product")


@dataclass(frozen=True, kw_only=True)
class QWideMatMul(Node):
    """``output[n, o, 0, m] = Σ_c a[n, c, 0, m] * b[n, c, 0, o]``, int8 by int8, as int32.

    Shapes are those of :class:`QMatMul`.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")
    READS: ClassVar[frozenset[str]] = frozenset({"int8"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int32"})

    a: str
    b: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return _product_shape(self, shapes)

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        return 2 * prod(result) * shapes[0][1]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        a, b = (x[:, :, 0].astype(np.int64) for x in args)
        return np.asarray(np.matmul(b.swapaxes(1, 2), a)[:, :, np.newaxis]).astype(np.int32)

    def express(self, recipe: Recipe) -> Tensor:
        return _sums(recipe, self.a, self.b, (0, 0))


def _product_shape(node: Node, shapes: Sequence[Shape]) -> Shape:
    """The shape [N, O, 1, M] of a product of images."""
    a, b = shapes
    rows = len(a) == len(b) == 4 and a[2] == b[2] == 1
    if not rows or a[:2] != b[:2]:
        images = "two images [N, C, 1, W] of the same channels"
        raise node.error(images, f"{list(a)} and {list(b)}")
    return a[0], b[3], 1, a[3]


def _sums(recipe: Recipe, first: str, second: str, zeros: Sequence[int]) -> Tensor:
    """The sums of a product of images, in int32."""
    a, b = recipe.read(first), recipe.read(second)
    step = te.reduce_axis((0, a.shape[1]), "c")
    zero_a, zero_b = zeros

    def total(n: Expr, o: Expr, y: Expr, m: Expr) -> Expr:
        left = a[n, step, y, m].astype("int32") - zero_a
        return te.sum(left * (b[n, step, y, o].astype("int32") - zero_b), axis=step)

    return te.compute(recipe.out_shape, total, "acc")
