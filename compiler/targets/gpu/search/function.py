"""A GPU's function that is to be scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.placement import Placements
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Step
from vdla.compiler.search.points import Floats
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.gpu.description import ANY, GPU, Gpu, kernels
from vdla.compiler.targets.gpu.functions import Known, expressed
from vdla.compiler.targets.gpu.lower import lower_function
from vdla.compiler.targets.gpu.operators import schedule_function
from vdla.compiler.targets.gpu.passes import to_threads
from vdla.compiler.targets.gpu.search.kernel_features import NAMES, own_elements, row
from vdla.compiler.targets.search.function import CANDIDATE, Function, distinct
from vdla.compiler.tir.ir import BoundsError, PrimFunc

OWN = 512  # elements of a thread, at most: beyond its registers they are in global memory


@dataclass(frozen=True, eq=False)
class GpuFunction(Function):
    """A function of a GPU."""

    FEATURES: ClassVar[Sequence[str]] = NAMES

    gpu: Gpu = ANY

    @property
    def machine(self) -> str:
        """The GPU's name."""
        return self.gpu.name

    def schedule_default(self, s: Schedule) -> None:
        """By its template, or by its loops."""
        schedule_function(s, self.result, self.template)

    def scheduled(self, trace: Sequence[Step]) -> PrimFunc:
        """Loops as a trace schedules them, not yet kernels.

        Raises:
            ScheduleError: a step doesn't apply.
        """
        return self.schedule(trace).mod

    def fits(self, trace: Sequence[Step]) -> bool:
        """Whether its kernels keep to the GPU's limits; barriers aren't placed yet."""
        try:
            self._threads(self.scheduled(trace))
        except (ScheduleError, NoCodeError):
            return False
        return True

    def code(self, trace: Sequence[Step]) -> PrimFunc:
        """The function as kernels."""
        func = self.scheduled(trace)
        self._threads(func)  # what the GPU can't hold is known before barriers are looked for
        return lower_function(func, self.gpu)

    def loops(self, trace: Sequence[Step]) -> PrimFunc:
        """The kernels before barriers, which take long to place and tell little."""
        return self._threads(self.scheduled(trace))

    def features(self, loops: PrimFunc) -> Floats:
        """Features of the kernels."""
        return row(loops)

    def _threads(self, func: PrimFunc) -> PrimFunc:
        """A scheduled function as kernels that the GPU can hold, without barriers."""
        try:
            func = self.gpu.check(to_threads(func))
        except BoundsError as error:
            raise NoCodeError(str(error)) from error
        most = max(map(own_elements, kernels(func.body)), default=0)
        if most > OWN:
            raise NoCodeError(
                f"{func.name}: expected at most {OWN} elements of a thread's own, found {most}"
            )
        return func


def functions_of(graph: Graph, placements: Placements, gpu: Gpu) -> list[GpuFunction]:
    """The distinct functions of a laid-out graph's nodes on the GPU, in the nodes' order."""
    known: Known = {}

    def function(node: Node) -> GpuFunction:
        expression, _ = expressed(node, graph, gpu, known)
        s = expression.unscheduled(CANDIDATE)
        return GpuFunction(
            (node.name,), s.built, expression.result, tuple(s.trace), expression.template, gpu
        )

    return distinct(function(node) for node in graph.nodes if placements[node.name].device == GPU)
