"""The search over several fidelities: what is cheap to know says what is worth a simulation.

Every design's area and the cycles that no schedule goes below are known at once. A design that an
evaluated one dominates even so can't enter the front and is never evaluated: that pruning is exact.
Of the others, those that promise most get the analytic model's cycles, and of these, those that
promise most are evaluated. What a design promises is the hypervolume that it would add, by a
Gaussian process fitted to how far cycles stand above the model's, and the model's above the bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

import numpy as np

from vdla.explore.pareto import Vectors, front, gains
from vdla.explore.searchers import BoundSearcher, Problem, Searcher, Vector, candidates
from vdla.explore.space import Point
from vdla.explore.surrogate import Surrogate

FIRST = 16  # designs that get estimates before a process is first fitted
PER_TRIAL = 8  # designs that get estimates for each one that is evaluated
OPTIMISM = 0.5  # standard deviations that a prediction is taken below its mean
MOST_FITTED = 300  # values that a process is fitted to, the last ones
MARGIN = 0.05  # of the reference point beyond the worst design, in logarithms


class GuidedSearcher(Searcher):
    """Designs by the hypervolume that they are expected to add.

    ``pruned`` are the designs that can't enter the front, as evaluated ones show; ``estimated`` are
    the model's objectives of designs, infinite where no schedule fits.
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self.points = dict(candidates(problem, self.rng))
        self.pruned: set[Point] = set()
        self.estimated: dict[Point, Vector] = {}

    def _choose(self, count: int) -> Iterator[Point]:
        self._grow()
        self._prune()
        self._estimate(FIRST if not self.estimated else PER_TRIAL * count)
        likely = [p for p in self._left() if all(map(isfinite, self.estimated.get(p, (0.0,))))]
        known = [p for p in likely if p in self.estimated]
        if known:
            yield from (known[row] for row in self._order(self._predicted(known)))

    def _left(self) -> list[Point]:
        """Designs that may yet be evaluated."""
        return [p for p in self.points if p not in self.known and p not in self.pruned]

    def _grow(self) -> None:
        """Takes the neighbours of the front into a space that isn't listed as a whole."""
        legal = _legal(self.values)
        if not legal or len(self.points) >= self.problem.space.size:
            return
        best = front(np.array([self.values[point] for point in legal]))
        for point in (each for row in best for each in self.problem.space.neighbours(legal[row])):
            if point not in self.points:
                vector = self.problem.optimistic(point)
                if vector is not None:
                    self.points[point] = vector

    def _prune(self) -> None:
        """Finds the designs that an evaluated one dominates at their best."""
        legal, left = _legal(self.values), self._left()
        if not legal or not left:
            return
        vectors = np.array([self.values[point] for point in legal])
        best = vectors[front(vectors)]
        for point in left:
            if np.any(np.all(best <= np.array(self.points[point]), axis=1)):
                self.pruned.add(point)

    def _estimate(self, count: int) -> None:
        """Asks the model for the designs that promise most."""
        left = [point for point in self._left() if point not in self.estimated]
        if not self.estimated:
            bound = BoundSearcher(self.problem, 0)
            bound.points = self.points
            chosen = bound.propose(count)
        else:
            order = self._order(self._predicted(left)) if left else iter(())
            chosen = [left[row] for row, _ in zip(order, range(count), strict=False)]
        self.estimated |= dict(zip(chosen, self.problem.estimates(chosen), strict=True))

    def _predicted(self, points: Sequence[Point]) -> Vectors:
        """Logarithms of objectives of some designs, somewhat below what is expected."""
        result = _logarithms([self.estimated.get(p) or self.points[p] for p in points])
        rough = np.array([point not in self.estimated for point in points])
        places = self._places(points)
        bounds = {p: self.points[p] for p in self.estimated if p in self.points}
        result[rough] += self._above(bounds, self.estimated, places[rough])
        return result + self._above(self.estimated, self.values, places)

    def _above(
        self, low: Mapping[Point, Vector], high: Mapping[Point, Vector], places: Vectors
    ) -> Vectors:
        """Predicts how far the logarithms of ``high`` stand above those of ``low`` at places, from
        the points that have both."""
        both = _legal({p: v for p, v in high.items() if p in low and all(map(isfinite, low[p]))})
        both = both[-MOST_FITTED:]
        count = len(self.problem.space.shape)
        if len(both) < 2 or not len(places):
            columns = len(next(iter(self.points.values())))
            return np.zeros((len(places), columns))
        above = _logarithms([high[p] for p in both]) - _logarithms([low[p] for p in both])
        result = np.zeros((len(places), above.shape[1]))
        for column, y in enumerate(above.T):
            if np.any(y != 0.0):
                x = self._places(both).reshape(len(both), count)
                mean, deviation = Surrogate.fit(x, y).predict(places)
                result[:, column] = mean - OPTIMISM * deviation
        return result

    def _places(self, points: Sequence[Point]) -> Vectors:
        """Points [rows, parameters] as shares of each parameter's range."""
        most = np.maximum(np.array(self.problem.space.shape) - 1, 1)
        result: Vectors = np.array(points, np.float64) / most
        return result

    def _order(self, predicted: Vectors) -> Iterator[int]:
        """Rows by what each adds to the hypervolume of those evaluated and those before it; what
        adds nothing comes last, the nearest to the front first."""
        legal = _legal(self.values)
        chosen = _logarithms([self.values[point] for point in legal])
        chosen = chosen.reshape(len(legal), predicted.shape[1])
        reference = np.vstack((chosen, predicted)).max(axis=0) + MARGIN
        left = list(range(len(predicted)))
        while left:
            distances = _distances(predicted[left], chosen)
            near = [row for row, distance in zip(left, distances, strict=True) if distance < 0.0]
            if near:
                row = near[int(np.argmax(gains(predicted[near], chosen, reference)))]
            else:
                row = left[int(np.argmin(distances))]
            yield row
            left.remove(row)
            chosen = np.vstack((chosen, predicted[row]))


def _legal(values: Mapping[Point, Vector]) -> list[Point]:
    """The points whose objectives are finite."""
    return [point for point, vector in values.items() if all(map(isfinite, vector))]


def _distances(vectors: Vectors, chosen: Vectors) -> Vectors:
    """Distance by which one objective of each vector has to fall until no chosen one dominates it;
    below 0 where none does."""
    if not len(chosen):
        return np.full(len(vectors), -1.0)
    result: Vectors = np.max(np.min(vectors[:, None] - chosen[None], axis=2), axis=1)
    return result


def _logarithms(vectors: Sequence[Vector]) -> Vectors:
    """Logarithms of objectives and one: a design may take no DSP block."""
    result: Vectors = np.log1p(np.array(vectors, np.float64))
    return result
