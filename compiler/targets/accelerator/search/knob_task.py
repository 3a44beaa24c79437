"""The search among the schedules of a user's knobs on the accelerator, by cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vdla.compiler.targets.accelerator.search.kernel import AcceleratorFunction
from vdla.compiler.targets.accelerator.search.kernel_meter import KernelMeter
from vdla.compiler.targets.accelerator.search.kernel_records import KernelRecord
from vdla.compiler.targets.accelerator.search.rules import derive
from vdla.compiler.targets.accelerator.search.simulation import Cycles
from vdla.compiler.targets.search.knob_space import Chosen, KnobSpace, Scheduler
from vdla.compiler.targets.search.knob_task import KnobMeter, KnobTask
from vdla.compiler.targets.search.knobs import Value


@dataclass(eq=False)
class CycleKnobTask(KnobTask[Cycles, KernelRecord]):
    """A search whose schedules are simulated."""

    function: AcceleratorFunction

    @classmethod
    def of(cls, function: AcceleratorFunction, schedule: Scheduler | None = None) -> CycleKnobTask:
        """The search among the schedules of a kernel; by default those that rules derive.

        Raises:
            ScheduleError: no rule knows the kernel's stages.
        """
        meter = KnobMeter(KernelMeter(function))
        derived = derive(function) if schedule is None else schedule
        space = KnobSpace(function, derived, legal=schedule is None)
        return cls(function.layers, space, meter, function)

    def record(self, candidate: Chosen, outcome: Cycles) -> KernelRecord:
        """The record of what became of a schedule, just now."""
        return KernelRecord.of(self.function, candidate.trace, outcome, candidate.knobs)

    def values(self, record: KernelRecord) -> Mapping[str, Value] | None:
        """Values of the knobs of a record on this machine under today's sources."""
        own = record.key == (self.function.digest, self.function.machine)
        return record.knobs if own and record.fresh else None

    def outcome(self, record: KernelRecord) -> Cycles:
        """Outcome that a record has."""
        return record.outcome
