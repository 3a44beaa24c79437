"""Products of two images, such as the scores of attention: what both have in the same channel, of
each two pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Self

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.boundaries import int8_source, meets
from vdla.compiler.graph.clusters import Cluster
from vdla.compiler.graph.form import Form, Order
from vdla.compiler.graph.ir import GraphError, Node, Recipe
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.add import QAdd
from vdla.compiler.graph.ops.clip import QClip
from vdla.compiler.graph.ops.matmul import MatMul
from vdla.compiler.graph.ops.products import centered
from vdla.compiler.graph.ops.quantize import Dequantize, Quantize
from vdla.compiler.graph.ops.softmax import Softmax
from vdla.compiler.graph.ops.table import QTable
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.sums import check_products, within
from vdla.compiler.graph.types import Array, Requant, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

PASSED = (Dequantize, Quantize, QAdd, QClip, QTable)  # on the way from scores to their softmax


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
        a, b = shapes
        rows = len(a) == len(b) == 4 and a[2] == b[2] == 1
        if not rows or a[:2] != b[:2]:
            images = "two images [N, C, 1, W] of the same channels"
            raise self.error(images, f"{list(a)} and {list(b)}")
        return a[0], b[3], 1, a[3]

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
        a, b = recipe.read(self.a), recipe.read(self.b)
        step = te.reduce_axis((0, a.shape[1]), "c")
        zero_a, zero_b = self.zeros

        def total(n: Expr, o: Expr, y: Expr, m: Expr) -> Expr:
            left = a[n, step, y, m].astype("int32") - zero_a
            return te.sum(left * (b[n, step, y, o].astype("int32") - zero_b), axis=step)

        acc, narrow = te.compute(recipe.out_shape, total, "acc"), self.narrowing(recipe)
        return te.compute(recipe.out_shape, lambda *i: narrow(acc[i]), "product")


@dataclass(frozen=True)
class Product(Cluster):
    """A product of two stacks of matrices, [..., M, K] and [..., K, O]."""

    rank: int

    @classmethod
    def find(cls, node: Quantize, around: Neighbours) -> Self | None:
        """The product that a node quantizes, if both factors are int8 and the stacks alike."""
        core = around.maker(node.data, MatMul)
        if core is None:
            return None
        a, b = int8_source(core.a, around), int8_source(core.b, around)
        stacks = {around.shape(name)[:-2] for name in (core.a, core.b)}
        alone = len(around.readers(core.output)) == 1 and core.output not in around.outputs
        if a is None or b is None or len(stacks) > 1 or not alone:
            return None
        try:
            check_products(around.shape(core.a)[-1], a.zero_point[0], b.zero_point[0])
        except GraphError as error:
            around.reasons[core.name] = str(error)
            return None
        return cls(node, (a, b), len(around.shape(node.output)))

    def order(self, known: Sequence[Form | None], around: Neighbours) -> Order | None:
        """Columns as channels, or rows where a softmax over columns follows: it works on pixels."""
        if not any(known):
            return None
        *stack, rows, columns = range(self.rank)
        softmax = meets(self.quantize.output, Softmax, PASSED, around)
        channels, pixels = (rows, columns) if softmax else (columns, rows)
        return Order(tuple(stack), (channels,), (pixels,))

    def orders(self, order: Order) -> tuple[Order, ...]:
        """Orders of the factors: the axis that is summed over lies in both factors' channels."""
        stack, (rows, columns) = order.batch, (self.rank - 2, self.rank - 1)
        return Order(stack, (columns,), (rows,)), Order(stack, (rows,), (columns,))

    def node(self, name: str, images: Sequence[str], output: str, order: Order) -> Node:
        """The product of two images."""
        (a, b), (of_a, of_b), result = self.sources, images, self.quantize
        if order.channels == (self.rank - 2,):
            a, b, of_a, of_b = b, a, of_b, of_a
        scale = np.float32(a.scale[0]) * np.float32(b.scale[0]) / np.float32(result.scale[0])
        return QMatMul(
            name=name,
            output=output,
            a=of_a,
            b=of_b,
            zeros=(a.zero_point[0], b.zero_point[0]),
            requant=Requant((float(scale),), result.zero_point[0]),
        )
