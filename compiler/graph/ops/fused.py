"""Host operators in a row as one function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vdla.compiler.graph.ir import Array, Node, Recipe, Shape, TensorType
from vdla.compiler.graph.ops.im2col import Im2col
from vdla.compiler.graph.ops.quantize import Dequantize, FlipSign, Quantize
from vdla.compiler.te import Tensor


@dataclass(frozen=True, kw_only=True)
class Fused(Node):
    """Host nodes in a row as one function: ``parts``, each reading what the one before writes."""

    data: str
    parts: tuple[Node, ...]

    @property
    def op(self) -> str:
        """The one of them that isn't a mere move of bytes."""
        return next(p.op for p in self.parts if isinstance(p, Quantize | Dequantize | FlipSign))

    def result_shape(self, shapes: Sequence[Shape]) -> Shape | None:
        """Its parts have been checked, one by one, before they were fused."""
        return None

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        """Not for it alone: its parts' tensors have types of their own."""
        raise NotImplementedError

    def express(self, recipe: Recipe) -> Tensor:
        for part in self.parts:
            result = recipe.part(part, keep=part.data if isinstance(part, Im2col) else None)
        return result
