"""Searches for schedules of a model's functions on one machine.

Each distinct function is a task, and trials go where they gain the model most. After a first round
of each, the next round goes to the task whose share of the model's time falls fastest, as far as
can be foretold: Ansor's gradient (OSDI'20, section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Self

import numpy as np

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.trace import Trace
from vdla.compiler.search.forest import Forest, Tree
from vdla.compiler.search.points import Floats
from vdla.compiler.search.searchers import LEARNED, UNTAUGHT, EvolutionSearcher, Searcher
from vdla.compiler.search.table import Features
from vdla.compiler.search.tuner import Task, TuneOptions, Turn
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.search.function import Function
from vdla.compiler.targets.search.function_records import FunctionRecord, Key
from vdla.compiler.targets.search.loop_tree import forest_of
from vdla.compiler.targets.search.sketch import Sketch
from vdla.compiler.targets.search.sketch_space import SketchSpace
from vdla.compiler.targets.search.stopwatch import Stopwatch, Timing
from vdla.compiler.tir.ir import PrimFunc

SEARCHERS = (LEARNED, "random", "genetic")  # a grid has no order where nothing is listed

# Of Ansor's gradient: how much the last rounds' gain counts beside what may be left to gain, and
# how fast a function may become, over the best operations per second among functions of its rule.
LAST = 0.2
SIMILAR = 2.0
ROUNDS_BACK = 3


@dataclass(eq=False)
class FunctionTask(Task[Trace, Timing, FunctionRecord]):
    """The search for one function.

    ``reference`` is the default schedule's shortest time in seconds; ``history`` has the best time
    after each round. ``rows`` are the features, and ``grown`` the trees, of the points looked at so
    far. ``threads`` share the loops of what is timed.
    """

    space: SketchSpace
    function: Function
    threads: int = 1
    reference: float = field(default=inf, init=False)
    rows: dict[int, Floats] = field(default_factory=dict, init=False)
    grown: dict[int, Tree | None] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, stopwatch: Stopwatch[Any], sketches: Sequence[Sketch]) -> Self:
        """The task of a stopwatch's function, whose schedules are those of some sketches."""
        function = stopwatch.function
        space = SketchSpace(sketches, function.fits)
        return cls(function.layers, space, stopwatch, function, stopwatch.threads)

    @property
    def key(self) -> Key:
        """Key that its records are found by."""
        return self.function.digest, self.function.machine

    # How it stands ----------------------------------------------------------------------------

    @property
    def weight(self) -> int:
        """Number of layers that have the function."""
        return len(self.layers)

    @property
    def ratio(self) -> float:
        """The best time over the default schedule's, which is taken where nothing is faster."""
        return min(self.least, 1.0)

    @property
    def seconds(self) -> float:
        """The function's shortest time as it would now be compiled."""
        return self.reference * self.ratio

    @property
    def level(self) -> float:
        """The shortest time, which falls as the default schedule's does, too."""
        return self.seconds

    @property
    def spread(self) -> float | None:
        """By what part the median of the best candidate's runs was longer than the shortest."""
        return None if self.best is None else self.outcomes[self.best].spread

    @property
    def rule(self) -> str | None:
        """The rule that made the best candidate's sketch; None where the default is faster."""
        if self.best is None or self.ratio == 1:
            return None
        return self.space.sketches[self.space.points[self.best][0]].rule

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that derived its sketches, which functions of one kind share."""
        return tuple(sketch.rule for sketch in self.space.sketches)

    def note(self, point: int, outcome: Timing) -> float:
        """Keeps what became of a candidate; gives its cost."""
        if outcome.reference is not None:
            self.reference = min(self.reference, outcome.reference)
        return super().note(point, outcome)

    def forget(self) -> None:
        """Is as before the search."""
        super().forget()
        self.reference = inf

    # What the search asks ---------------------------------------------------------------------

    def features(self, points: Sequence[int]) -> Features:
        """Features of points; NaN for one whose steps don't apply."""
        names, known = tuple(self.function.FEATURES), self.rows
        for point in points:
            if point not in known:
                loops = self.loops(point)
                missing = np.full(len(names), np.nan)
                known[point] = missing if loops is None else self.function.features(loops)
        return Features(names, np.array([known[p] for p in points]).reshape(-1, len(names)))

    def trees(self, points: Sequence[int]) -> Forest:
        """Trees of points' loops; none of one whose steps don't apply."""
        return forest_of(points, self.loops, self.grown)

    def loops(self, point: int) -> PrimFunc | None:
        """Loops of a point's schedule; None where its steps don't apply."""
        try:
            return self.function.loops(self.space.candidate(point))
        except (ScheduleError, NoCodeError):
            return None

    def known_good(self, records: Sequence[FunctionRecord]) -> Sequence[int]:
        """The default schedule, where a sketch has it: a search begins with what it has to beat."""
        point = self.space.point(self.function.default)
        return () if point is None else (point,)

    def searcher(self, options: TuneOptions, records: Sequence[FunctionRecord]) -> Searcher:
        """A searcher over the schedules; the learned one starts from nothing."""
        if options.searcher != LEARNED:
            return UNTAUGHT[options.searcher](self.space, options.seed)
        model = options.cost_model.over(self, options.seed, ())
        return EvolutionSearcher(self.space, options.seed, model)

    def record(self, candidate: Trace, outcome: Timing) -> FunctionRecord:
        """The record of what became of a schedule, just now."""
        return FunctionRecord.of(self.key, candidate, outcome, self.threads)

    def recall(self, record: FunctionRecord) -> tuple[Trace, Timing] | None:
        """The schedule of a record of this function on this machine and as many threads, with its
        outcome."""
        own = record.key == self.key and record.threads == self.threads
        return (record.steps, record.outcome) if own else None

    @classmethod
    def next_task(cls, tasks: Sequence[Self], options: TuneOptions) -> Turn | None:
        """The policy: a task that had no round, else the steepest; None where the search is over.

        Tasks share their trials.
        """
        done = sum(task.trials for task in tasks)
        left = options.trials * len(tasks) - done
        number = steepest(tasks) if left > 0 else None
        return None if number is None else Turn(number, left, done)


def steepest(tasks: Sequence[FunctionTask]) -> int | None:
    """The number of the task that gains most by another round, or of one that had none; None where
    all are used up."""
    open_ = [n for n, task in enumerate(tasks) if not task.used_up]
    for n in open_:
        if not tasks[n].history:
            return n
    return max(open_, key=lambda n: gain(tasks[n], tasks), default=None)


def gain(task: FunctionTask, tasks: Sequence[FunctionTask]) -> float:
    """Share of the model's time, in seconds, that another round of a task is expected to take off.

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
