"""A user's kernel as a function that is to be scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.trace import Step
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.targets.processor.passes import to_processor
from vdla.compiler.targets.processor.search.function import ProcessorFunction
from vdla.compiler.targets.search.function import result_of
from vdla.compiler.tir.in_bounds import with_promises
from vdla.compiler.tir.ir import Buffer, PrimFunc


@dataclass(frozen=True, eq=False)
class KernelFunction(ProcessorFunction):
    """A kernel; its default schedule is the user's own, or without one that of its loops."""

    own: tuple[Step, ...] = ()

    @classmethod
    def of(cls, s: Schedule, processor: Processor) -> KernelFunction:
        """The kernel of a schedule, which may have no primitives yet.

        Raises:
            ScheduleError: it has several results, or instructions that the processor lacks.
        """
        name, result = result_of(s.built)
        own = tuple(s.trace)
        made = cls((name,), s.built, result, (), None, processor, own)
        made.schedule(made.default)
        return made

    def schedule_default(self, s: Schedule) -> None:
        """By the user's steps, or by its loops."""
        if self.own:
            s.replay(list(self.own), self.intrinsics)
        else:
            super().schedule_default(s)

    def code(self, trace: Sequence[Step]) -> PrimFunc:
        """The kernel as a trace schedules it."""
        return to_processor(with_promises(self.schedule(trace).mod))

    @property
    def params(self) -> Sequence[Buffer]:
        """Inputs with the values that its indices need, and the result."""
        return with_promises(self.schedule().mod).params
