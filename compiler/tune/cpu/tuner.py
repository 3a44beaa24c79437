"""Tuning a model's functions on this processor, trials going where they gain the model most.

Each distinct function is a task. After a first round of each, the next round goes to the task whose
share of the model's time falls fastest, as far as can be foretold: Ansor's gradient (OSDI'20,
section 6). What a log holds counts as tried, so a search that was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import inf
from typing import Any

import numpy as np

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Trace
from vdla.compiler.search.points import Floats
from vdla.compiler.search.searchers import (
    EvolutionSearcher,
    GeneticSearcher,
    RandomSearcher,
    Searcher,
)
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor
from vdla.compiler.tune.cpu.features import NAMES, row
from vdla.compiler.tune.cpu.function import Function
from vdla.compiler.tune.cpu.measure import Timing, measure
from vdla.compiler.tune.cpu.records import FunctionLog, FunctionRecord, processor
from vdla.compiler.tune.cpu.rules import derive, template
from vdla.compiler.tune.cpu.sketch import Sketch
from vdla.compiler.tune.cpu.space import SketchSpace
from vdla.compiler.tune.measure import TIMEOUT, Measurer

STRATEGIES: dict[str, Callable[[Function], list[Sketch]]] = {"template": template, "sketch": derive}
SEARCHERS = ("xgboost", "random", "genetic")
Progress = Callable[[str, int, int], None]

# Of Ansor's gradient: how much the last rounds' gain counts beside what may be left to gain, and
# how fast a function may become, over the best operations per second among functions of its rule.
LAST = 0.2
SIMILAR = 2.0
ROUNDS_BACK = 3


@dataclass(frozen=True)
class FunctionOptions:
    """How to search.

    ``trials`` is the most candidates of the whole model, those in the log included; ``batch`` of
    them are a round. ``timeout`` is in seconds per candidate. ``progress`` is told (what, done,
    of).
    """

    trials: int = 200
    searcher: str = "xgboost"
    seed: int = 0
    workers: int = 1
    batch: int = 8
    timeout: float = TIMEOUT
    progress: Progress = lambda what, done, total: None


@dataclass
class FunctionTask:
    """A function and how its search stands: outcomes by point, and the best time after each round.

    ``reference`` is the default schedule's shortest time in seconds, ``resumed`` the trials that
    were in the log.
    """

    function: Function
    space: SketchSpace
    outcomes: dict[int, Timing] = field(default_factory=dict)
    reference: float = inf
    history: list[float] = field(default_factory=list)
    resumed: int = 0
    used_up: bool = False

    @property
    def weight(self) -> int:
        """How many layers have the function."""
        return len(self.function.layers)

    @property
    def trials(self) -> int:
        """Candidates tried, those in the log included."""
        return len(self.outcomes)

    @property
    def best(self) -> int | None:
        """The point of the least time over the default's; None where no trial succeeded."""
        legal = [p for p, o in self.outcomes.items() if o.cost < inf]
        return min(legal, key=lambda p: self.outcomes[p].cost, default=None)

    @property
    def ratio(self) -> float:
        """The best time over the default schedule's, which is taken where nothing is faster."""
        return 1.0 if self.best is None else min(self.outcomes[self.best].cost, 1.0)

    @property
    def seconds(self) -> float:
        """The function's shortest time as it would now be compiled."""
        return self.reference * self.ratio

    @property
    def spread(self) -> float | None:
        """Of the best candidate's runs: by what part the median was longer than the shortest."""
        return None if self.best is None else self.outcomes[self.best].spread

    @property
    def rule(self) -> str | None:
        """The rule that made the best candidate's sketch; None where the default is faster."""
        if self.best is None or self.ratio == 1:
            return None
        return self.space.sketches[self.space.points[self.best][0]].rule

    def counts(self, *statuses: str) -> int:
        """Candidates of some statuses."""
        return sum(outcome.status in statuses for outcome in self.outcomes.values())

    def note(self, point: int, outcome: Timing) -> float:
        """Keeps what became of a candidate; its cost."""
        self.outcomes[point] = outcome
        if outcome.reference is not None:
            self.reference = min(self.reference, outcome.reference)
        return outcome.cost

    @property
    def rules(self) -> tuple[str, ...]:
        """What tells functions of one kind: the rules that derived their sketches."""
        return tuple(sketch.rule for sketch in self.space.sketches)

    @cached_property
    def rows(self) -> dict[int, Floats]:
        """The features of the points looked at so far."""
        return {}

    def look(self, points: Sequence[int]) -> Floats:
        """Features [points, features]; NaN for a point whose steps don't apply."""
        for point in points:
            if point not in self.rows:
                try:
                    self.rows[point] = row(self.function.code(self.space.trace(point)))
                except ScheduleError:
                    self.rows[point] = np.full(len(NAMES), np.nan)
        return np.array([self.rows[point] for point in points])


def make_tasks(functions: Sequence[Function], strategy: str) -> list[FunctionTask]:
    """The functions for which a strategy has schedules to choose from."""
    spaces = ((function, STRATEGIES[strategy](function)) for function in functions)
    return [FunctionTask(function, SketchSpace(found)) for function, found in spaces if found]


def make_searcher(task: FunctionTask, name: str, seed: int) -> Searcher:
    """A searcher over a task's points."""
    if name == "random":
        return RandomSearcher(task.space, seed)
    if name == "genetic":
        return GeneticSearcher(task.space, seed)
    return EvolutionSearcher(task.space, seed, task.look, NAMES)


def tune(
    tasks: Sequence[FunctionTask],
    log: FunctionLog,
    options: FunctionOptions,
    target: Processor = NATIVE,
    how: Any = measure,
) -> None:
    """Searches until the trials are used up; what was found is in the tasks and in the log.

    Raises:
        OSError: the log can't be written any more; every record before is in it.
        TuneDependencyError: the searcher needs a package that isn't there.
    """
    searchers = [make_searcher(task, options.searcher, options.seed) for task in tasks]
    kind = processor(target)
    for task, searcher in zip(tasks, searchers, strict=True):
        resume(task, searcher, log.records, kind)
    functions = {str(n): task.function for n, task in enumerate(tasks)}
    batch = max(min(options.batch, options.trials // len(tasks)), 1)  # so that each has its turn
    with Measurer(functions, None, options.workers, options.timeout, how) as measurer:
        while (left := options.trials - sum(task.trials for task in tasks)) > 0:
            number = next_task(tasks)
            if number is None:
                return
            keep = partial(_keep, tasks, number, log, kind, options)
            run = partial(measurer.run, str(number))
            one_round(tasks[number], searchers[number], min(left, batch), run, keep)


def _keep(
    tasks: Sequence[FunctionTask],
    number: int,
    log: FunctionLog,
    kind: str,
    options: FunctionOptions,
    trace: Trace,
    outcome: Timing,
) -> None:
    """Writes a measurement down, and tells of it."""
    task = tasks[number]
    log.append(FunctionRecord.of(task.function.digest, kind, trace, outcome))
    done = sum(each.trials for each in tasks)
    options.progress(task.function.layers[0], done, options.trials)


def one_round(task: FunctionTask, searcher: Searcher, count: int, run: Any, keep: Any) -> None:
    """Proposes some candidates and measures them."""
    points = searcher.propose(count)
    task.used_up = not points
    traces = [task.space.trace(point) for point in points]
    found: dict[int, Timing] = {}
    for position, outcome in run(traces):
        timed = (
            outcome if isinstance(outcome, Timing) else Timing(outcome.status, note=outcome.note)
        )
        found[position] = timed
        keep(traces[position], timed)
    # In the order of the proposals: which worker was faster must not matter.
    costs = {point: task.note(point, found[n]) for n, point in enumerate(points)}
    searcher.update(costs)
    task.history.append(task.seconds)


def resume(
    task: FunctionTask, searcher: Searcher, records: Sequence[FunctionRecord], kind: str
) -> None:
    """Takes over what a log has of this function on this processor, of the task's sketches."""
    own = [r for r in records if (r.function, r.processor) == (task.function.digest, kind)]
    for record in own:
        point = task.space.point_of(record.steps)
        if point is not None and point not in task.outcomes:
            searcher.update({point: task.note(point, record.outcome)})
    task.resumed = task.trials
    if task.trials:
        task.history.append(task.seconds)


def next_task(tasks: Sequence[FunctionTask]) -> int | None:
    """The task to try next: one that had no round, else the steepest; None where all are done."""
    open_ = [n for n, task in enumerate(tasks) if not task.used_up]
    for n in open_:
        if not tasks[n].history:
            return n
    return max(open_, key=lambda n: gain(tasks[n], tasks), default=None)


def gain(task: FunctionTask, tasks: Sequence[FunctionTask]) -> float:
    """How much of the model's time, in seconds, another round of a task is expected to take off.

    Ansor's gradient: what the last rounds gained, and the least of what a task gains if it goes on
    at the mean pace so far, and if it comes near the speed of tasks like it.
    """
    if not np.isfinite(task.seconds):  # nothing succeeded yet: whether it can isn't known
        return 0.0
    rounds = len(task.history)
    back = task.history[max(rounds - 1 - ROUNDS_BACK, 0)]
    recent = (back - task.seconds) / min(rounds, ROUNDS_BACK) if np.isfinite(back) else 0.0
    pace = task.seconds / rounds
    alike = [t for t in tasks if t.rules == task.rules and np.isfinite(t.seconds)]
    fastest = max(t.function.operations / t.seconds for t in alike)
    left = max(task.seconds - task.function.operations / (SIMILAR * fastest), 0.0)
    return task.weight * (LAST * recent + (1 - LAST) * min(pace, left))


def model_ratio(tasks: Sequence[FunctionTask]) -> float:
    """The time of all functions with their best schedules over that with the default ones."""
    timed = [task for task in tasks if np.isfinite(task.reference)]
    before = sum(task.weight * task.reference for task in timed)
    return sum(task.weight * task.seconds for task in timed) / before if timed else 1.0
