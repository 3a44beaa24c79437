"""Sums of 16 bits of one image, whose tensors of 16 bits are bytes in DRAM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.numbers import pack_scales, requantize
from vdla.compiler.graph.ops.wide import BYTE_BITS, MOST
from vdla.compiler.graph.types import Array, Requant, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr


@dataclass(frozen=True, kw_only=True)
class QByteSum(Node):
    """A :class:`QWideSum` of an image [1, C, H, W], whose result is both of its bytes, int8
    [2, C, H, W], low before high; with ``requant`` it is int8, as there.

    ``bytes`` says of each term whether it is such bytes, else it is int8 or int32 of the image's
    shape. ``offset`` is int32 [C].
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("terms", "offset")
    COUNTED: ClassVar[str] = "weights"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("offset",)
    READS: ClassVar[frozenset[str]] = frozenset({"int8", "int32"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8"})

    terms: tuple[str, ...]
    bytes: tuple[bool, ...]
    zeros: tuple[int, ...]
    weights: tuple[int, ...]
    shift: int
    low: int = -MOST
    high: int = MOST
    requant: Requant | None = None
    offset: str | None = None

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        terms = shapes[: len(self.terms)]
        sizes = zip(terms, self.bytes, strict=True)
        images = {(n // 2 if whole else n, *rest) for (n, *rest), whole in sizes}
        if len(images) != 1 or not 1 <= len(terms) <= 2:
            raise self.error("one or two operands of one image", [list(s) for s in terms])
        (image,) = images
        if image[0] != 1 or len(image) != 4:
            raise self.error("one image [1, C, H, W]", list(image))
        for offset in shapes[len(terms) :]:
            if offset != image[1:2]:
                raise self.error(f"an offset of {image[1]} channels", list(offset))
        return image if self.requant else (2, *image[1:])

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Channels per block of the result: those of all terms, which lie alike."""
        blocks = {each.block for each in operands[: len(self.terms)]}
        return blocks.pop() if len(blocks) == 1 else 0

    @property
    def half(self) -> int:
        """Half of what a step of the result is of the sum."""
        return (1 << self.shift) >> 1

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        total = np.zeros((), np.int64)
        numbers = zip(args, self.bytes, self.zeros, self.weights, strict=False)
        for array, whole, zero, weight in numbers:
            term = array.astype(np.int64)
            term = (term[1:] << BYTE_BITS) + term[:1] if whole else term
            total = total + (term - zero) * weight
        for offset in args[len(self.terms) :]:
            total = total + offset.astype(np.int64).reshape(-1, 1, 1)
        if self.requant is not None:
            return requantize(total, pack_scales(self.requant.scale)[0], *self.requant.limits)
        steps = np.clip((total + self.half) >> self.shift, self.low, self.high)
        high = (steps + (1 << (BYTE_BITS - 1))) >> BYTE_BITS
        return np.concatenate([steps - (high << BYTE_BITS), high]).astype(np.int8)

    def express(self, recipe: Recipe) -> Tensor:
        terms = [recipe.image(name) for name in self.terms]
        offset = None if self.offset is None else recipe.read(self.offset)
        first = te.const(0)

        def total(c: Expr, y: Expr, x: Expr) -> Expr:
            result: Expr = te.const(0) if offset is None else offset[c]
            numbers = zip(terms, self.bytes, self.zeros, self.weights, strict=True)
            for term, whole, zero, weight in numbers:
                value = term(first, c, y, x).astype("int32")
                if whole:
                    value = term(te.const(1), c, y, x).astype("int32") * (1 << BYTE_BITS) + value
                result = result + (value - zero) * weight
            return result

        def value(n: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
            if self.requant is not None:
                word = te.const(int(pack_scales(self.requant.scale)[0]), "int32")
                return requantized(total(c, y, x), word, *self.requant.limits)
            rounded = (total(c, y, x) + self.half) >> self.shift
            steps = te.minimum(te.maximum(rounded, self.low), self.high)
            high = (steps + (1 << (BYTE_BITS - 1))) >> BYTE_BITS
            return te.select(n > 0, high, steps - high * (1 << BYTE_BITS)).astype("int8")

        return recipe.compute(value, "sum")
