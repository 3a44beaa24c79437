"""A function of one int8 tensor, element by element, as the table of its 256 results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.axes import Axes, by_element
from vdla.compiler.graph.ir import IntegerNode, Node, Recipe
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

RESULTS = 256  # of every int8 one
LEAST = -128  # the value whose result comes first


def check_table(node: Node, shape: Shape) -> None:
    """Raises GraphError where a node's table isn't one of int8's values."""
    if shape != (RESULTS,):
        raise node.error(f"a table of shape [{RESULTS}]", list(shape))


@dataclass(frozen=True, kw_only=True)
class QTable(IntegerNode):
    """``table[data + 128]``; ``table`` is int8 [256], the results of -128 to 127."""

    ELEMENTWISE: ClassVar[bool] = True
    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "table")
    PARAMETERS: ClassVar[tuple[str, ...]] = ("table",)

    data: str
    table: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        check_table(self, shapes[1])
        return shapes[0]

    def aligned_axes(self, shapes: Sequence[Shape], result: Shape) -> Axes:
        return by_element(shapes, result)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.asarray(args[1][args[0].astype(np.int32) - LEAST])

    def express(self, recipe: Recipe) -> Tensor:
        data, table = recipe.read(self.data), recipe.read(self.table)

        def value(*i: Expr) -> Expr:
            return table[data[i].astype("int32") - LEAST]

        return te.compute(recipe.out_shape, value, "looked_up")

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of the operand."""
        return operands[0].block
