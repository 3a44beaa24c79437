"""Searchers: which candidates to measure next.

All speak one protocol: ``propose`` gives points of the space that were never proposed before,
``update`` tells what they cost. The same seed and the same answers give the same proposals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.tune.features import Features
from vdla.compiler.tune.model import Ranker
from vdla.compiler.tune.space import Ints, Space

Floats = NDArray[np.float64]
Group = tuple[Floats, Floats]
INF = float("inf")

WARM = 8  # candidates drawn before the model is first asked
# Candidates whose floor, the lower bound of their cycles, is at most this many times the lowest are
# drawn from alike: the floor leaves out stalls, which make a larger difference than that.
ALIKE = 1.05
CHAINS = 64
STEPS = 100
PATIENCE = 25  # annealing steps without a better candidate before it stops
EXPLORE = 0.05  # share of a batch that is drawn at random
POPULATION = 16
ELITE = 4
MUTATION = 0.2


class Searcher(ABC):
    """A search over one space. ``cost`` maps each measured point to its cycles, or infinity."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space = space
        self.rng = np.random.default_rng(seed)
        self.cost: dict[int, float] = {}
        self.known: set[int] = set()  # proposed, measured or ruled out

    def propose(self, count: int) -> list[int]:
        """Up to ``count`` new points; fewer only when the space is used up."""
        chosen: list[int] = []
        count = min(count, len(self.space) - len(self.known))
        for point in self._choose(count):
            if point not in self.known:
                self.known.add(point)
                chosen.append(point)
        for point in self._random(count - len(chosen)):
            self.known.add(point)
            chosen.append(point)
        return chosen

    def update(self, costs: Mapping[int, float]) -> None:
        """Takes the measured cycles of points, proposed or not; infinity for an illegal one."""
        self.cost.update(costs)
        self.known.update(costs)

    def rule_out(self, points: Iterable[int]) -> None:
        """Never proposes some points."""
        self.known.update(points)

    @abstractmethod
    def _choose(self, count: int) -> Sequence[int]:
        """At most ``count`` points; the known ones among them are replaced by random ones."""

    def _random(self, count: int) -> list[int]:
        """Distinct unknown points."""
        if count <= 0:
            return []
        unknown = np.ones(len(self.space), np.bool_)
        unknown[list(self.known)] = False
        points = self._hopeful(np.flatnonzero(unknown), count)
        drawn: list[int] = self.rng.choice(points, count, replace=False).tolist()
        return drawn

    def _hopeful(self, points: Ints, count: int) -> Ints:
        """Those of some points, at least ``count``, that are worth drawing from."""
        return points


class RandomSearcher(Searcher):
    """Proposes points at random, each at most once."""

    def _choose(self, count: int) -> Sequence[int]:
        return self._random(count)


class GridSearcher(Searcher):
    """Proposes the points in the order in which the space has its tiles."""

    def _choose(self, count: int) -> Sequence[int]:
        unknown = (i for i in range(len(self.space)) if i not in self.known)
        return [point for point, _ in zip(unknown, range(count), strict=False)]


class GeneticSearcher(Searcher):
    """A genetic algorithm on the knobs of tiles.

    Parents are drawn by speed among the fastest, a child takes each knob from one of two parents,
    and some children mutate.
    """

    def _choose(self, count: int) -> Sequence[int]:
        ranked = sorted((c, p) for p, c in self.cost.items() if c < INF)[:POPULATION]
        if len(ranked) < ELITE:
            return []
        points = np.array([p for _, p in ranked])
        speed = np.array([ranked[0][0] / c for c, _ in ranked])
        children: list[int] = []
        for _ in range(20 * count):  # most of what is bred late was known before
            a, b = self.rng.choice(points, 2, p=speed / speed.sum())
            child = self.space.cross(int(a), int(b), self.rng)
            if self.rng.random() < MUTATION or child in self.known:
                child = int(self.space.step(np.array([child]), self.rng)[0])
            if child not in self.known and child not in children:
                children.append(child)
            if len(children) == count:
                break
        return children


class ModelSearcher(Searcher):
    """Simulated annealing on a learned model.

    What it draws at random has a floor near the lowest: the others can't be fast. Among those the
    floor doesn't decide: the very lowest belong to tiny tiles, which stall most.

    Args:
        features: of every tile of the space.
        transfer: (features, cycles) of other workloads' records, to learn from as well.
        chains, steps: parallel annealing chains, which go on from batch to batch.
    """

    def __init__(
        self,
        space: Space,
        seed: int,
        features: Features,
        transfer: Sequence[Group] = (),
        chains: int = CHAINS,
        steps: int = STEPS,
    ) -> None:
        super().__init__(space, seed)
        self.features, self.transfer, self.steps = features, list(transfer), steps
        self.ranker = Ranker(features.names, seed)
        self.chains: Ints = self.rng.integers(len(space), size=chains)

    def _choose(self, count: int) -> Sequence[int]:
        measured = list(self.cost)
        groups = list(self.transfer)
        if measured:
            cycles = np.array([self.cost[p] for p in measured])
            groups.append((self.features.values[measured], cycles))
        if len(measured) < WARM and not self.transfer:
            return []
        self.ranker.fit(groups)
        scores = self.ranker.score(self.features.values)
        visited = self._anneal(scores)
        visited = [p for p in visited if p not in self.known]
        guided = count - sum(self.rng.random(count) < EXPLORE)
        ranked = sorted(visited, key=lambda p: -scores[p])[: 4 * count]
        return diverse(self.space, ranked, scores, guided)

    def _hopeful(self, points: Ints, count: int) -> Ints:
        floor = self.features.floor[points]
        alike = np.count_nonzero(floor <= ALIKE * floor.min())
        return points[np.argsort(floor, kind="stable")[: max(alike, count)]]

    def _anneal(self, scores: Floats) -> list[int]:
        """Moves the chains from temperature 1 to 0; every point they visited."""
        spread = float(scores.std()) or 1.0
        here, level = self.chains, scores[self.chains] / spread
        visited, best, idle = set(here.tolist()), level.max(), 0
        for temperature in np.linspace(1, 0, self.steps):
            there = self.space.step(here, self.rng)
            gain = scores[there] / spread - level
            accept = np.exp(np.minimum(gain / (temperature + 1e-5), 0)) > self.rng.random(len(here))
            here = np.where(accept, there, here)
            level = scores[here] / spread
            visited.update(there.tolist())
            idle = 0 if level.max() > best else idle + 1
            best = max(best, level.max())
            if idle >= PATIENCE and temperature < 0.5:
                break
        self.chains = here
        return sorted(visited)


def diverse(space: Space, ranked: Sequence[int], scores: Floats, count: int) -> list[int]:
    """Of ranked points the ``count`` with high scores and different knobs, chosen greedily.

    A knob's value that no chosen point has yet is worth a share of the ranked scores' spread.
    """
    if not ranked:
        return []
    left, chosen = list(ranked), list[int]()
    values = scores[left]
    worth = (values.max() - values.min()) / (2 * len(space.free)) or 1e-9
    taken = {column: set[int]() for column in space.free}
    while left and len(chosen) < count:
        fresh = [sum(int(space.codes[p, c]) not in taken[c] for c in space.free) for p in left]
        pick = int(np.argmax([scores[p] + worth * f for p, f in zip(left, fresh, strict=True)]))
        point = left.pop(pick)
        chosen.append(point)
        for column in space.free:
            taken[column].add(int(space.codes[point, column]))
    return chosen


SEARCHERS: dict[str, Callable[..., Searcher]] = {
    "xgboost": ModelSearcher,
    "random": RandomSearcher,
    "grid": GridSearcher,
    "genetic": GeneticSearcher,
}
