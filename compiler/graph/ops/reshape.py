"""Reshapes: elements in row-major order under another shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from vdla.compiler import te
from vdla.compiler.graph.ir import IntegerNode, Node, Recipe
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import Tensor


@dataclass(frozen=True, kw_only=True)
class AnyReshape(Node, operator=False):
    """Data and shape of every reshape, for elements of any type."""

    data: str

    def result_shape(self, shapes: Sequence[Shape]) -> None:
        """The output's type says it; ``verify`` compares the element counts."""
        return

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return args[0].reshape(kind.shape)

    def express(self, recipe: Recipe) -> Tensor:
        count = prod(recipe.out_shape)
        data = recipe.read(self.data, (count,))
        return te.compute((count,), lambda i: data[i], "copied")


@dataclass(frozen=True, kw_only=True)
class QReshape(IntegerNode, AnyReshape):
    """:class:`Reshape` on integers."""

    NOT_ACCELERATED: ClassVar[str] = "channel blocks can't be reshaped in place"


@dataclass(frozen=True, kw_only=True)
class Reshape(AnyReshape):
    """Reshape: elements in row-major order under the output's shape."""

    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)
    ON_INT8: ClassVar[type[Node] | None] = QReshape
