"""Tensors one behind another along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.numbers import requantize
from vdla.compiler.graph.ops.clip import at_scale
from vdla.compiler.graph.requant import Requantized
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.numbers import pack_scale

Part = Callable[..., Expr]  # of an index of the part
CHAINED = 16  # so many parts are asked for one after the other


@dataclass(frozen=True, kw_only=True)
class AnyConcat(Node, operator=False):
    """Parts, axis and shape of every concatenation."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("parts",)

    parts: tuple[str, ...]
    axis: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        first, axis = shapes[0], self.axis
        if not 0 <= axis < len(first):
            raise self.error(f"an axis below {len(first)}", axis)
        for shape in shapes[1:]:
            if (*shape[:axis], *shape[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]):
                raise self.error(
                    f"parts that differ from {list(first)} only in axis {axis}", list(shape)
                )
        return (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])

    def joined(self, recipe: Recipe, parts: Sequence[Part], sizes: Sequence[int]) -> Tensor:
        """The parts, which have these sizes along the axis."""
        ends = list(accumulate(sizes))

        def value(*i: Expr) -> Expr:
            return self._chosen(i, parts, ends, range(len(parts)))

        return te.compute(recipe.out_shape, value, "joined")

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of its parts, which are whole blocks."""
        blocks = {each.block for each in operands}
        whole = all(each.block and each.shape[1] % each.block == 0 for each in operands)
        return blocks.pop() if whole and len(blocks) == 1 else 0

    def _chosen(
        self, i: Sequence[Expr], parts: Sequence[Part], ends: Sequence[int], some: range
    ) -> Expr:
        """The element at an index that lies within ``some`` of the parts.

        Few parts are asked for one after the other. Many are halved, so that the expression of a
        sequence of thousands isn't as deep as it is long.
        """
        first, axis = some[0], self.axis
        if len(some) == 1:
            start = ends[first - 1] if first else 0
            return parts[first](*i[:axis], i[axis] - start, *i[axis + 1 :])
        count = 1 if len(some) <= CHAINED else len(some) // 2
        left = self._chosen(i, parts, ends, some[:count])
        right = self._chosen(i, parts, ends, some[count:])
        return te.select(i[axis] < ends[some[count] - 1], left, right)


@dataclass(frozen=True, kw_only=True)
class Concat(AnyConcat, Quantizable):
    """The parts one behind another along ``axis``."""

    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.concatenate(args, axis=self.axis)

    def express(self, recipe: Recipe) -> Tensor:
        tensors = [recipe.read(name) for name in self.parts]
        blocks = [recipe.block(name) for name in self.parts]
        least = min(blocks)
        parts = [
            t if own == least else _of_larger_blocks(t, own // least, least)
            for t, own in zip(tensors, blocks, strict=True)
        ]
        more = [own // least if least and self.axis == 1 else 1 for own in blocks]
        sizes = [t.shape[self.axis] * n for t, n in zip(tensors, more, strict=True)]
        return self.joined(recipe, parts, sizes)

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: the fewest of its parts, which are whole blocks."""
        blocks = [each.block for each in operands]
        least = min(blocks)
        whole = all(least and n % least == 0 for n in blocks)
        return least if whole and all(t.shape[1] % t.block == 0 for t in operands) else 0

    def quantized(self, island: Island) -> Node:
        """A :class:`QConcat`."""
        sources = [island.source(name) for name in self.parts]
        return QConcat(
            **island.names,
            parts=tuple(name for name, _ in sources),
            axis=self.axis,
            zeros=tuple(quant.zero_point for _, quant in sources),
            requant=island.requant(*(island.ratio(quant) for _, quant in sources)),
        )


def _of_larger_blocks(tensor: Tensor, count: int, block: int) -> Part:
    """An image in blocks as one whose blocks are smaller, ``count`` of them in each."""

    def at(*i: Expr) -> Expr:
        n, o, y, x, l = i
        return tensor[n, te.floordiv(o, count), y, x, te.floormod(o, count) * block + l]

    return at


@dataclass(frozen=True, kw_only=True)
class QConcat(Requantized, AnyConcat):
    """Parts one behind another, each requantized: part i less ``zeros[i]`` by
    ``requant.scale[i]``."""

    CLIPS: ClassVar[bool] = False

    def is_copy(self, number: int) -> bool:
        """Whether the result has a part as it is."""
        scale, zero = self.requant.scale[number], self.zeros[number]
        return (scale, zero) == (1.0, self.requant.zero) and not self.requant.clips

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        parts = [
            requantize(x.astype(np.int64) - zero, pack_scale(scale), *self.requant.limits)
            for x, scale, zero in zip(args, self.requant.scale, self.zeros, strict=True)
        ]
        return np.concatenate(parts, axis=self.axis)

    def express(self, recipe: Recipe) -> Tensor:
        parts: list[Part] = []
        sizes: list[int] = []
        for number, name in enumerate(self.parts):
            tensor = recipe.read(name)
            sizes.append(tensor.shape[self.axis])
            scale, zero = self.requant.scale[number], self.zeros[number]
            part = at_scale(tensor, scale, zero, self.requant.limits)
            parts.append(tensor if self.is_copy(number) else part)
        return self.joined(recipe, parts, sizes)
