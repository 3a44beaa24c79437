"""Nodes that the accelerator takes, and reasons for which it leaves others to the processor."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.wide import QWideConv2d
from vdla.compiler.targets.accelerator.operators.template import BY_NODE, MIN_FILL
from vdla.isa.config import Config


@dataclass(frozen=True)
class Capability:
    """Abilities of the accelerator of a config.

    ``min_fill`` is the share of the input lanes that a convolution must fill, but for one of what
    the accelerator itself writes: to fetch that takes longer. ``strict`` leaves out what in
    integers isn't the float operators' result bit for bit.
    """

    config: Config
    min_fill: float = MIN_FILL
    strict: bool = False

    @property
    def block(self) -> int:
        """Channels of a block."""
        return self.config.channel_block

    def takes(self, node: Node | None, editor: Editor) -> bool:
        """Whether a node of a graph under change should run on the accelerator; of what the caller
        gives there is none."""
        return node is not None and self.refusal(node, editor.graph()) is None

    def refusal(self, node: Node, graph: Graph) -> str | None:
        """Reason for which a node of an optimized graph can't or shouldn't run on the accelerator;
        None if it should."""
        if isinstance(node, ops.ByAddresses):
            return None
        if template := BY_NODE.get(type(node)):
            refusal = template.refusal(node, graph, self.config, self.min_fill)
            if refusal is None or not self._is_narrow(node, graph):
                return refusal
            read = (name for name in node.inputs if name not in graph.constants)
            makers = (graph.producers.get(name) for name in read)
            made = (maker is not None and not self.refusal(maker, graph) for maker in makers)
            return None if any(made) else refusal
        if node.NOT_ACCELERATED:
            return node.NOT_ACCELERATED
        name = f"float operator {getattr(node, 'function', node.op)}"
        return f"{name}: {graph.reasons[node.name]}" if node.name in graph.reasons else name

    def _is_narrow(self, node: Node, graph: Graph) -> bool:
        """Whether a node is a convolution that is refused for its few channels alone."""
        if not isinstance(node, ops.QConv2d | QWideConv2d):
            return False
        return BY_NODE[type(node)].refusal(node, graph, self.config, 0.0) is None
