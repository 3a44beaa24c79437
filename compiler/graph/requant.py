"""Operators whose wide results become int8: what all of them share.

``Requant`` (``types.py``) says how; here is what it does to arrays and to expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from vdla.compiler import te
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import IntegerNode, Node, Recipe
from vdla.compiler.graph.numbers import pack_scales, requantize
from vdla.compiler.graph.types import Array, Requant
from vdla.compiler.tir.ir import Expr

Narrowing = Callable[..., Expr]  # of a wide element and, where scales are many, its channel


@dataclass(frozen=True, kw_only=True)
class Requantized(IntegerNode, operator=False):
    """An operator that computes in wide integers and makes its int8 result of them by ``requant``.

    ``zeros`` are the zero points of the int8 tensors that it reads, in order. ``CLIPS`` says that
    a clip behind it may be its own.
    """

    CLIPS: ClassVar[bool] = True

    zeros: tuple[int, ...]
    requant: Requant

    def clipped(self, low: int, high: int) -> Node | None:
        """The operator with narrower bounds."""
        return replace(self, requant=self.requant.within(low, high)) if self.CLIPS else None

    def narrow(self, wide: Array) -> Array:
        """The int8 results of wide ones [N, C, …]."""
        words = pack_scales(self.requant.scale)
        words = words.reshape(-1, *(1,) * (wide.ndim - 2)) if len(words) > 1 else words[0]
        return requantize(wide, words, *self.requant.limits)

    def narrowing(self, recipe: Recipe) -> Narrowing:
        """The int8 element of a wide one and, where channels have scales, its channel."""
        word = word_of(recipe, self.requant.scale)
        return lambda wide, *channel: requantized(wide, word(*channel), *self.requant.limits)


def word_of(recipe: Recipe, scale: Sequence[float]) -> Callable[..., Expr]:
    """The packed scale of a channel: a constant if all are equal."""
    words = pack_scales(scale)
    if (words == words[0]).all():
        word = te.const(int(words[0]), "int32")
        return lambda *channel: word
    table = recipe.constant("scale", words)
    return lambda *channel: table[channel]
