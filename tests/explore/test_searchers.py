"""Searchers on a made-up problem, whose front is known."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from vdla.explore.errors import ExploreError
from vdla.explore.guided import GuidedSearcher
from vdla.explore.pareto import front, hypervolume
from vdla.explore.registry import SEARCHERS, make_searcher
from vdla.explore.space import Space
from vdla.isa.config import load_config


class Made:
    """A problem of a formula: a cost that falls with each parameter, and an area that grows.

    The bound sees one parameter, the estimate both, and 10 % wrong; some points are illegal, and of
    some others only the estimate knows it.
    """

    def __init__(self, size=8):
        values = tuple(range(1, size + 1))
        self.space = Space("made", load_config("tiny"), {"block_in": values, "token_queue": values})
        self.asked = []

    def exact(self, point):
        a, b = (1 + each for each in point)
        legal = a + 2 * b > 5 and a != 3
        return (1000.0 / a + 800.0 / b, 3.0 * a + 4.0 * b + a * b) if legal else (inf, inf)

    def optimistic(self, point):
        a = 1 + point[0]
        return None if a == 3 else (1000.0 / a, 3.0 * a + 4.0 * (1 + point[1]) + a * (1 + point[1]))

    def estimates(self, points):
        self.asked += points
        return [
            (cost * (0.9 + 0.02 * (point[0] % 3)), area)
            for point, (cost, area) in zip(points, map(self.exact, points), strict=True)
        ]

    @property
    def legal(self):
        return [p for p in self.space.points() if np.isfinite(self.exact(p)[0])]


def run(problem, searcher, count, batch=4):
    while len(searcher.values) < count:
        points = searcher.propose(min(batch, count - len(searcher.values)))
        if not points:
            break
        searcher.update({point: problem.exact(point) for point in points})
    return searcher


def volume(problem, points):
    vectors = np.log([problem.exact(p) for p in points if np.isfinite(problem.exact(p)[0])])
    return hypervolume(vectors, np.log([2000.0, 200.0]))


@pytest.mark.parametrize("name", SEARCHERS)
def test_points_are_designs_and_proposed_once(name):
    problem = Made(4)
    searcher = run(problem, make_searcher(name)(problem, 1), 100)
    assert all(problem.optimistic(point) is not None for point in searcher.values)
    if name != "guided":  # which leaves out what can't be in the front
        assert len(searcher.values) == 12
    assert searcher.propose(3) == []


@pytest.mark.parametrize("name", SEARCHERS)
def test_a_seed_and_answers_say_all(name):
    proposals = [list(run(p, make_searcher(name)(p, 7), 30).values) for p in (Made(), Made())]
    assert proposals[0] == proposals[1]


@pytest.mark.parametrize("name", SEARCHERS)
def test_what_others_evaluated_is_not_proposed(name):
    problem = Made()
    searcher = make_searcher(name)(problem, 1)
    others = {point: problem.exact(point) for point in list(problem.legal)[::2]}
    searcher.update(others)
    assert not others.keys() & set(run(problem, searcher, 60).propose(8))
    assert others.items() <= searcher.values.items()


def test_guided_is_better_than_chance():
    problem = Made()
    guided, random = (
        np.mean([volume(problem, run(problem, kind(problem, s), 16).values) for s in range(5)])
        for kind in (SEARCHERS["guided"], SEARCHERS["random"])
    )
    assert guided > random
    assert guided >= 0.97 * volume(problem, problem.legal)


def test_children_lie_between_their_parents_or_a_step_away():
    problem = Made(16)
    searcher = SEARCHERS["nsga2"](problem, 1)
    for _ in range(50):
        a, b = searcher._child((2, 9), (5, 3))
        assert a in (1, 2, 3, 4, 5, 6)
        assert b in (2, 3, 4, 8, 9, 10)


def test_what_is_pruned_is_not_in_the_front():
    problem = Made()
    searcher = run(problem, GuidedSearcher(problem, 1), 100)
    legal = problem.legal
    best = {legal[row] for row in front(np.array([problem.exact(p) for p in legal]))}
    assert searcher.pruned
    assert not searcher.pruned & best
    assert best <= searcher.values.keys()


def test_what_the_model_refuses_is_not_evaluated():
    problem = Made()
    searcher = run(problem, GuidedSearcher(problem, 1), 100)
    assert all(np.isfinite(values[0]) for values in searcher.values.values())
    assert len(problem.asked) == len(set(problem.asked))


def test_a_large_space_is_searched_from_a_sample(monkeypatch):
    monkeypatch.setattr("vdla.explore.searchers.candidates.__defaults__", (40,))
    problem = Made(40)
    searcher = GuidedSearcher(problem, 1)
    sampled = set(searcher.points)
    assert len(sampled) <= 40
    run(problem, searcher, 24)
    grown = searcher.points.keys() - sampled
    assert grown
    assert volume(problem, searcher.values) > volume(problem, sampled)


def test_an_unknown_searcher_is_refused():
    text = "--searcher: expected one of guided, nsga2, random, bound, optuna-nsga2, optuna-tpe, "
    with pytest.raises(ExploreError, match=text):
        make_searcher("best")
