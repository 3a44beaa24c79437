"""The loop: whose turn it is, what is tried, what is kept, and what is told."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

import pytest

from vdla.compiler.search import tuner as module
from vdla.compiler.search.outcomes import Outcome
from vdla.compiler.search.records import Log, Record, load
from vdla.compiler.search.searchers import UNTAUGHT
from vdla.compiler.search.table import Table
from vdla.compiler.search.tuner import Task, TuneOptions, Turn, tune


@dataclass(frozen=True)
class Dot:
    """A place on a line."""

    x: int


@dataclass(frozen=True)
class Distance(Outcome):
    """How far off a dot is; some are nowhere."""

    cost: float = inf


@dataclass(frozen=True)
class DotRecord(Record):
    """One dot's distance."""

    line: str
    x: int
    status: str
    distance: float | None

    @property
    def key(self):
        return self.line

    @property
    def outcome(self):
        return Distance(self.status, cost=inf if self.distance is None else self.distance)


@dataclass(eq=False)
class Line(Task[Dot, Distance, DotRecord]):
    """The dot nearest to 7 is looked for; one that is known to be far off is no hope."""

    started: list[str] = field(default_factory=list)
    far: tuple[int, ...] = ()
    known: tuple[int, ...] = ()
    nearest: float = 0.0

    bound = property(lambda self: self.nearest)

    @classmethod
    def of(cls, name, size=20, **more):
        return cls([name, "another"], Table.of([Dot(x) for x in range(size)]), None, **more)

    def searcher(self, options, records):
        self.started.append(options.searcher)
        return UNTAUGHT[options.searcher](self.space, options.seed)

    def record(self, candidate, outcome):
        distance = outcome.cost if outcome.status == "ok" else None
        return DotRecord(self.layers[0], candidate.x, outcome.status, distance)

    def recall(self, record):
        return (Dot(record.x), record.outcome) if record.key == self.layers[0] else None

    def known_good(self, records):
        return self.known

    def hopeless(self):
        return self.far


class FakeMeasurer:
    """Stands in for a pool; answers in reverse order, and says who asked for how many."""

    asked: ClassVar[list] = []
    lives: ClassVar[float] = inf  # outcomes that it gives before it is killed

    def __init__(self, meters, pool, seconds):
        self.asked.clear()

    def run(self, task, dots):
        self.asked.append((task, len(dots)))
        for position in reversed(range(len(dots))):
            if FakeMeasurer.lives == 0:
                raise KeyboardInterrupt
            FakeMeasurer.lives -= 1
            x = dots[position].x
            away = Distance("illegal", "nowhere") if x == 3 else Distance("ok", cost=abs(x - 7) + 1)
            yield position, away


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    monkeypatch.setattr(module, "Measurer", FakeMeasurer)
    monkeypatch.setattr(module, "local_pool", lambda *args: nullcontext())


def tuned(path, *tasks, **options):
    with Log(path, DotRecord) as log:
        tune(tasks, log, TuneOptions(**{"searcher": "grid", **options}))
    return [record.x for record in load(path, DotRecord)]


def test_each_has_its_turn_and_its_own_trials(tmp_path):
    a, b = Line.of("a"), Line.of("b")
    tuned(tmp_path / "log", a, b, trials=12, batch=5)
    assert FakeMeasurer.asked == [(0, 5), (0, 5), (0, 2), (1, 5), (1, 5), (1, 2)]
    assert (a.trials, a.best, a.least, a.started) == (12, 7, 1.0, ["grid"])
    assert a.counts == {"ok": 11, "illegal": 1}
    assert a.history == [4.0, 1.0, 1.0]


def test_a_log_is_gone_on_with(tmp_path):
    tuned(tmp_path / "log", Line.of("a"), trials=5)
    more = Line.of("a")
    seen = tuned(tmp_path / "log", more, Line.of("b"), trials=9)
    assert sorted(seen) == sorted([*range(9), *range(9)])
    assert (more.resumed, more.trials, more.history) == (5, 9, [1.0, 1.0])
    done = Line.of("a")
    tuned(tmp_path / "log", done, trials=9)
    assert (done.resumed, done.trials, FakeMeasurer.asked) == (9, 9, [])


def test_what_is_known_good_comes_first_and_what_is_hopeless_never(tmp_path):
    task = Line.of("a", size=10, far=(0, 1, 2), known=(8, 5))
    seen = tuned(tmp_path / "log", task, trials=10, batch=4)
    assert seen[:2] == [5, 8]  # by themselves, and told in reverse
    assert sorted(seen) == [3, 4, 5, 6, 7, 8, 9]
    assert (task.ruled_out, task.used_up) == (3, True)


def test_what_takes_longest_begins_first(tmp_path):
    """The log says in which order they began, from the last on; what is learned is the same."""

    class Hard(Line):
        def effort(self, point):
            return {2: 9.0, 5: 7.0}.get(point, 0.0)

    easy, hard = Line.of("a"), Hard.of("a")
    assert tuned(tmp_path / "easy", easy, trials=8) == [7, 6, 5, 4, 3, 2, 1, 0]
    assert tuned(tmp_path / "hard", hard, trials=8) == [7, 6, 4, 3, 1, 0, 5, 2]
    assert (easy.outcomes, easy.history) == (hard.outcomes, hard.history)


def lines():
    return Line.of("a", size=30, known=(3, 9)), Line.of("b", size=30, far=(0, 1))


HOW = {"searcher": "genetic", "trials": 14, "batch": 4, "seed": 5}


@pytest.mark.parametrize("lives", range(29))
def test_a_search_that_was_killed_ends_as_if_it_had_not_been(tmp_path, monkeypatch, lives):
    """Wherever it was killed, in whatever round."""
    once = lines()
    whole = tuned(tmp_path / "whole", *once, **HOW)
    assert len(whole) == 28
    monkeypatch.setattr(FakeMeasurer, "lives", lives)
    with suppress(KeyboardInterrupt):
        tuned(tmp_path / "log", *lines(), **HOW)
    monkeypatch.setattr(FakeMeasurer, "lives", inf)
    twice = lines()
    assert sorted(tuned(tmp_path / "log", *twice, **HOW)) == sorted(whole)
    for task, other in zip(once, twice, strict=True):
        assert {p: o.cost for p, o in task.outcomes.items()} == {
            p: o.cost for p, o in other.outcomes.items()
        }
        assert task.history == other.history
    assert sum(task.resumed for task in twice) == lives


@pytest.mark.parametrize("more", [{"seed": 6}, {"batch": 5}, {"searcher": "random"}], ids=str)
def test_a_log_of_another_search_counts_as_tried(tmp_path, more):
    """Its candidates are not measured again, and the search learns from them."""
    tuned(tmp_path / "log", Line.of("a", size=30), **HOW)
    task = Line.of("a", size=30)
    seen = tuned(tmp_path / "log", task, **{**HOW, "trials": 20, **more})
    assert (task.resumed, task.trials, len(seen)) == (14, 20, len(set(seen)))


def test_records_of_other_tasks_do_not_disturb(tmp_path):
    whole = tuned(tmp_path / "whole", Line.of("a", size=30), **HOW)
    tuned(tmp_path / "log", Line.of("c", size=30), **HOW)
    tuned(tmp_path / "log", Line.of("a", size=30), **{**HOW, "trials": 8})
    seen = tuned(tmp_path / "log", Line.of("a", size=30), **HOW)
    assert sorted(seen[14:]) == sorted(whole)


def test_a_search_ends_near_its_bound(tmp_path):
    task = Line.of("a", nearest=0.98)
    tuned(tmp_path / "log", task, trials=20, batch=4, enough=0.98)
    assert (task.trials, task.least) == (8, 1.0)
    tight = Line.of("b", nearest=0.98)
    tuned(tmp_path / "tight", tight, trials=20, batch=4, enough=0.99)
    assert tight.trials == 20


def test_progress_is_told_as_candidates_come_in(tmp_path):
    told = []
    tasks = Line.of("a", size=2), Line.of("b")
    tuned(tmp_path / "log", *tasks, trials=3, batch=2, progress=lambda *all: told.append(all))
    assert told == [
        ("a", 0, 6), ("a", 1, 6), ("a", 2, 6),
        ("b", 3, 6), ("b", 4, 6), ("b", 5, 6), ("b", 6, 6),
    ]  # fmt: skip


def test_a_target_may_say_whose_turn_it_is(tmp_path):
    class Lottery(Line):
        @classmethod
        def next_task(cls, tasks, options):
            done = sum(task.trials for task in tasks)
            return Turn(done % 2, 1, done) if done < 4 else None

    a, b = Lottery.of("a"), Lottery.of("b")
    tuned(tmp_path / "log", a, b)
    assert FakeMeasurer.asked == [(0, 1), (1, 1), (0, 1), (1, 1)]
    assert (a.trials, b.trials) == (2, 2)


def test_nothing_to_search_for(tmp_path):
    assert tuned(tmp_path / "log") == []
