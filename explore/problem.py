"""A space with an evaluator as searchers see it: legal designs, bounds, estimates; each asked for
once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from vdla.explore.errors import ExploreError
from vdla.explore.evaluate import MODEL, Evaluation
from vdla.explore.jobs import Evaluations
from vdla.explore.searchers import Vector
from vdla.explore.space import IllegalError, Point, Space

EXCESS = re.compile(r" [\d.,]+ of ([\d,]+) \([\d.,]+ too many\)")  # of a part's resource


class DesignProblem:
    """The designs of a space for some objectives.

    ``rules`` has why the space or the configs refuse a point, ``bounds`` what each other point is
    worth at best, ``estimated`` what the analytic model says of those that it was asked for.
    """

    def __init__(self, space: Space, evaluations: Evaluations, objectives: Sequence[str]) -> None:
        self._space, self.evaluations, self.objectives = space, evaluations, tuple(objectives)
        self.rules: dict[Point, str] = {}
        self.bounds: dict[Point, Evaluation] = {}
        self.estimated: dict[Point, Evaluation] = {}

    @property
    def space(self) -> Space:
        """The space of the points."""
        return self._space

    def optimistic(self, point: Point) -> Vector | None:
        """Objectives that no evaluation of a point goes below; None where it is no legal design."""
        if point in self.rules:
            return None
        if point not in self.bounds:
            try:
                config = self.space.design(point)
            except IllegalError as error:
                self.rules[point] = str(error)
                return None
            self.bounds[point] = self.evaluations.evaluator.bound(config)
        bound = self.bounds[point]
        return bound.vector(self.objectives) if bound.legal else None

    def estimates(self, points: Sequence[Point]) -> list[Vector]:
        """Objectives by the analytic model; infinity where no schedule fits."""
        new = [point for point in points if point not in self.estimated]
        configs = [self.space.design(point) for point in new]
        for position, outcomes in self.evaluations.estimates(configs):
            result = self.evaluations.evaluator.evaluation(configs[position], MODEL, outcomes)
            energy_uj = self.bounds[new[position]].energy_uj  # the model has none
            self.estimated[new[position]] = replace(result, energy_uj=energy_uj)
        return [self.estimated[point].vector(self.objectives) for point in points]

    def check(self) -> None:
        """Raises ExploreError where no point that was looked at is a legal design."""
        if any(bound.legal for bound in self.bounds.values()):
            return
        reasons = Counter(self.rules.values()) + refusals(self.bounds.values())
        if not reasons:
            raise ExploreError(
                f"space {self.space.name}: expected time for a design, found none was looked at; "
                "give --time more seconds"
            )
        why, count = reasons.most_common(1)[0]
        raise ExploreError(
            f"space {self.space.name}: expected a legal design, found none among "
            f"{len(self.rules) + len(self.bounds)} points; {count} of them: {why}"
        )


def refusals(evaluations: Iterable[Evaluation]) -> Counter[str]:
    """Number of some evaluations that each reason refused; of several reasons the first counts."""
    return Counter(rule(each.reasons[0]) for each in evaluations if not each.legal)


def rule(reason: str) -> str:
    """A reason against a design without what was found there, so that equal ones can be counted."""
    reason = EXCESS.sub(r" over \1", reason)
    return reason.rpartition(", found ")[0] or reason
