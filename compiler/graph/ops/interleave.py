"""Images of one size whose pixels take turns in a larger one: what a transposed convolution's
sub-filters are joined by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import IntegerNode, Node, Recipe
from vdla.compiler.graph.ops.elementwise import common_block
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class AnyInterleave(Node, operator=False):
    """Interleaving of images, for elements of any type.

    Pixel (y, x) of the result is pixel (y / rows, x / columns) of part number
    (y % rows) * columns + x % columns. The parts are [N, C, H, W], the result is
    [N, C, H * rows, W * columns].
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("parts",)

    parts: tuple[str, ...]
    rows: int
    columns: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        count = self.rows * self.columns
        if len(shapes) != count or len(set(shapes)) != 1 or len(shapes[0]) != 4:
            raise self.error(f"{count} images of one shape", [list(shape) for shape in shapes])
        n, c, height, width = shapes[0]
        return n, c, height * self.rows, width * self.columns

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        result = np.empty(kind.shape, args[0].dtype)
        for number, part in enumerate(args):
            row, column = divmod(number, self.columns)
            result[:, :, row :: self.rows, column :: self.columns] = part
        return result

    def express(self, recipe: Recipe) -> Tensor:
        parts = [recipe.read(name) for name in self.parts]

        def value(n: Expr, c: Expr, y: Expr, x: Expr, *channel: Expr) -> Expr:
            place = n, c, te.floordiv(y, self.rows), te.floordiv(x, self.columns), *channel
            turn = te.floormod(y, self.rows) * self.columns + te.floormod(x, self.columns)
            result: Expr = parts[-1][place]
            for number in reversed(range(len(parts) - 1)):
                result = te.select(turn <= number, parts[number][place], result)
            return result

        return te.compute(recipe.out_shape, value, "interleaved")

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of the parts, which lie alike."""
        return common_block(operands)


@dataclass(frozen=True, kw_only=True)
class Interleave(AnyInterleave):
    """Pixels of several images of one shape by turns."""

    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)


@dataclass(frozen=True, kw_only=True)
class QInterleave(IntegerNode, AnyInterleave):
    """:class:`Interleave` on integers of one scale."""
