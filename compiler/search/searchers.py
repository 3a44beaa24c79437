"""Searchers: which candidates to measure next, in spaces that are listed and in others.

All speak one protocol: ``propose`` gives points of the space that were never proposed before,
``update`` tells what they cost. The same seed and the same answers give the same proposals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from vdla.compiler.search.cost_model import PointModel
from vdla.compiler.search.points import Floats, Ints, Listed, Points

INF = float("inf")

WARM = 8  # candidates drawn before the model is first asked
# Candidates whose floor, the lower bound of their cost, is at most this many times the lowest are
# drawn from alike: the floor leaves out stalls, which make a larger difference than that.
ALIKE = 1.05
CHAINS = 64
STEPS = 100
PATIENCE = 25  # annealing steps without a better candidate before it stops
EXPLORE = 0.05  # share of a batch that is drawn at random
POPULATION = 16
ELITE = 4
MUTATION = 0.2
# EvolutionSearcher; small numbers, since each candidate is lowered before a model sees it.
GENERATIONS = 2
CHILDREN_PER_GENERATION = 12
RANDOM_PER_GENERATION = 4


class Searcher(ABC):
    """A search over one space. ``cost`` maps each measured point to its cost, or infinity.

    What a cost is, such as cycles, is the target's to say; the least is looked for.
    """

    def __init__(self, space: Points, seed: int) -> None:
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
        """Takes the measured costs of points, proposed or not; infinity for an illegal one."""
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
        return self.space.draw(self.known, count, self.rng) if count > 0 else []


class RandomSearcher(Searcher):
    """Proposes points at random, each at most once."""

    def _choose(self, count: int) -> Sequence[int]:
        return self._random(count)


class GridSearcher(Searcher):
    """Proposes the points in the order in which a space lists them."""

    def _choose(self, count: int) -> Sequence[int]:
        unknown = (i for i in range(len(self.space)) if i not in self.known)
        return [point for point, _ in zip(unknown, range(count), strict=False)]


class GeneticSearcher(Searcher):
    """A genetic algorithm on the knobs of candidates.

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
    """Simulated annealing on a cost model.

    What it draws at random has a floor near the lowest: the others can't be fast. Among those the
    floor doesn't decide: the very lowest belong to tiny tiles, which stall most.

    Args:
        floor: the cost that each candidate of the space can't go below [points].
        model: of the space.
        chains, steps: parallel annealing chains, which go on from batch to batch.
    """

    space: Listed

    def __init__(
        self,
        space: Listed,
        seed: int,
        floor: Floats,
        model: PointModel,
        chains: int = CHAINS,
        steps: int = STEPS,
    ) -> None:
        super().__init__(space, seed)
        self.floor, self.model, self.steps = floor, model, steps
        self.chains: Ints = self.rng.integers(len(space), size=chains)

    def _choose(self, count: int) -> Sequence[int]:
        if len(self.cost) < WARM and not self.model.taught:
            return []
        self.model.fit(self.cost)
        scores = self.model.score(range(len(self.space)))
        visited = self._anneal(scores)
        visited = [p for p in visited if p not in self.known]
        guided = count - sum(self.rng.random(count) < EXPLORE)
        ranked = sorted(visited, key=lambda p: -scores[p])[: 4 * count]
        return diverse(self.space, ranked, scores, guided)

    def _random(self, count: int) -> list[int]:
        """Distinct unknown points whose floor is among the low ones."""
        if count <= 0:
            return []
        points = np.array([p for p in range(len(self.space)) if p not in self.known])
        floor = self.floor[points]
        alike = np.count_nonzero(floor <= ALIKE * floor.min())
        lowest = points[np.argsort(floor, kind="stable")[: max(alike, count)]]
        drawn: list[int] = self.rng.choice(lowest, count, replace=False).tolist()
        return drawn

    def _anneal(self, scores: Floats) -> list[int]:
        """Moves the chains from temperature 1 to 0; every point they visited."""
        spread = float(scores.std()) or 1.0
        here, level = self.chains, scores[self.chains] / spread
        visited, best, idle = set(here.tolist()), level.max(), 0
        for temperature in np.linspace(1, 0, self.steps):
            moved = self.space.step(here, self.rng)
            gain = scores[moved] / spread - level
            accept = np.exp(np.minimum(gain / (temperature + 1e-5), 0)) > self.rng.random(len(here))
            here = np.where(accept, moved, here)
            level = scores[here] / spread
            visited.update(moved.tolist())
            idle = 0 if level.max() > best else idle + 1
            best = max(best, level.max())
            if idle >= PATIENCE and temperature < 0.5:
                break
        self.chains = here
        return sorted(visited)


class EvolutionSearcher(Searcher):
    """Evolution on a cost model (Ansor, OSDI'20, section 5): of points that needn't be listed.

    The fastest points measured and some random ones breed; after some generations those of the
    highest scores are proposed.

    Args:
        model: of the space; it says which points aren't legal.
    """

    def __init__(self, space: Points, seed: int, model: PointModel) -> None:
        super().__init__(space, seed)
        self.model = model

    def _choose(self, count: int) -> Sequence[int]:
        measured = {p: cost for p, cost in self.cost.items() if cost < INF}
        if len(measured) < ELITE:
            return []
        self.model.fit(measured)
        guided = count - sum(self.rng.random(count) < EXPLORE)
        scores = self._evolve(list(measured))
        return sorted(scores, key=lambda p: -scores[p])[:guided]

    def _evolve(self, measured: Sequence[int]) -> dict[int, float]:
        """The scores of the unknown legal points of some generations."""
        parents = sorted(measured, key=lambda p: self.cost[p])[:POPULATION]
        scores: dict[int, float] = {}
        for _ in range(GENERATIONS):
            self._score([*self._random_guests(), *self._children(parents)], scores)
            ranked = sorted(scores, key=lambda p: -scores[p])[:POPULATION]
            parents = [*ranked, *parents[:ELITE]]
        return scores

    def _random_guests(self) -> list[int]:
        return self.space.draw(self.known, RANDOM_PER_GENERATION, self.rng)

    def _children(self, parents: Sequence[int]) -> list[int]:
        """Crossed, and some of them stepped, less those known already."""
        bred: dict[int, None] = {}
        for _ in range(CHILDREN_PER_GENERATION):
            a, b = self.rng.choice(parents, 2).tolist()
            child = self.space.cross(a, b, self.rng)
            if child in self.known or self.rng.random() < MUTATION:
                child = int(self.space.step(np.array([child]), self.rng)[0])
            if child not in self.known:
                bred[child] = None
        return list(bred)

    def _score(self, points: Sequence[int], scores: dict[int, float]) -> None:
        """Adds the scores of legal points; the others are ruled out."""
        new = [p for p in dict.fromkeys(points) if p not in scores and p not in self.known]
        if not new:
            return
        levels = self.model.score(new)
        self.rule_out(p for p, score in zip(new, levels, strict=True) if np.isnan(score))
        for point, score in zip(new, levels, strict=True):
            if point not in self.known:
                scores[point] = float(score)


def diverse(space: Listed, ranked: Sequence[int], scores: Floats, count: int) -> list[int]:
    """Chooses ``count`` of some ranked points greedily, for high scores and different knobs.

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


# Searchers without a model, by the names under which a user knows them.
UNTAUGHT: dict[str, Callable[[Points, int], Searcher]] = {
    "random": RandomSearcher,
    "grid": GridSearcher,
    "genetic": GeneticSearcher,
}
LEARNED = "model"  # the name of the searcher that asks a cost model, whichever fits the space
