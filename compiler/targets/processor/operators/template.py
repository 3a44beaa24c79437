"""Templates of a processor, which add to those of all targets the layout of channels.

A template is one algorithm for some kinds of nodes. A node that no template takes has its own plain
expression, which ``plain`` schedules.

A function may compute several nodes (``graph.ops.Fused``); one of them at most has a template, and
what is fused behind it is the epilogue: ``schedule`` gets the function's last tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from vdla.compiler.graph.ir import Known, Node
from vdla.compiler.graph.types import TensorType
from vdla.compiler.targets.processor.description.processor import Processor, Vectors
from vdla.compiler.targets.template import ScheduledTemplate

N = TypeVar("N", bound=Node)


class Template(ScheduledTemplate[N, Processor]):
    """An algorithm for the nodes of ``NODES``."""

    @classmethod
    def channel_block(
        cls, node: N, operands: Sequence[TensorType], known: Known, vectors: Vectors
    ) -> int:
        """Number of channels of a node's result that it wants side by side.

        Args:
            node: one of ``NODES``.
            operands: the types of what it reads, as they lie so far.
            known: the names of the graph's constants.
            vectors: the processor's.

        Returns:
            0 where the channels are to lie as the node itself says (``Node.channel_block``).
        """
        return 0


AnyTemplate = Template[Any]
