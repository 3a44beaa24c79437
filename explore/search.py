"""The search for designs: levels of fidelity, each of which prunes what the next one needn't see.

    config   the constraints and the config's own rules                   no work
    bound    area and cycles that no schedule goes below                  milliseconds
    model    the analytic model's cycles, of those that promise most      tens of milliseconds
    exact    the compiled networks' cycles; they make the front           seconds
    tuned    schedules searched for, for the designs of the front alone   minutes

A searcher proposes designs, a pool evaluates them, a log keeps what they are worth. What the log
holds is never evaluated again, whoever put it there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite

import numpy as np

from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.explore.evaluate import (
    BOUND,
    EXACT,
    MODEL,
    TUNED,
    Evaluation,
    Evaluator,
    Outcome,
    check_objectives,
)
from vdla.explore.guided import GuidedSearcher
from vdla.explore.jobs import Evaluations, Outcomes
from vdla.explore.log import EvaluationLog, Line
from vdla.explore.pareto import front
from vdla.explore.problem import DesignProblem, refusals
from vdla.explore.registry import make_searcher
from vdla.explore.searchers import Searcher
from vdla.explore.space import Point, Space
from vdla.explore.tuned import Tuner
from vdla.isa.config import Config
from vdla.support.tables import html_table

CONFIG = "config"  # the level before the bound
DOMINATED = "dominated at its best by an evaluated design"
WHOLE = 100  # from which on a figure is shown without digits behind the point
SEARCHED = 0.75  # of a search's seconds, where the front is tuned in the others

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search.

    ``budget`` is the most designs that are compiled and simulated, those of the log included;
    ``seconds`` the most time until no more are begun, a quarter of it for tuning the front where
    that is tuned. ``batch`` designs are evaluated at a time. ``progress`` is told (what, done, of).
    """

    objectives: tuple[str, ...] = ("cycles", "luts")
    searcher: str = "guided"
    budget: int = 100
    seconds: float = inf
    seed: int = 0
    batch: int = 4
    progress: Progress = lambda what, done, total: None

    def check(self) -> None:
        """Raises ExploreError where there are no such objectives or no such searcher."""
        check_objectives(self.objectives)
        make_searcher(self.searcher)


@dataclass(frozen=True)
class Level:
    """Counts of one level: designs that it was asked for, and designs that it kept from the next
    one, by reason."""

    name: str
    seen: int
    pruned: Mapping[str, int]


@dataclass(frozen=True, repr=False)
class Exploration:
    """Result of a search.

    ``evaluations`` are exact, or with tuned schedules where these are faster, by point; ``front``
    are the points that no other one dominates, by the first objective. ``records`` are the tuned
    schedules of those designs that have their cycles by them.
    """

    space: Space
    objectives: tuple[str, ...]
    evaluations: Mapping[Point, Evaluation]
    baseline: Evaluation
    levels: Sequence[Level]
    seconds: float
    records: Mapping[Point, Sequence[TileRecord]] = field(default_factory=dict)
    front: Sequence[Point] = field(init=False)

    def __post_init__(self) -> None:
        legal = [point for point, each in self.evaluations.items() if each.legal]
        vectors = np.array([self.evaluations[p].vector(self.objectives) for p in legal])
        best = [legal[row] for row in front(vectors)] if legal else []
        best.sort(key=lambda point: self.evaluations[point].vector(self.objectives))
        object.__setattr__(self, "front", best)

    @property
    def points(self) -> list[Evaluation]:
        """The evaluations of the front."""
        return [self.evaluations[point] for point in self.front]

    @property
    def clocks(self) -> str:
        """The source of every design's clock in a word: "estimated" or "asked"."""
        return self.baseline.clock.source

    @property
    def rejected(self) -> dict[str, int]:
        """Number of designs that each rule or network refused; what was only dominated isn't
        counted.
        """
        result = Counter[str]()
        for level in self.levels:
            result.update({why: n for why, n in level.pruned.items() if why != DOMINATED})
        return dict(result.most_common())

    def __repr__(self) -> str:
        return (
            f"Exploration({self.space.name}: {len(self.front)} designs that no other one beats, "
            f"of {len(self.evaluations)} evaluated)"
        )

    def _repr_html_(self) -> str:
        """Table of the front and the baseline, as a notebook shows it."""
        designs = [(str(n), each) for n, each in enumerate(self.points, 1)]
        designs.append((f"baseline {self.baseline.config.name}", self.baseline))
        settings = [", ".join(self.space.settings(point)) for point in self.front]
        rows = [
            [name, *(_shown(value) for value in each.vector(self.objectives)), text]
            for (name, each), text in zip(designs, [*settings, ""], strict=True)
        ]
        note = f"areas are estimates of a model that is fitted to yosys; clocks are {self.clocks}"
        estimated = any(not each.mapped for each in self.points)
        columns = ["design", *self.objectives, "settings"]
        return html_table(repr(self), columns, rows, note if estimated else "")

    def to_json(self) -> dict[str, object]:
        """The object of ``vdla explore --json``."""
        return {
            "space": self.space.name,
            "objectives": list(self.objectives),
            "evaluated": len(self.evaluations),
            "seconds": self.seconds,
            "baseline": {"config": self.baseline.config.name, **self.baseline.to_json()},
            "front": [
                {
                    **self.evaluations[point].to_json(),
                    "config": self.evaluations[point].config.to_dict(),
                    "settings": self.space.settings(point),
                }
                for point in self.front
            ],
            "rejected": self.rejected,
            "levels": [
                {"level": each.name, "seen": each.seen, "pruned": dict(each.pruned)}
                for each in self.levels
            ],
        }


def _shown(value: float) -> object:
    """A figure of a design; a dash where it isn't known."""
    if not isfinite(value):
        return "–"
    return round(value) if value >= WHOLE else round(value, 3)


class Search:
    """A search under way."""

    def __init__(
        self, space: Space, evaluations: Evaluations, options: SearchOptions, log: EvaluationLog
    ) -> None:
        options.check()
        self.space, self.evaluations, self.options, self.log = space, evaluations, options, log
        self.known: dict[Point, Evaluation] = {}
        self.problem = DesignProblem(space, evaluations, options.objectives)

    @property
    def evaluator(self) -> Evaluator:
        """Evaluator of designs."""
        return self.evaluations.evaluator

    def run(self, baseline: Config, tuner: Tuner | None = None) -> Exploration:
        """Searches; then tunes the front's schedules with ``tuner``, if one is given.

        Raises:
            ExploreError: the space has no legal design.
            FarmError: nobody has what an evaluation needs.
            OSError: the log can't be written any more; every evaluation before is in it.
        """
        begun = time.monotonic()
        seconds = self.options.seconds * (1.0 if tuner is None else SEARCHED)
        self._recall()
        searcher = self._searcher()
        searcher.update(self._values())
        while (left := self.options.budget - len(self.known)) > 0:
            if time.monotonic() - begun >= seconds:
                break
            points = searcher.propose(min(left, self.options.batch))
            if not points:
                break
            self._evaluate(points)
            searcher.update(self._values())
        if not any(each.legal for each in self.known.values()):
            self.problem.check()
        base = self._baseline(baseline)
        result = self._result(base, searcher, begun)
        if tuner is None:
            return result
        self._tune(tuner, result.front, begun)
        result = self._result(base, searcher, begun)
        tuned = [p for p in result.front if result.evaluations[p].level == TUNED]
        records = {point: tuner.known(self.space.design(point)) for point in tuned}
        return replace(result, records=records)

    def _searcher(self) -> Searcher:
        return make_searcher(self.options.searcher)(self.problem, self.options.seed)

    def _values(self) -> dict[Point, tuple[float, ...]]:
        return {p: each.vector(self.options.objectives) for p, each in self.known.items()}

    def _recall(self) -> None:
        """Takes over what the log holds, others' evaluations among it."""
        self.log.refresh()
        for (point, level), line in self.log.lines.items():
            if level == EXACT and point not in self.known:
                self._note(point, EXACT, _outcomes(line))
        for (point, level), line in self.log.lines.items():
            if level == TUNED and point in self.known:
                self._note(point, TUNED, _outcomes(line))

    def _note(self, point: Point, level: str, outcomes: Outcomes) -> None:
        """Keeps what a design is worth; tuned schedules only where they are faster."""
        each = self.evaluator.evaluation(self.space.design(point), level, outcomes)
        if level == EXACT or each.total < self.known[point].total:
            self.known[point] = each

    def _evaluate(self, points: Sequence[Point]) -> None:
        """Compiles and simulates some designs, and writes each down as it comes."""
        self.log.refresh()
        points = [point for point in points if (point, EXACT) not in self.log.lines]
        configs = [self.space.design(point) for point in points]
        for done, (position, outcomes) in enumerate(self.evaluations.exact(configs), start=1):
            self._write(points[position], EXACT, outcomes)
            self.options.progress("designs", len(self.known) + done, self.options.budget)
        self._recall()

    def _write(self, point: Point, level: str, outcomes: Outcomes) -> None:
        networks = {name: each.to_json() for name, each in outcomes.items()}
        self.log.append(Line(point, level, networks))

    def _baseline(self, config: Config) -> Evaluation:
        ((_, outcomes),) = self.evaluations.exact([config])
        return self.evaluator.evaluation(config, EXACT, outcomes)

    def _tune(self, tuner: Tuner, points: Sequence[Point], begun: float) -> None:
        """Searches schedules for the designs of the front."""
        for done, point in enumerate(points):
            if (point, TUNED) in self.log.lines:
                continue
            if time.monotonic() - begun >= self.options.seconds:
                break
            self.options.progress("tuning the front", done, len(points))
            config = self.space.design(point)
            records = tuner.records(config)
            for _, outcomes in self.evaluations.exact([config], records):
                self._write(point, TUNED, outcomes)
        self._recall()

    def _result(self, base: Evaluation, searcher: Searcher, begun: float) -> Exploration:
        seconds, objectives = time.monotonic() - begun, self.options.objectives
        levels = self._levels(searcher)
        return Exploration(self.space, objectives, dict(self.known), base, levels, seconds)

    def _levels(self, searcher: Searcher) -> list[Level]:
        """Levels, with what each saw and pruned."""
        problem = self.problem
        bound, model = refusals(problem.bounds.values()), refusals(problem.estimated.values())
        if isinstance(searcher, GuidedSearcher):
            bound[DOMINATED] = len(searcher.pruned)
        tuned = sum(level == TUNED for _, level in self.log.lines)
        rules = Counter(problem.rules.values())
        return [
            Level(CONFIG, len(problem.rules) + len(problem.bounds), rules),
            Level(BOUND, len(problem.bounds), bound),
            Level(MODEL, len(problem.estimated), model),
            Level(EXACT, len(self.known), refusals(self.known.values())),
            Level(TUNED, tuned, {}),
        ]


def _outcomes(line: Line) -> Outcomes:
    return {name: Outcome.from_json(value) for name, value in line.networks.items()}
