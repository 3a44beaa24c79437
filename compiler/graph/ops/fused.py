"""Operators in a row as one function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.ops.im2col import Im2col
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor


@dataclass(frozen=True, kw_only=True)
class Fused(Node):
    """Nodes in a row as one function: ``parts``, each reading what the one before writes.

    ``operands`` are the tensors that they read and none of them writes.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("operands",)

    operands: tuple[str, ...]
    parts: tuple[Node, ...]

    @property
    def op(self) -> str:
        """The one of them that isn't a mere move of bytes; else the first, which has the work."""
        boundary = (part.op for part in self.parts if part.CONVERTS == "numbers")
        return next(boundary, self.parts[0].op)

    @property
    def parameters(self) -> frozenset[str]:
        """The names of the tensors that hold its parts' weights."""
        return frozenset(name for part in self.parts for name in part.parameters)

    @property
    def inner_tensors(self) -> tuple[str, ...]:
        """The results of all parts but the last."""
        return tuple(part.output for part in self.parts[:-1])

    def renamed(self, names: Mapping[str, str]) -> Self:
        """A copy whose parts read other tensors, too."""
        parts = tuple(part.renamed(names) for part in self.parts)
        operands = tuple(names.get(name, name) for name in self.operands)
        return replace(self, operands=operands, parts=parts)

    def writing(self, name: str) -> Self:
        """A copy whose last part writes another tensor, too."""
        *others, last = self.parts
        return replace(self, output=name, parts=(*others, last.writing(name)))

    def result_shape(self, shapes: Sequence[Shape]) -> Shape | None:
        """None: the shapes of the parts were checked, one by one, before they were fused."""
        return None

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        """Not for it alone: its parts' tensors have types of their own."""
        raise NotImplementedError

    def express(self, recipe: Recipe) -> Tensor:
        for part in self.parts:
            result = recipe.part(part, keep=part.data if isinstance(part, Im2col) else None)
        return result


def fuse(parts: Sequence[Node], name: str) -> Fused:
    """Nodes in a row as one."""
    written = {part.output for part in parts}
    read = dict.fromkeys(n for part in parts for n in part.inputs if n not in written)
    return Fused(name=name, output=parts[-1].output, operands=tuple(read), parts=tuple(parts))
