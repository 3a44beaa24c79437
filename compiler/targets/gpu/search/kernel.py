"""A user's kernel as a function that is to be scheduled for a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.trace import Step
from vdla.compiler.targets.gpu.description import Gpu
from vdla.compiler.targets.gpu.search.function import GpuFunction
from vdla.compiler.targets.search.function import result_of
from vdla.compiler.tir.in_bounds import with_promises
from vdla.compiler.tir.ir import Buffer, PrimFunc


@dataclass(frozen=True, eq=False)
class GpuKernelFunction(GpuFunction):
    """A kernel; its default schedule has a thread for each element."""

    @classmethod
    def of(cls, s: Schedule, gpu: Gpu) -> GpuKernelFunction:
        """The kernel of a schedule without primitives.

        Raises:
            ScheduleError: it has several results.
        """
        name, result = result_of(s.built)
        return cls((name,), s.built, result, (), None, gpu)

    def scheduled(self, trace: Sequence[Step]) -> PrimFunc:
        """Loops as a trace schedules them, with the values that indices need."""
        return with_promises(super().scheduled(trace))

    @property
    def params(self) -> Sequence[Buffer]:
        """Inputs with the values that its indices need, and the result."""
        return with_promises(self.schedule().mod).params
