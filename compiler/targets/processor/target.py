"""A processor as a target of the compiler: it runs all that others leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.passes import Rewrite
from vdla.compiler.graph.spec import LAYOUT, Pass
from vdla.compiler.placement import ONNXRUNTIME, PROCESSOR, Placement, Placements
from vdla.compiler.targets.functions import FunctionCodes, Traces, codes_of, told_apart, untuned
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor
from vdla.compiler.targets.processor.node_functions import node_functions
from vdla.compiler.targets.processor.part import HostPart
from vdla.compiler.targets.processor.rewrites.fuse_ops import fuse_ops
from vdla.compiler.targets.processor.rewrites.images import block_images
from vdla.compiler.targets.processor.rewrites.products import stack_products
from vdla.compiler.targets.target import Layout, Target
from vdla.compiler.user import registered

ALONE = Placement(PROCESSOR, "device cpu has no accelerator")


@dataclass(frozen=True)
class ProcessorTarget(Target):
    """A processor; ``alone`` where no accelerator is beside it.

    ``traces`` gives the tuned schedules of its functions.
    """

    DEVICE: ClassVar[str] = PROCESSOR

    processor: Processor = NATIVE
    alone: bool = False
    traces: Traces = untuned

    @property
    def layouts(self) -> Sequence[Pass[Layout]]:
        """Blocks of channels, and several operators as one function, in a graph that is the
        processor's alone: beside an accelerator, tensors lie as both of them read them."""
        if not self.alone:
            return ()

        def blocked(graph: Graph) -> Graph:
            return block_images(graph, self.processor.vectors)

        def fused(graph: Graph) -> Graph:
            return fuse_ops(graph, self.processor)

        return (
            Pass("stack_products", _placed(stack_products)),
            Pass("block_images", _placed(blocked), adds=LAYOUT, blocks=True),
            Pass("fuse_ops", _placed(fused), adds=frozenset((ops.Fused,))),
        )

    def refusal(self, node: Node, graph: Graph) -> str | None:
        """Nothing: it runs every operator, by onnxruntime if by no other means."""
        return None

    def placement(self, node: Node, refusals: Sequence[str]) -> Placement:
        """On the processor, because of what the first target says, or because there is no other."""
        if isinstance(node, ops.External):
            return Placement(ONNXRUNTIME, node.reason)
        if isinstance(node, ops.Custom) and registered(node.operator).schedule is None:
            return Placement(PROCESSOR, "a user's operator without a schedule")
        return Placement(PROCESSOR, refusals[0]) if refusals else ALONE

    def objection(self, graph: Graph) -> str | None:
        """A board's processor gets compiled code alone: it runs no operator that only onnxruntime
        has."""
        for node in graph.nodes:
            if isinstance(node, ops.External) and not self.processor.is_native:
                return (
                    f"node {node.name} ({node.op}): expected operators that vdla compiles for "
                    f"{self.processor.name}, found one for onnxruntime ({node.reason}); this "
                    "machine has it"
                )
        return None

    def finish(
        self, graph: Graph, placements: Placements, lowered: Mapping[str, object]
    ) -> FunctionCodes:
        """Functions of the nodes on the processor, by the nodes' names."""
        return codes_of(node_functions(graph, placements, self.processor, self.traces), graph)

    def part(self, graph: Graph, placements: Placements, codes: FunctionCodes) -> HostPart:
        """Functions in place, and what onnxruntime runs."""
        return HostPart(graph, placements, told_apart(codes), self.processor)


def _placed(run: Rewrite) -> Layout:
    """A pass over a graph that is the processor's alone, with the placements behind it."""

    def laid_out(graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
        graph = run(graph)
        return graph, {node.name: placements.get(node.name, ALONE) for node in graph.nodes}

    return laid_out
