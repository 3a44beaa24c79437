"""Between N, C, H, W and the channel blocks in which targets read and write images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.support.numbers import ceil_div


@dataclass(frozen=True, kw_only=True)
class Blocks(Node, operator=False):
    """Fields and types of packing and unpacking; blocks are of ``block`` channels, of any type."""

    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)

    data: str
    block: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]


@dataclass(frozen=True, kw_only=True)
class Pack(Blocks):
    """[N, C, H, W] (or [N, C]) to channel blocks [N, ceil(C/block), H, W, block], filled with 0."""

    CONVERTS: ClassVar[str] = "layout"
    NOT_ACCELERATED: ClassVar[str] = "layout change on the way to the accelerator"

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return pack(args[0], self.block)

    def express(self, recipe: Recipe) -> Tensor:
        n, c, *image = recipe.shape(self.data)
        data = recipe.read(self.data, (n, c, *(image or (1, 1))))

        def value(b: Expr, outer: Expr, y: Expr, x: Expr, lane: Expr) -> Expr:
            channel = outer * self.block + lane
            return te.select(channel < c, data[b, channel, y, x], te.const(0, recipe.out_dtype))

        return te.compute(recipe.out_shape, value, "packed")


@dataclass(frozen=True, kw_only=True)
class Unpack(Blocks):
    """Channel blocks back to [N, C, H, W] (or [N, C])."""

    CONVERTS: ClassVar[str] = "layout"
    NOT_ACCELERATED: ClassVar[str] = "layout change on the way from the accelerator"

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return unpack(args[0], kind.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        n, c, *image = recipe.shape(self.output)
        block = self.block

        def value(b: Expr, channel: Expr, y: Expr, x: Expr) -> Expr:
            return data[b, te.floordiv(channel, block), y, x, te.floormod(channel, block)]

        return te.compute((n, c, *(image or (1, 1))), value, "unpacked")


def pack(x: Array, block: int) -> Array:
    """[N, C, H, W] or [N, C] to [N, ceil(C/block), H, W, block]; zeros fill the last block."""
    n, c = x.shape[:2]
    image = x.reshape(n, c, *(x.shape[2:] or (1, 1)))
    blocks = ceil_div(c, block)
    padded = np.zeros((n, blocks * block, *image.shape[2:]), x.dtype)
    padded[:, :c] = image
    split = padded.reshape(n, blocks, block, *image.shape[2:])
    return np.ascontiguousarray(split.transpose(0, 1, 3, 4, 2))


def unpack(x: Array, shape: Sequence[int]) -> Array:
    """The inverse of :func:`pack` for a tensor of logical ``shape``."""
    n, blocks, h, w, block = x.shape
    channels = x.transpose(0, 1, 4, 2, 3).reshape(n, blocks * block, h, w)[:, : shape[1]]
    return np.ascontiguousarray(channels).reshape(shape)
