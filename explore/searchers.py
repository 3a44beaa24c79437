"""Searchers: which designs to evaluate next, by the same protocol for all of them.

``propose`` gives points that were not proposed before, ``update`` tells what they are worth. The
same seed and the same answers give the same proposals. What a searcher knows beforehand is a
:class:`Problem`: which points are designs, and what each is worth at best.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Protocol

import numpy as np

from vdla.explore.pareto import Vectors, crowding, front, ranks
from vdla.explore.space import Point, Space

Vector = tuple[float, ...]

TRIES = 4000  # random points without a new design after which a space counts as used up
CANDIDATES = 2000  # points of a large space that are looked at before any is evaluated
POPULATION = 24
MUTATION = 0.15  # of each parameter
TOURNAMENT = 2


class Problem(Protocol):
    """Problem to be searched: a space, and what can be said of a design without evaluating it."""

    @property
    def space(self) -> Space:
        """The space of the points."""

    def optimistic(self, point: Point) -> Vector | None:
        """Objectives that no evaluation of a point goes below; None where it is no legal design."""

    def estimates(self, points: Sequence[Point]) -> list[Vector]:
        """Objectives that evaluations of some designs are close to, which cost more than bounds and
        less than evaluations; infinity where no schedule fits."""


class Searcher(ABC):
    """A search over the designs of a problem; objectives are minimized."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.rng = Random(seed)
        self.values: dict[Point, Vector] = {}  # of what was evaluated; infinite where illegal
        self.known: set[Point] = set()  # proposed or evaluated

    def propose(self, count: int) -> list[Point]:
        """Up to ``count`` new designs; fewer only where nothing worth a trial is left."""
        chosen: list[Point] = []
        for point in self._choose(count):
            if point not in self.known and self.problem.optimistic(point) is not None:
                self.known.add(point)
                chosen.append(point)
                if len(chosen) == count:
                    break
        return chosen

    def update(self, values: Mapping[Point, Vector]) -> None:
        """Tells what designs are worth, whoever proposed them."""
        self.values.update(values)
        self.known.update(values)

    @abstractmethod
    def _choose(self, count: int) -> Iterator[Point]:
        """Points to propose, the best first, until ``count`` are taken; known ones are skipped."""

    def _random(self) -> Iterator[Point]:
        """Random points, until there has been no new design for a long time."""
        tries = 0
        while tries < TRIES:
            point = self.problem.space.random_point(self.rng)
            new = point not in self.known and self.problem.optimistic(point) is not None
            tries = 0 if new else tries + 1
            yield point


class RandomSearcher(Searcher):
    """Legal designs, drawn alike."""

    def _choose(self, count: int) -> Iterator[Point]:
        return self._random()


class BoundSearcher(Searcher):
    """Designs by their optimistic objectives alone: those that none dominates first, then those
    that only these dominate, and so on; of each such front the least crowded first."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self.points: dict[Point, Vector] | None = None

    def _choose(self, count: int) -> Iterator[Point]:
        if self.points is None:
            self.points = dict(candidates(self.problem, self.rng))
        left = {p: vector for p, vector in self.points.items() if p not in self.known}
        while left:
            points, vectors = list(left), np.array(list(left.values()))
            rows = front(vectors)
            for row in np.argsort(-crowding(vectors[rows]), kind="stable"):
                yield points[rows[row]]
                del left[points[rows[row]]]


class Nsga2Searcher(Searcher):
    """NSGA-II over the grid (Deb et al., 2002): parents are drawn by rank and crowding among the
    best designs, a child takes each parameter from one of two and some a step away."""

    def _choose(self, count: int) -> Iterator[Point]:
        if len(self.known) < POPULATION:
            yield from self._random()
            return
        parents = self._parents()
        for _ in range(TRIES):
            yield self._child(*(self._select(parents) for _ in range(2)))
        yield from self._random()

    def _parents(self) -> list[Point]:
        """The population: the best designs evaluated, by rank and crowding."""
        legal = [p for p, values in self.values.items() if np.all(np.isfinite(values))]
        if not legal:
            return list(self.values)[:POPULATION]
        vectors = np.array([self.values[point] for point in legal])
        return [legal[row] for row in _by_rank(vectors)[:POPULATION]]

    def _select(self, parents: Sequence[Point]) -> Point:
        """The best of some drawn parents, which stand in their order."""
        return parents[min(self.rng.randrange(len(parents)) for _ in range(TOURNAMENT))]

    def _child(self, one: Point, other: Point) -> Point:
        result = [self.rng.choice(pair) for pair in zip(one, other, strict=True)]
        for axis, size in enumerate(self.problem.space.shape):
            if self.rng.random() < MUTATION:
                step = self.rng.choice((-1, 1))
                result[axis] = min(max(result[axis] + step, 0), size - 1)
        return tuple(result)


def candidates(
    problem: Problem, rng: Random, most: int = CANDIDATES
) -> Iterator[tuple[Point, Vector]]:
    """All designs of a space with their optimistic objectives; where the grid has more than
    ``most`` points, those among as many random ones."""
    space = problem.space
    small = space.size <= most
    points = space.points() if small else (space.random_point(rng) for _ in range(most))
    for point in dict.fromkeys(points):
        vector = problem.optimistic(point)
        if vector is not None:
            yield point, vector


def _by_rank(vectors: Vectors) -> list[int]:
    """Rows by rank, of one rank the least crowded first."""
    rank, result = ranks(vectors), list[int]()
    for number in range(int(rank.max(initial=-1)) + 1):
        rows = np.flatnonzero(rank == number)
        result += rows[np.argsort(-crowding(vectors[rows]), kind="stable")].tolist()
    return result
