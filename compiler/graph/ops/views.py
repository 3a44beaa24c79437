"""Operators that take no work: what they write is there already, at an address in other bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import ClassVar, NamedTuple

from vdla.compiler.graph.ir import IntegerNode, TensorType
from vdla.compiler.graph.ops.concat import QConcat
from vdla.compiler.graph.ops.reshape import QReshape
from vdla.compiler.graph.ops.take import QTake


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
class QReshapeView(QReshape, ByAddresses):
    """A :class:`QReshape` of images that keeps channels and the order of pixels."""

    NOT_ACCELERATED: ClassVar[str] = ""
    PLACED: ClassVar[str] = "image of another shape by addresses on int8"

    def views(self, tensors: Mapping[str, TensorType]) -> dict[str, View]:
        """The result, where the data is."""
        return {self.output: View(self.data)}


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
