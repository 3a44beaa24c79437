"""Searchers: each finds the optimum of a small space, and is a function of seed and answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf

import numpy as np
import pytest

from vdla.compiler.search.ranker import XGBOOST, TuneDependencyError
from vdla.compiler.search.searchers import (
    ALIKE,
    LEARNED,
    UNTAUGHT,
    GridSearcher,
    ModelSearcher,
    RandomSearcher,
    Searcher,
    diverse,
)
from vdla.compiler.search.table import Features, Table
from vdla.support.install import pip_install

SEARCHERS = (LEARNED, *UNTAUGHT)


@dataclass(frozen=True)
class Point:
    """Two numbers and a choice."""

    a: int
    b: int
    c: str


SPACE = Table.of([Point(a, b, c) for a in range(20) for b in range(20) for c in "xyz"])
FEATURES = Features(
    ("a", "b", "x"), np.array([[p.a, p.b, p.c == "x"] for p in SPACE.candidates], np.float64)
)


@dataclass(frozen=True)
class View:
    """A space that has features alone."""

    rows: Features = FEATURES

    def features(self, points):
        return self.rows.take(points)

    def trees(self, points):
        raise NotImplementedError


def learned(seed: int, floor=None, space=SPACE, others=()) -> ModelSearcher:
    """A search whose floor says nothing unless it is given."""
    model = XGBOOST.over(View(), seed, others)
    return ModelSearcher(space, seed, np.zeros(len(space)) if floor is None else floor, model)


def cost(point: int) -> float:
    """A bowl with its bottom at (13, 4, x); some of the space is illegal."""
    p = SPACE.candidates[point]
    if p.a == p.b:
        return inf
    return 100 + (p.a - 13) ** 2 + 2 * (p.b - 4) ** 2 + 30 * (p.c != "x")


BEST = SPACE.point(Point(13, 4, "x"))


def make(name: str, seed: int, space: Table[Point] = SPACE) -> Searcher:
    if name == LEARNED:
        return learned(seed, space=space)
    return UNTAUGHT[name](space, seed)


def trials_to_best(searcher: Searcher, batch: int = 8) -> int:
    done = 0
    while points := searcher.propose(batch):
        assert len(set(points)) == len(points)
        if BEST in points:
            return done + points.index(BEST) + 1
        searcher.update({p: cost(p) for p in points})
        done += len(points)
    raise AssertionError("the space was used up")


@pytest.mark.parametrize("name", SEARCHERS)
def test_every_searcher_proposes_every_tile_once(name):
    small = Table.of(SPACE.candidates[:200])
    searcher = make(name, 1, small)
    seen = []
    while points := searcher.propose(30):
        seen += points
        searcher.update({p: cost(p) for p in points})
    assert sorted(seen) == list(range(len(small)))


@pytest.mark.parametrize("name", SEARCHERS)
def test_every_searcher_finds_the_optimum(name):
    assert trials_to_best(make(name, 2), 25) <= len(SPACE)


def test_learned_search_and_breeding_beat_chance():
    seeds = range(3)
    trials = {n: np.median([trials_to_best(make(n, s)) for s in seeds]) for n in SEARCHERS}
    assert trials[LEARNED] <= trials["random"] / 2
    assert trials["genetic"] < trials["random"]
    assert trials["grid"] == BEST + 1


@pytest.mark.parametrize("name", SEARCHERS)
def test_same_seed_same_proposals(name):
    runs = []
    for _ in range(2):
        searcher = make(name, 5)
        for _ in range(4):
            points = searcher.propose(8)
            searcher.update({p: cost(p) for p in points})
            runs.append(points)
    assert runs[:4] == runs[4:]
    if name != "grid":
        assert make(name, 6).propose(8) != runs[0]


@pytest.mark.parametrize("name", SEARCHERS)
def test_what_is_known_is_not_proposed(name):
    searcher = make(name, 0)
    known = list(range(0, len(SPACE), 2))
    searcher.update({p: cost(p) for p in known})
    for _ in range(5):
        assert not set(searcher.propose(20)) & set(known)


@pytest.mark.parametrize("name", SEARCHERS)
def test_illegal_answers_are_survived(name):
    searcher = make(name, 0)
    for _ in range(4):
        searcher.update(dict.fromkeys(searcher.propose(8), inf))
    assert len(searcher.propose(8)) == 8


def test_the_learned_search_starts_where_floors_are_low():
    floor = np.random.default_rng(3).permutation(np.linspace(100, 200, len(SPACE)))
    drawn = [p for s in range(40) for p in learned(s, floor).propose(8)]
    assert floor[drawn].max() <= ALIKE * 100
    assert len(set(drawn)) > 40  # any of those, not the lowest alone
    searcher = learned(0, floor)
    searcher.rule_out(np.flatnonzero((floor > 101) & (floor < 120)).tolist())
    lowest = np.sort(np.delete(floor, list(searcher.known)))[:20]
    assert set(floor[searcher.propose(20)]) == set(lowest)  # fewer are alike than are asked for


def test_annealing_goes_on_where_it_stopped():
    searcher = learned(0)
    points = list(range(0, len(SPACE), 11))
    searcher.update({p: cost(p) for p in points})
    before = searcher.chains
    searcher.propose(8)
    after = searcher.chains
    assert (before != after).any()
    assert np.median([cost(p) for p in after]) < np.median([cost(p) for p in before])


def test_records_of_another_workload_replace_the_random_start():
    rows = np.arange(0, len(SPACE), 5)
    transferred = (View(FEATURES.take(rows)), np.array([cost(p) for p in rows]))
    taught = learned(0, others=[transferred]).propose(8)
    untaught = learned(0).propose(8)
    above = [np.median([cost(p) for p in points]) - cost(BEST) for points in (taught, untaught)]
    assert above[0] < above[1] / 4


def test_diversity_prefers_new_knob_values():
    ranked = [SPACE.point(Point(13, b, "x")) for b in (4, 5, 6)] + [SPACE.point(Point(2, 9, "y"))]
    scores = np.zeros(len(SPACE))
    scores[ranked] = [1.0, 0.9, 0.9, 0.89]
    assert diverse(SPACE, ranked, scores, 1) == ranked[:1]
    assert ranked[3] in diverse(SPACE, ranked, scores, 2)
    scores[ranked] = [1.0, 0.99, 0.98, 0.0]
    assert ranked[3] not in diverse(SPACE, ranked, scores, 3)


def test_grid_is_declared_order_and_random_is_not():
    assert GridSearcher(SPACE, 0).propose(5) == [0, 1, 2, 3, 4]
    assert RandomSearcher(SPACE, 0).propose(5) != [0, 1, 2, 3, 4]


def test_without_xgboost_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xgboost", None)
    with pytest.raises(TuneDependencyError, match=re.escape(pip_install("tune"))):
        learned(0)
