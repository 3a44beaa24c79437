"""Operators that take no work: what they write is there already, at an address in other bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import ClassVar, NamedTuple

from vdla.compiler import te
from vdla.compiler.graph.ir import IntegerNode, Recipe
from vdla.compiler.graph.ops.blocks import pack, unpack
from vdla.compiler.graph.ops.concat import QConcat
from vdla.compiler.graph.ops.take import QTake
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.support.numbers import ceil_div


class View(NamedTuple):
    """The place of a tensor that is some of another one's bytes: from byte ``offset`` on."""

    whole: str
    offset: int = 0


@dataclass(frozen=True, kw_only=True)
class ByAddresses(IntegerNode, operator=False):
    """An operator without instructions, where its tensors lie in blocks of channels.

    ``PLACED`` is what the placement report says of it.
    """

    PLACED: ClassVar[str]

    @abstractmethod
    def views(self, tensors: Mapping[str, TensorType]) -> dict[str, View]:
        """The tensors that are others' bytes, and where in them.

        Args:
            tensors: the types of a graph's tensors, as they lie in memory.
        """


@dataclass(frozen=True, kw_only=True)
class QConcatView(QConcat, ByAddresses):
    """A :class:`QConcat` whose parts are written where the result has them: one image's channels,
    or images.

    All parts are plain copies. Of channels, each but the last ends with a whole block.
    """

    PLACED: ClassVar[str] = "concatenation by addresses on int8"

    def views(self, tensors: Mapping[str, TensorType]) -> dict[str, View]:
        """Every part, one behind another in the result."""
        starts = accumulate((tensors[part].nbytes for part in self.parts), initial=0)
        places = zip(self.parts, starts, strict=False)
        return {part: View(self.output, start) for part, start in places}


@dataclass(frozen=True, kw_only=True)
class QView(ByAddresses):
    """The bytes of an image as one of another ``shape``, where channels lie in blocks of ``lanes``.

    Channels that fill no block stay as they are: their number, and that of images.
    """

    READS: ClassVar[frozenset[str]] = frozenset({"int8", "int32"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8", "int32"})
    PLACED: ClassVar[str] = "image of another shape by addresses"

    data: str
    shape: Shape
    lanes: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        sizes = [[n, ceil_div(c, self.lanes), h, w] for n, c, h, w in (shapes[0], self.shape)]
        whole = all(shape[1] % self.lanes == 0 for shape in (shapes[0], self.shape))
        alike = whole or shapes[0][:2] == self.shape[:2]
        if not alike or prod(sizes[0]) != prod(sizes[1]):
            expected = f"an image with the bytes of {list(self.shape)} in blocks of {self.lanes}"
            raise self.error(expected, list(shapes[0]))
        return self.shape

    def views(self, tensors: Mapping[str, TensorType]) -> dict[str, View]:
        """The result, where the data is."""
        return {self.output: View(self.data)}

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        blocked = TensorType(self.shape, kind.dtype, block=self.lanes).physical
        return unpack(pack(args[0], self.lanes).reshape(blocked), self.shape)

    def express(self, recipe: Recipe) -> Tensor:
        data, (_, channels, height, width) = recipe.image(self.data), recipe.shape(self.data)
        sizes = ceil_div(channels, self.lanes), height, width
        _, own, rows, columns = self.shape

        def value(n: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
            block = n * ceil_div(own, self.lanes) + te.floordiv(c, self.lanes)
            place, at = (block * rows + y) * columns + x, list[Expr]()
            for size in reversed(sizes):
                place, part = te.floordiv(place, size), te.floormod(place, size)
                at.insert(0, part)
            return data(place, at[0] * self.lanes + te.floormod(c, self.lanes), at[1], at[2])

        return recipe.compute(value, "viewed")


@dataclass(frozen=True, kw_only=True)
class QTakeView(QTake, ByAddresses):
    """A :class:`QTake` of whole blocks of one image's channels, or of whole images, one behind
    another."""

    READS: ClassVar[frozenset[str]] = frozenset({"int8", "int32"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8", "int32"})
    PLACED: ClassVar[str] = "slice by addresses"

    def views(self, tensors: Mapping[str, TensorType]) -> dict[str, View]:
        """The result, where the data has its first image and channel."""
        images, channels, *_ = self.tables()
        kind, whole = tensors[self.output], tensors[self.data]
        image_bytes = whole.nbytes // whole.shape[0]
        block_bytes = kind.nbytes // prod(kind.physical[:2])
        first = channels[0] // kind.block * block_bytes if kind.block else 0
        return {self.output: View(self.data, images[0] * image_bytes + first)}
