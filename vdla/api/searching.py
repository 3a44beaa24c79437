"""Schedules with a user's own knobs, searched for: ``vdla.search``.

def schedule(s, knobs):
    yo, yi = knobs.split("rows", s[C], s[C].axis[0])
    ...

result = vdla.search(C, schedule, log="log", target="paper", trials=64)
result.knobs, result.cost                   # {"rows": 16}, cycles
kernel = result.build([A, B, C])           # as vdla.build with the best schedule
result.plot("best.svg")                    # the best of so many trials
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vdla.analysis.plots import Line, save_lines
from vdla.api import tuning
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.schedule.sizes import with_sizes
from vdla.compiler.search.records import Log
from vdla.compiler.targets.accelerator.search.kernel import AcceleratorFunction
from vdla.compiler.targets.accelerator.search.kernel_records import KernelRecord
from vdla.compiler.targets.accelerator.search.knob_task import CycleKnobTask
from vdla.compiler.targets.gpu.description import GPU, Gpu
from vdla.compiler.targets.gpu.search.kernel import GpuKernelFunction
from vdla.compiler.targets.gpu.search.stopwatch import GpuStopwatch
from vdla.compiler.targets.processor.description.processor import find_processor
from vdla.compiler.targets.processor.search.kernel import KernelFunction
from vdla.compiler.targets.processor.search.stopwatch import ProcessorStopwatch
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.compiler.targets.search.knob_space import Chosen, Scheduler
from vdla.compiler.targets.search.knob_task import SEARCHERS, TimedKnobTask
from vdla.compiler.targets.search.knobs import KnobError, Value
from vdla.compiler.te import Tensor
from vdla.isa.config import Config
from vdla.kernels.build import build
from vdla.kernels.kernel import Kernel
from vdla.options import Tune
from vdla.options.devices import CPU, PROCESSORS
from vdla.options.spelling import UsageError, given, options_of
from vdla.runtime.gpu.opencl import find_gpu

AnyKnobTask = TimedKnobTask | CycleKnobTask
MODELS = ("--layer", "--strategy", "--shape", "--board", "--vthreads", "--config")


@dataclass(eq=False)
class Search:
    """A search that is over: its trials, and the best schedule that was found.

    Attributes:
        task: the trials by point, with what became of each.
        options: what was asked for.
    """

    task: AnyKnobTask
    outputs: Sequence[Tensor]
    options: Tune

    @property
    def _best(self) -> Chosen:
        """The best candidate.

        Raises:
            KnobError: no schedule could be measured.
        """
        if self.task.best is not None:
            return self.task.space.candidate(self.task.best)
        notes = [outcome.note for outcome in self.task.outcomes.values()]
        first = f"; the first one: {notes[0]}" if notes else ""
        raise KnobError(
            f"{self.task.layers[0]}: expected a schedule that can be measured, found none "
            f"among {len(notes)}{first}"
        )

    @property
    def knobs(self) -> Mapping[str, Value]:
        """The best schedule's values of the knobs, which ``vdla.Knobs(**result.knobs)`` takes."""
        return self._best.knobs

    @property
    def cost(self) -> float:
        """The best schedule's cycles; on a processor or GPU its time over that of the default
        schedule. Infinity where no schedule could be measured."""
        return self.task.least

    @property
    def history(self) -> list[float]:
        """The least cost after each trial, in the order in which they were proposed."""
        least, result = float("inf"), list[float]()
        for outcome in self.task.outcomes.values():
            least = min(least, outcome.cost)
            result.append(least)
        return result

    @cached_property
    def schedule(self) -> Schedule:
        """The best schedule, of the tensors that were searched for."""
        s = create_schedule(self.outputs)
        s.replay([*self.task.function.base, *self._best.trace], self.task.function.intrinsics)
        return s

    def build(self, args: Sequence[Tensor | str] | None = None) -> Kernel:
        """The kernel of the best schedule, which takes arrays in the order of ``args``, as
        ``vdla.build`` does.

        Raises:
            UsageError: the search was for another processor than the one at hand.
        """
        target = self.options.target
        if target == tuning.ACCELERATOR:
            return build(self.schedule, args, tuning.machine(self.options))
        if target in PROCESSORS[1:]:
            raise UsageError(f"build: expected the target cpu or gpu, or a config, found {target}")
        return build(self.schedule, args, target)

    def plot(self, path: str | Path) -> Path:
        """Draws the least cost after each trial, from the first that succeeded on; the format
        follows from the path's ending."""
        accelerated = self.options.target == tuning.ACCELERATOR
        unit = "cycles" if accelerated else "time over the default schedule's"
        line = Line(self.options.searcher, self.history)
        labels = "trials", f"least {unit}"
        return save_lines(Path(path), [line], f"search for {self.task.layers[0]}", labels)

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {status}" for status, n in sorted(self.task.counts.items()))
        if self.task.best is None:
            return f"nothing that can be measured; {self.task.trials} trials: {counts}"
        knobs = " ".join(f"{name}={value}" for name, value in self.knobs.items())
        return f"{self.cost:.6g} with {knobs}; {self.task.trials} trials: {counts}"


def search(
    outputs: Tensor | Sequence[Tensor],
    schedule: Scheduler | None = None,
    *,
    log: str | Path,
    target: str | Path | Config = "paper",
    **options: object,
) -> Search:
    """Searches for the best values of the knobs that a schedule function declares.

    Args:
        outputs: the tensor to be computed.
        schedule: ``schedule(s, knobs)`` applies primitives to ``s``, a schedule of the tensor
            without any, and declares knobs (:class:`vdla.Knobs`). It is called often, and must do
            the same each time for the same values. On the accelerator there may be none: rules
            derive schedules from the expression.
        log: records; resumed if they are there.
        target: as ``vdla.build`` takes it: a config, its name or TOML file; "cpu", or another
            processor, as "x86-64-v3"; "gpu".
        options: those of ``vdla.tune`` that aren't a model's: ``trials``, ``searcher``, ``seed``,
            ``workers``, ``threads``, ``settings``, ``farm``, ``progress`` and so on.

    Raises:
        KnobError: a knob isn't declared as one can be, or the function fails.
        ScheduleError: there are several results, or sizes of ``te.var``.
        UsageError: no such option, searcher or target; or an option of models.
        RecordError: the log holds something else, or another search writes to it.
        DeviceError: there is no GPU.
        FarmError: no worker is left that answers; the log has what was measured.
    """
    known = isinstance(target, str) and target in tuning.TASKS
    if not callable(schedule) and (known or schedule is not None):
        hint = '; vdla.tune(tensor, log, target="cpu", strategy="sketch") derives schedules'
        raise KnobError(
            f"search: expected a function of a schedule and knobs, found {schedule!r}"
            + (hint if schedule is None else "")
        )
    where = {"target": target} if known else {"target": tuning.ACCELERATOR, "config": target}
    how = options_of("search", Tune, (), {**options, **where, "log": log})
    _check(how, None if known else target)
    several = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    task = _task(create_schedule(several), schedule, how)
    if isinstance(task, CycleKnobTask):
        with Log(Path(how.log), KernelRecord) as cycles:
            tuning.search([task], how, cycles)
    else:
        with Log(Path(how.log), FunctionRecord) as times:
            tuning.search([task], how, times)
    return Search(task, several, how)


def _check(options: Tune, config: object) -> None:
    """Raises UsageError where there is no such target or searcher, or an option of models."""
    others = [how.name for how in given(options) if how.name in MODELS]
    if config is not None:
        others = [name for name in others if name != "--config"]
    if others:
        raise UsageError(f"search: expected no option of models, found {others[0]}")
    tuning.check_target(None, options)
    tuning.check_searcher(options, SEARCHERS)


def _task(s: Schedule, schedule: Scheduler | None, options: Tune) -> AnyKnobTask:
    """The search for a schedule's tensor on the machine of some options."""
    s, _ = with_sizes(s, None)
    if options.target == tuning.ACCELERATOR:
        return CycleKnobTask.of(AcceleratorFunction.of(s, tuning.machine(options)), schedule)
    assert schedule is not None  # which search refuses elsewhere
    needs = () if options.farm is None else (tuning.resource_of(options.target),)
    if options.target == GPU:
        gpu = GpuKernelFunction.of(s, Gpu.of(find_gpu()))
        return TimedKnobTask.of(GpuStopwatch(gpu, needs=needs), schedule)
    processor = find_processor("native" if options.target == CPU else options.target)
    function = KernelFunction.of(s, processor)
    return TimedKnobTask.of(ProcessorStopwatch(function, options.threads, needs), schedule)
