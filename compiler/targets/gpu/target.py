"""A GPU as a target of the compiler: it runs what has an expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.spec import Pass
from vdla.compiler.placement import PROCESSOR, Placement, Placements
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.functions import FunctionCodes, Traces, codes_of, told_apart, untuned
from vdla.compiler.targets.gpu.description import ANY, GPU, Gpu
from vdla.compiler.targets.gpu.functions import Known, gpu_function, gpu_functions
from vdla.compiler.targets.gpu.operators import TEMPLATES
from vdla.compiler.targets.gpu.part import KernelPart
from vdla.compiler.targets.groups import fuse_groups
from vdla.compiler.targets.target import Layout, Target
from vdla.compiler.targets.template import first_template

SEQUENTIAL = (ops.Cumulate, ops.TopK, ops.ScatterElements, ops.ScatterND)


@dataclass(frozen=True)
class GpuTarget(Target):
    """A GPU: ``gpu`` are its limits, ``known`` the functions that it has so far, and ``traces``
    gives the tuned schedules of its functions."""

    DEVICE: ClassVar[str] = GPU

    gpu: Gpu = ANY
    known: Known = field(default_factory=dict, compare=False)
    traces: Traces = untuned

    @property
    def layouts(self) -> Sequence[Pass[Layout]]:
        """Several operators as one function; what has no kernels after all goes to the
        processor."""
        return (
            Pass("fuse_gpu", self._fused, adds=frozenset((ops.Fused,))),
            Pass("leave_to_processor", self._left),
        )

    def refusal(self, node: Node, graph: Graph) -> str | None:
        """Operators without an expression, and those whose steps need one another's results."""
        if isinstance(node, ops.External):
            return f"no kernel of a GPU: {node.reason}"
        if isinstance(node, ops.Control):
            return node.NOT_ACCELERATED
        if isinstance(node, ops.Custom):
            return "a user's operator has no kernel of a GPU"
        if isinstance(node, SEQUENTIAL):
            return f"{node.op} takes one step after the other"
        return None

    def placement(self, node: Node, refusals: Sequence[str]) -> Placement:
        """On the GPU, because of what the accelerator says, or because there is none."""
        return Placement(GPU, refusals[0] if refusals else "the GPU runs it")

    def finish(
        self, graph: Graph, placements: Placements, lowered: Mapping[str, object]
    ) -> FunctionCodes:
        """Kernels of the nodes on the GPU, by the nodes' names."""
        made = gpu_functions(graph, placements, self.gpu, self.known, self.traces)
        return codes_of(made, graph)

    def part(self, graph: Graph, placements: Placements, codes: FunctionCodes) -> KernelPart:
        """Kernels in the GPU's language."""
        return KernelPart(told_apart(codes), self.gpu)

    def _fused(self, graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
        """The graph with groups of the GPU's operators as one each."""

        def own(node: Node) -> bool:
            return placements[node.name].device == GPU

        def takes_epilogue(node: Node) -> bool:
            return first_template(TEMPLATES, node, graph, self.gpu)[0] is not None

        fused = fuse_groups(graph, takes_epilogue, own)
        return fused, {node.name: placements[node.name] for node in fused.nodes}

    def _left(self, graph: Graph, placements: Placements) -> tuple[Graph, Placements]:
        """The placements with the processor for nodes that have no kernels."""
        result = dict(placements)
        for node in graph.nodes:
            if placements[node.name].device == GPU:
                try:
                    gpu_function(node, graph, self.gpu, self.known, self.traces)
                except NoCodeError as error:
                    result[node.name] = Placement(PROCESSOR, f"no kernels for the GPU: {error}")
        return graph, result
