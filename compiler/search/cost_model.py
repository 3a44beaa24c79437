"""Cost models: they learn from measured candidates which others of their space cost less.

A kind of model says what it sees of a candidate, a row of features or its program's tree. A target
shows its candidates in both ways, and searchers ask by points alone:

    searcher → PointModel → CostModel      scores of points, of what is seen of them
                          → Shown          how the target shows them

Costs of different spaces, such as layers on several machines, are never compared with one another,
so records of many spaces can be learned from together, as groups.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.search.forest import Forest
from vdla.compiler.search.points import Floats
from vdla.compiler.search.table import Features

LOOKED_AT = 4096  # candidates that are seen at a time: a tree takes some kilobytes


class Seen(Protocol):
    """Candidates as a kind of model sees them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""

    @property
    def legal(self) -> NDArray[np.bool_]:
        """Whether a candidate is legal, for each."""

    def __len__(self) -> int: ...


AnySeen = TypeVar("AnySeen", bound=Seen)


class CostModel(ABC, Generic[AnySeen]):
    """Ranking of candidates by what is seen of them; a higher score is one that costs less."""

    @abstractmethod
    def fit(self, groups: Sequence[tuple[AnySeen, Floats]]) -> None:
        """Learns from groups of (candidates, their costs [candidates]); infinity for an illegal
        one. The last group is of the space that is searched, and may be the only one."""

    @abstractmethod
    def score(self, seen: AnySeen) -> Floats:
        """Scores of candidates [candidates]."""


class Shown(Protocol):
    """A space as cost models may see it."""

    def features(self, points: Sequence[int]) -> Features:
        """Features of points' candidates."""

    def trees(self, points: Sequence[int]) -> Forest:
        """Trees of points' candidates' programs."""


ShownGroup = tuple[Shown, Floats]  # a space of which points 0, 1, … were measured, and their costs


class PointModel(ABC):
    """A cost model over one space, by its points.

    ``taught``: it has records of other spaces to learn from.
    """

    taught: bool

    @abstractmethod
    def fit(self, costs: Mapping[int, float]) -> None:
        """Learns from the costs of measured points, beside what other spaces teach."""

    @abstractmethod
    def score(self, points: Sequence[int]) -> Floats:
        """Scores of points [points]; NaN for one that isn't legal."""


@dataclass(frozen=True)
class ModelKind:
    """A kind of cost models by its name; ``over`` makes one over a space.

    Its arguments are the space as it is shown, a seed, and what other spaces teach.
    """

    name: str
    over: Callable[[Shown, int, Sequence[ShownGroup]], PointModel]

    @classmethod
    def of(
        cls,
        name: str,
        make: Callable[[Sequence[str], int], CostModel[AnySeen]],
        look: Callable[[Shown, Sequence[int]], AnySeen],
    ) -> Self:
        """Kind of the models that ``make`` gives for names of features and a seed, and that see
        candidates as ``look`` gives them."""

        def over(shown: Shown, seed: int, others: Sequence[ShownGroup]) -> PointModel:
            groups = [(look(each, range(len(costs))), costs) for each, costs in others]
            names = look(shown, ()).names
            return _Over(make(names, seed), lambda points: look(shown, points), groups)

        return cls(name, over)


def speed(costs: Floats) -> Floats:
    """Relevance of each candidate: the group's least cost over its own."""
    finite = costs[np.isfinite(costs)]
    return finite.min() / costs if finite.size else np.zeros(len(costs))


class _Over(PointModel, Generic[AnySeen]):
    """A model over a space; ``others`` are groups of other spaces."""

    def __init__(
        self,
        model: CostModel[AnySeen],
        look: Callable[[Sequence[int]], AnySeen],
        others: Sequence[tuple[AnySeen, Floats]],
    ) -> None:
        self.model, self.look, self.others = model, look, list(others)
        self.taught = bool(others)

    def fit(self, costs: Mapping[int, float]) -> None:
        """Learns from all groups."""
        own = (self.look(list(costs)), np.array(list(costs.values())))
        self.model.fit([*self.others, own] if costs else self.others)

    def score(self, points: Sequence[int]) -> Floats:
        """Scores of legal points; of a large space some are looked at after the others."""
        parts = [np.empty(0)]
        for start in range(0, len(points), LOOKED_AT):
            seen = self.look(points[start : start + LOOKED_AT])
            parts.append(np.where(seen.legal, self.model.score(seen), np.nan))
        return np.concatenate(parts)
