"""How a processor computes a node: the protocol of this folder's templates.

A **template** is one algorithm for some kinds of nodes: it says which nodes it fits, writes their
expression for the processor's vectors, and schedules it. It holds the tensors of its expression, so
its schedule finds them by themselves. A node that no template fits has its own plain expression,
which ``plain`` schedules.

A function may compute several nodes (``graph.ops.Fused``); one of them at most has a template, and
what is fused behind it is the epilogue: :meth:`Template.schedule` gets the function's last tensor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

from vdla.compiler.graph.ir import Graph, Known, Node, Recipe, TensorType
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.processor import Processor, Vectors
from vdla.compiler.te import Tensor

N = TypeVar("N", bound=Node)


class Template(ABC, Generic[N]):
    """An algorithm for the nodes of ``NODES``: a frozen dataclass of its expression's tensors."""

    NODES: ClassVar[tuple[type[Node], ...]]

    result: Tensor  # what the node writes

    @classmethod
    def channel_block(
        cls, node: N, operands: Sequence[TensorType], known: Known, vectors: Vectors
    ) -> int:
        """How many channels of a node's result it wants side by side.

        Args:
            node: one of ``NODES``.
            operands: the types of what it reads, as they lie so far.
            known: the names of the graph's constants.
            vectors: the processor's.

        Returns:
            0 where the channels are to lie as the node itself says (``Node.channel_block``).
        """
        return 0

    @classmethod
    @abstractmethod
    def fits(cls, node: N, graph: Graph, processor: Processor) -> bool:
        """Whether it computes a node of a laid-out graph, and is worth it."""

    @classmethod
    @abstractmethod
    def of(cls, node: N, recipe: Recipe, processor: Processor) -> Self:
        """The expression of a node that it fits, written with ``recipe``."""

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """Tensors that move elements and that its schedule places: they aren't computed inline."""
        return ()

    @abstractmethod
    def schedule(self, s: Schedule, result: Tensor) -> None:
        """Schedules a function that computes the node and, from it, ``result``."""


AnyTemplate = Template[Any]
