"""The search over some tasks, from and into a log of records.

Round by round a policy, which a target may bring, says which task goes on; its searcher proposes
candidates, and a pool measures them. What the log already holds counts as tried. Where it holds the
beginning of this very search, the search goes through its rounds again, with the outcomes of the
log, and on from there: it ends as if it had never been stopped, whoever measured.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import inf
from typing import Generic, Self

from vdla.compiler.search.cost_model import ModelKind
from vdla.compiler.search.measurer import CANDIDATE_SECONDS, Measurer, Meter, local_pool
from vdla.compiler.search.outcomes import AnyOutcome
from vdla.compiler.search.points import Candidate, Space
from vdla.compiler.search.ranker import XGBOOST
from vdla.compiler.search.records import AnyRecord, Log
from vdla.compiler.search.searchers import LEARNED, Searcher
from vdla.farm.work import JobPool

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class TuneOptions:
    """Options of a search.

    ``trials`` is the most candidates per task, those in the log included; tasks that share theirs
    have them on average. A task's search ends before that where its best is within ``enough`` of
    its bound. ``cost_model`` is what a searcher that learns asks. ``batch`` is how many are
    proposed at a time. ``timeout`` is in seconds per candidate. ``progress`` is told (what, done,
    of).
    """

    trials: int = 64
    searcher: str = LEARNED
    seed: int = 0
    workers: int = 2
    batch: int = 8
    timeout: float = CANDIDATE_SECONDS
    enough: float = 0.995
    cost_model: ModelKind = XGBOOST
    progress: Progress = lambda what, done, total: None


@dataclass(frozen=True)
class Turn:
    """Whose round it is: the number of a task, how many trials it has ``left``, and how many of all
    the search's trials are ``done`` with."""

    number: int
    left: int
    done: int


@dataclass(eq=False)
class Task(ABC, Generic[Candidate, AnyOutcome, AnyRecord]):
    """One thing to be scheduled, the ``layers`` that share it, and how its search stands.

    ``outcomes`` are by point, ``resumed`` of them were in the log. ``history`` has what the search
    had come to after each round; it is ``used_up`` where the space has nothing new.
    """

    layers: Sequence[str]
    space: Space[Candidate]
    meter: Meter[Candidate, AnyOutcome]
    outcomes: dict[int, AnyOutcome] = field(default_factory=dict, init=False)
    resumed: int = field(default=0, init=False)
    history: list[float] = field(default_factory=list, init=False)
    used_up: bool = field(default=False, init=False)

    # What a target brings ---------------------------------------------------------------------

    @abstractmethod
    def searcher(self, options: TuneOptions, records: Sequence[AnyRecord]) -> Searcher:
        """The searcher over the space that options name; one that learns may start from a log's
        records."""

    @abstractmethod
    def record(self, candidate: Candidate, outcome: AnyOutcome) -> AnyRecord:
        """The record of what became of a candidate, just now."""

    @abstractmethod
    def recall(self, record: AnyRecord) -> tuple[Candidate, AnyOutcome] | None:
        """The candidate of a record, with its outcome; None where it says nothing of this task."""

    @property
    def bound(self) -> float:
        """A cost that no candidate goes below."""
        return 0.0

    def known_good(self, records: Sequence[AnyRecord]) -> Sequence[int]:
        """Points to try before the searcher is asked."""
        return ()

    def hopeless(self) -> Sequence[int]:
        """Points that can't cost less than the best one, and needn't be tried."""
        return ()

    def effort(self, point: int) -> float:
        """Time of a candidate's measurement, relative to others'; the longest of a round begin
        first, so that none of them ends alone."""
        return 0.0

    @classmethod
    def next_task(cls, tasks: Sequence[Self], options: TuneOptions) -> Turn | None:
        """The policy: which of some tasks has the next round; None where the search is over.

        Unless a target has another one, each has its own trials, and its turn until it is done.
        """
        for number, task in enumerate(tasks):
            left = options.trials - task.trials
            if left > 0 and task.is_open(options.enough):
                return Turn(number, left, number * options.trials + task.trials)
        return None

    # How it stands ----------------------------------------------------------------------------

    @property
    def trials(self) -> int:
        """Candidates tried, those in the log included."""
        return len(self.outcomes)

    @property
    def counts(self) -> Counter[str]:
        """Candidates tried, by status."""
        return Counter(outcome.status for outcome in self.outcomes.values())

    @property
    def best(self) -> int | None:
        """The point of the least cost; None where no trial succeeded."""
        legal = [point for point, outcome in self.outcomes.items() if outcome.cost < inf]
        return min(legal, key=lambda point: self.outcomes[point].cost, default=None)

    @property
    def least(self) -> float:
        """The least cost; infinity where no trial succeeded."""
        return inf if self.best is None else self.outcomes[self.best].cost

    @property
    def level(self) -> float:
        """Cost that the search has come to, as ``history`` has it after each round."""
        return self.least

    @property
    def ruled_out(self) -> int:
        """Points that weren't tried since they are hopeless."""
        return sum(point not in self.outcomes for point in self.hopeless())

    def is_open(self, enough: float) -> bool:
        """Whether there is something to try, and the best isn't within ``enough`` of the bound."""
        return not self.used_up and self.bound < enough * self.least

    def note(self, point: int, outcome: AnyOutcome) -> float:
        """Keeps what became of a candidate; gives its cost."""
        self.outcomes[point] = outcome
        return outcome.cost

    def forget(self) -> None:
        """Is as before the search."""
        self.outcomes, self.resumed = {}, 0
        self.history, self.used_up = [], False

    def resume(self, records: Iterable[AnyRecord]) -> None:
        """Takes over what a log holds of this task."""
        for candidate, outcome in filter(None, map(self.recall, records)):
            point = self.space.point(candidate)
            if point is not None and point not in self.outcomes:
                self.note(point, outcome)
        self.resumed = self.trials
        if self.trials:
            self.history.append(self.level)


def tune(
    tasks: Sequence[Task[Candidate, AnyOutcome, AnyRecord]],
    log: Log[AnyRecord],
    options: TuneOptions,
    pool: JobPool | None = None,
) -> None:
    """Searches until no task has another round; what was found is in the tasks and in the log.

    ``pool`` measures; processes of this machine unless it is given.

    Raises:
        FarmError: nobody has what a measurement needs.
        OSError: the log can't be written any more; every record before is in it.
        TuneDependencyError: the searcher needs a package that isn't there.
    """
    if not tasks:
        return
    meters = [task.meter for task in tasks]
    with nullcontext(pool) if pool else local_pool(meters, options.workers) as measuring:
        measurer = Measurer(meters, measuring, options.timeout)
        search = _Search(tasks, log, options, measurer)
        search.resume()
        while (turn := type(tasks[0]).next_task(tasks, options)) is not None:
            search.round(turn)


class _Search(Generic[Candidate, AnyOutcome, AnyRecord]):
    """A search under way; a task has a searcher from its first round on.

    ``records`` are those that a searcher may learn from. ``recalled`` are those of the log that the
    search hasn't come to yet, by task and point.
    """

    def __init__(
        self,
        tasks: Sequence[Task[Candidate, AnyOutcome, AnyRecord]],
        log: Log[AnyRecord],
        options: TuneOptions,
        measurer: Measurer[Candidate, AnyOutcome],
    ) -> None:
        self.tasks, self.log, self.options, self.measurer = tasks, log, options, measurer
        self.searchers: dict[int, Searcher] = {}
        self.first: dict[int, Sequence[int]] = {}
        self.recalled: dict[tuple[int, int], tuple[AnyOutcome, AnyRecord]] = {}
        self.records: list[AnyRecord] = []

    def resume(self) -> None:
        """Goes through the rounds that the log holds; takes what it holds as tried where these are
        other rounds than this search's."""
        for record in self.log.records:
            if not self._recall(record):
                self.records.append(record)
        if self._replay():
            return
        self.searchers.clear()
        self.first.clear()
        self.records = list(self.log.records)
        for task in self.tasks:
            task.forget()
            task.resume(self.records)

    def round(self, turn: Turn) -> None:
        """Proposes some candidates of a task and measures them."""
        if turn.number not in self.searchers:
            self._tell(turn)
        points = self._proposed(turn)
        self._note(turn, points, self._measured(turn, points))

    def _recall(self, record: AnyRecord) -> bool:
        """Keeps a record with the task and the point that it is of, if there are such."""
        for number, task in enumerate(self.tasks):
            recalled = task.recall(record)
            point = task.space.point(recalled[0]) if recalled else None
            if recalled is not None and point is not None:
                self.recalled.setdefault((number, point), (recalled[1], record))
                return True
        return False

    def _replay(self) -> bool:
        """Goes through the rounds whose candidates the log holds, and measures what it lacks of the
        last one; whether it holds nothing else."""
        while self.recalled and (turn := type(self.tasks[0]).next_task(self.tasks, self.options)):
            points = self._proposed(turn)
            outcomes: dict[int, AnyOutcome] = {}
            for point in points:
                if (turn.number, point) in self.recalled:
                    outcomes[point], record = self.recalled.pop((turn.number, point))
                    self.records.append(record)
            if len(outcomes) < len(points) and self.recalled:
                return False
            self.tasks[turn.number].resumed += len(outcomes)
            if lacking := [point for point in points if point not in outcomes]:
                outcomes |= self._measured(turn, lacking, len(outcomes))
            self._note(turn, points, outcomes)
        return not self.recalled

    def _proposed(self, turn: Turn) -> Sequence[int]:
        """The points that a task tries next."""
        if turn.number not in self.searchers:
            self._begin(turn.number)
        task, searcher = self.tasks[turn.number], self.searchers[turn.number]
        searcher.rule_out(task.hopeless())
        count = min(self.options.batch, self.options.trials, turn.left)  # so that each has its turn
        first = [point for point in self.first[turn.number] if point not in task.outcomes]
        return first[:count] or searcher.propose(count)

    def _begin(self, number: int) -> None:
        """Makes a task's searcher, which knows what was tried before."""
        task = self.tasks[number]
        searcher = task.searcher(self.options, self.records)
        searcher.update({point: outcome.cost for point, outcome in task.outcomes.items()})
        self.searchers[number], self.first[number] = searcher, task.known_good(self.records)

    def _measured(self, turn: Turn, points: Sequence[int], known: int = 0) -> dict[int, AnyOutcome]:
        """Points' outcomes; each is written down, and told of, as it comes, behind those known."""
        task, outcomes = self.tasks[turn.number], dict[int, AnyOutcome]()
        points = sorted(points, key=task.effort, reverse=True)
        candidates = [task.space.candidate(point) for point in points]
        for position, outcome in self.measurer.run(turn.number, candidates):
            record = task.record(candidates[position], outcome)
            self.log.append(record)
            self.records.append(record)
            outcomes[points[position]] = outcome
            self._tell(turn, known + len(outcomes))
        return outcomes

    def _note(self, turn: Turn, points: Sequence[int], outcomes: Mapping[int, AnyOutcome]) -> None:
        """Ends a round, in the order of the proposals: which worker was faster must not matter."""
        task = self.tasks[turn.number]
        task.used_up = not points
        costs = {point: task.note(point, outcomes[point]) for point in points}
        self.searchers[turn.number].update(costs)
        task.history.append(task.level)

    def _tell(self, turn: Turn, measured: int = 0) -> None:
        """Tells how far the search has come, with what is measured of a turn."""
        total = len(self.tasks) * self.options.trials
        self.options.progress(self.tasks[turn.number].layers[0], turn.done + measured, total)
