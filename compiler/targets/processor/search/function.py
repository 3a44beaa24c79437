"""A function that is to be scheduled: its expression, and how a trace becomes its code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from vdla.compiler.graph.ir import Graph
from vdla.compiler.placement import PROCESSOR, Placements
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.trace import Step, Trace
from vdla.compiler.targets.processor.description.processor import Processor, Vectors
from vdla.compiler.targets.processor.functions import digest_of, intrinsics
from vdla.compiler.targets.processor.operators import TEMPLATES, schedule_function
from vdla.compiler.targets.processor.passes import with_inits
from vdla.compiler.targets.processor.steps import views
from vdla.compiler.targets.template import AnyScheduled, express
from vdla.compiler.te import Tensor
from vdla.compiler.te.func import Built
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.ir.intrin import TensorIntrin

NAME = "candidate"


@dataclass(frozen=True, eq=False)
class Function:
    """A node's function, to be scheduled in many ways.

    ``layers`` are the nodes that have it, ``base`` the steps that every schedule of it begins with:
    those that put the element-wise parts of a fused node in line. It goes to other processes.
    """

    layers: tuple[str, ...]
    built: Built
    result: Tensor
    base: tuple[Step, ...]
    vectors: Vectors
    template: AnyScheduled | None = None

    @cached_property
    def digest(self) -> str:
        """What its records are found by."""
        return digest_of(self.schedule().mod)

    @property
    def intrinsics(self) -> dict[str, TensorIntrin]:
        """The processor's own instructions that steps may name."""
        return intrinsics(self.vectors)

    def schedule(self, trace: Sequence[Step] = ()) -> Schedule:
        """A new schedule, with some steps applied behind the base.

        Raises:
            ScheduleError: a step doesn't apply.
        """
        s = Schedule(self.built)
        s.replay([*self.base, *trace], self.intrinsics)
        return s

    def code(self, trace: Sequence[Step]) -> PrimFunc:
        """The function as a trace schedules it, to be compiled.

        Raises:
            ScheduleError: a step doesn't apply.
        """
        return with_inits(self.schedule(trace).mod)

    @cached_property
    def operations(self) -> int:
        """How many values it computes, every step of a reduction counted."""
        s = self.schedule()
        return sum(
            prod(stage.extent(axis) for axis in stage.leaf_iter_vars) for stage in s.stages.values()
        )

    @cached_property
    def default(self) -> Trace:
        """The steps of the schedule that it has without any search."""
        s = self.schedule()
        schedule_function(s, self.result, self.template, self.vectors)
        return s.trace[len(self.base) :]


def functions_of(graph: Graph, placements: Placements, processor: Processor) -> list[Function]:
    """The distinct functions of a laid-out graph's nodes on the processor, in the nodes' order."""
    found: dict[str, Function] = {}
    seen = views(graph, placements)
    for node in graph.nodes:
        if placements[node.name].device != PROCESSOR or node.output in seen:
            continue
        expression = express(node, graph, TEMPLATES, processor)
        s = expression.unscheduled(NAME)
        key = digest_of(s.mod)
        layers = (*found[key].layers, node.name) if key in found else (node.name,)
        found[key] = Function(
            layers,
            s.built,
            expression.result,
            tuple(s.trace),
            processor.vectors,
            expression.template,
        )
    return list(found.values())
