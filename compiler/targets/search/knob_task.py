"""The search among the schedules of a user's knobs, whichever machine measures them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from vdla.compiler.schedule.trace import Trace
from vdla.compiler.search.forest import Forest, Tree
from vdla.compiler.search.measurer import Meter
from vdla.compiler.search.outcomes import AnyOutcome
from vdla.compiler.search.points import Floats
from vdla.compiler.search.records import AnyRecord
from vdla.compiler.search.searchers import (
    LEARNED,
    UNTAUGHT,
    EvolutionSearcher,
    Searcher,
)
from vdla.compiler.search.table import Features
from vdla.compiler.search.tuner import Task, TuneOptions
from vdla.compiler.targets.search.function import F, Function
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.compiler.targets.search.knob_space import Chosen, KnobSpace, Scheduler
from vdla.compiler.targets.search.knobs import Value
from vdla.compiler.targets.search.loop_tree import forest_of
from vdla.compiler.targets.search.stopwatch import Stopwatch, Timing
from vdla.compiler.tir.ir import PrimFunc
from vdla.support.errors import UserError

SEARCHERS = (LEARNED, *UNTAUGHT)
GRID = "grid"
SEEN = 16  # knobs, the first ones declared, of which the learned model sees the positions


@dataclass(frozen=True, eq=False)
class KnobMeter(Meter[Chosen, AnyOutcome]):
    """Meter of schedules by that of their steps; what a primitive refused is illegal."""

    inner: Meter[Trace, AnyOutcome]
    ALONE: ClassVar[bool]
    MEMORY: ClassVar[int | None]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ALONE", self.inner.ALONE)
        object.__setattr__(self, "MEMORY", self.inner.MEMORY)

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of resources: those of the steps' meter."""
        return self.inner.needs

    def measure(self, candidate: Chosen) -> AnyOutcome:
        """Outcome of a candidate's steps."""
        if candidate.refusal:
            return self.inner.lost("illegal", candidate.refusal)
        return self.inner.measure(candidate.trace)

    def lost(self, status: str, note: str) -> AnyOutcome:
        """The outcome of a candidate that no answer came for."""
        return self.inner.lost(status, note)

    def warm_up(self) -> None:
        """Does what the steps' meter does."""
        self.inner.warm_up()


class OrderedSearcher(Searcher):
    """Proposes the schedules in the order of the knobs and their values."""

    space: KnobSpace

    def _choose(self, count: int) -> Sequence[int]:
        unknown = (point for point in self.space.in_order() if point not in self.known)
        return [point for point, _ in zip(unknown, range(count), strict=False)]


@dataclass(eq=False)
class KnobTask(Task[Chosen, AnyOutcome, AnyRecord]):
    """The search among the schedules that a user's function makes of one expression.

    ``rows`` are the features of the points looked at so far, ``grown`` their trees.
    """

    space: KnobSpace
    function: Function
    rows: dict[int, Floats] = field(default_factory=dict, init=False)
    grown: dict[int, Tree | None] = field(default_factory=dict, init=False)

    @abstractmethod
    def values(self, record: AnyRecord) -> Mapping[str, Value] | None:
        """Values of the knobs that a record is of; None where it is none of this task."""

    @abstractmethod
    def outcome(self, record: AnyRecord) -> AnyOutcome:
        """Outcome that a record has."""

    def recall(self, record: AnyRecord) -> tuple[Chosen, AnyOutcome] | None:
        """The candidate of a record of this function, with its outcome."""
        values = self.values(record)
        point = None if values is None else self.space.named(values)
        return None if point is None else (self.space.candidate(point), self.outcome(record))

    def features(self, points: Sequence[int]) -> Features:
        """Features of points, and of each where its knobs stand; NaN where steps don't apply."""
        names = *self.function.FEATURES, *(f"knob {n}" for n in range(SEEN))
        for point in points:
            if point not in self.rows:
                loops, codes = self.loops(point), self.space.codes[point][:SEEN]
                own = () if loops is None else self.function.features(loops)
                row = [*own, *codes, *[-1] * (SEEN - len(codes))]
                self.rows[point] = np.full(len(names), np.nan) if loops is None else np.array(row)
        rows = np.array([self.rows[point] for point in points], np.float64)
        return Features(names, rows.reshape(-1, len(names)))

    def trees(self, points: Sequence[int]) -> Forest:
        """Trees of points' loops; none of one whose steps don't apply."""
        return forest_of(points, self.loops, self.grown)

    def loops(self, point: int) -> PrimFunc | None:
        """Loops of a point's schedule; None where its steps don't apply."""
        chosen = self.space.candidate(point)
        try:
            return None if chosen.refusal else self.function.loops(chosen.trace)
        except UserError:
            return None

    def searcher(self, options: TuneOptions, records: Sequence[AnyRecord]) -> Searcher:
        """A searcher over the schedules; the learned one starts from nothing."""
        if options.searcher == GRID:
            return OrderedSearcher(self.space, options.seed)
        if options.searcher != LEARNED:
            return UNTAUGHT[options.searcher](self.space, options.seed)
        model = options.cost_model.over(self, options.seed, ())
        return EvolutionSearcher(self.space, options.seed, model)


@dataclass(eq=False)
class TimedKnobTask(KnobTask[Timing, FunctionRecord]):
    """A search whose schedules are timed; ``threads`` share the loops of each."""

    threads: int = 1

    @classmethod
    def of(cls, stopwatch: Stopwatch[F], schedule: Scheduler) -> TimedKnobTask:
        """The search among the schedules of a stopwatch's function."""
        function = stopwatch.function
        space, meter = KnobSpace(function, schedule), KnobMeter(stopwatch)
        return cls(function.layers, space, meter, function, stopwatch.threads)

    def record(self, candidate: Chosen, outcome: Timing) -> FunctionRecord:
        """The record of what became of a schedule, just now."""
        key = self.function.digest, self.function.machine
        return FunctionRecord.of(key, candidate.trace, outcome, self.threads, candidate.knobs)

    def values(self, record: FunctionRecord) -> Mapping[str, Value] | None:
        """Values of the knobs of a record on this machine with as many threads."""
        own = record.key == (self.function.digest, self.function.machine)
        return record.knobs if own and record.threads == self.threads else None

    def outcome(self, record: FunctionRecord) -> Timing:
        """Outcome that a record has."""
        return record.outcome
