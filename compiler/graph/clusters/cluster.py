"""A cluster of float operators, and what all kinds of them say.

A **cluster** is what a Quantize has behind it, down to its sources. It knows which axes of its
result are channels and pixels, which those of its sources then are, and its node. Each kind is a
file beside this one:

    product        Q(MatMul(DQ, DQ))
    softmax        Q(Softmax(DQ))
    mean           Q(mean(DQ))
    normalization  Q((x - mean) / √(mean((x - mean)²) + epsilon) * gamma + beta), x = DQ; the RMS
                   form has no mean, and factor and offset may be missing; of 16 bits, too
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from vdla.compiler.graph.form import Form, Order
from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.quantize import AnyDequantize, Quantize
from vdla.compiler.graph.ops.wide import Quantize16
from vdla.compiler.graph.types import Array

KINDS: list[type[Cluster]] = []
End = Quantize | Quantize16


@dataclass(frozen=True)
class Cluster(ABC):
    """The float operators that a node quantizes, and what they read.

    ``DIFFERS`` says how results may differ from the float operators', rounded; nothing where they
    don't. ``WIDE`` says that its result may have 16 bits.
    """

    DIFFERS: ClassVar[str] = ""
    WIDE: ClassVar[bool] = False

    quantize: End
    sources: tuple[AnyDequantize, ...]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        KINDS.append(cls)

    @classmethod
    @abstractmethod
    def find(cls, node: End, around: Neighbours) -> Self | None:
        """The cluster of this kind that a node has behind it; None where there is none."""

    @abstractmethod
    def order(self, known: Sequence[Form | None], around: Neighbours) -> Order | None:
        """The axes of the result in each place of its image, given how the sources lie in theirs;
        None where they had better stay as they are."""

    @abstractmethod
    def orders(self, order: Order) -> tuple[Order, ...]:
        """The axes of each source in its image, for those of the result."""

    @abstractmethod
    def node(self, name: str, images: Sequence[str], output: str, order: Order) -> Node:
        """The operator on the sources' images; ``constants`` are its other operands."""

    def constants(self) -> dict[str, Array]:
        """Arrays that its node reads besides, by the names of its fields."""
        return {}
