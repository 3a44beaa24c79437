"""A processor's function that is to be scheduled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import PROCESSOR, Placements
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.trace import Step
from vdla.compiler.search.points import Floats
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor
from vdla.compiler.targets.processor.functions import intrinsics
from vdla.compiler.targets.processor.operators import TEMPLATES, schedule_function
from vdla.compiler.targets.processor.passes import with_inits
from vdla.compiler.targets.processor.search.loop_features import NAMES, row
from vdla.compiler.targets.processor.views import views
from vdla.compiler.targets.search.function import CANDIDATE, Function, distinct
from vdla.compiler.targets.template import express
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.lower import flatten_blocks


@dataclass(frozen=True, eq=False)
class ProcessorFunction(Function):
    """A function of a processor."""

    FEATURES: ClassVar[Sequence[str]] = NAMES

    processor: Processor = NATIVE

    @property
    def machine(self) -> str:
        """The kind of processor."""
        return self.processor.kind

    @property
    def intrinsics(self) -> Mapping[str, TensorIntrin]:
        """Dot product instructions of the processor, by name."""
        return intrinsics(self.processor.vectors)

    def schedule_default(self, s: Schedule) -> None:
        """By its template, or by its loops."""
        schedule_function(s, self.result, self.template, self.processor.vectors)

    def code(self, trace: Sequence[Step]) -> PrimFunc:
        """The function as a trace schedules it."""
        return with_inits(self.schedule(trace).mod)

    def loops(self, trace: Sequence[Step]) -> PrimFunc:
        """The scheduled loops."""
        return flatten_blocks(self.code(trace))

    def features(self, loops: PrimFunc) -> Floats:
        """Features of the scheduled loops."""
        return row(loops)


def functions_of(
    graph: Graph, placements: Placements, processor: Processor
) -> list[ProcessorFunction]:
    """The distinct functions of a laid-out graph's nodes on the processor, in the nodes' order."""
    seen = views(graph, placements)

    def function(node: Node) -> ProcessorFunction:
        expression = express(node, graph, TEMPLATES, processor)
        s = expression.unscheduled(CANDIDATE)
        return ProcessorFunction(
            (node.name,), s.built, expression.result, tuple(s.trace), expression.template, processor
        )

    own = (node for node in graph.nodes if placements[node.name].device == PROCESSOR)
    return distinct(
        function(n) for n in own if n.output not in seen and not isinstance(n, ops.Control)
    )
