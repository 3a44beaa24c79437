"""Optuna's samplers as searchers: NSGA-II (Deb et al., 2002) and, for several objectives, the
tree-structured Parzen estimator (Ozaki et al., 2022)."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from vdla.explore.searchers import Problem, Searcher, Vector
from vdla.explore.space import Point
from vdla.support.errors import UserError
from vdla.support.install import pip_install

if TYPE_CHECKING:
    from types import ModuleType

ASKED = 16  # times that a sampler may ask for nothing new until points are drawn at random


class ExploreDependencyError(UserError, ImportError):
    """Optuna isn't installed."""


class OptunaSearcher(Searcher):
    """Points that a sampler of Optuna's asks for, as positions in each parameter's values.

    Raises:
        ExploreDependencyError: Optuna is not installed.
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self.optuna = load_optuna()
        self.study: Any = None  # made with the first proposal: by then the objectives are known
        self.asked: dict[Point, Any] = {}
        self.seed = seed
        space = problem.space
        self.ranges = {
            name: self.optuna.distributions.IntDistribution(0, count - 1)
            for name, count in zip(space.parameters, space.shape, strict=True)
        }

    @abstractmethod
    def sampler(self) -> Any:
        """The sampler of a new study."""

    def update(self, values: Mapping[Point, Vector]) -> None:
        """Tells the study, too."""
        for point in values.keys() - self.values.keys():
            self._tell(point, values[point])
        super().update(values)

    def _choose(self, count: int) -> Iterator[Point]:
        for _ in range(ASKED):
            trial = self._study().ask(self.ranges)
            point = tuple(trial.params[name] for name in self.ranges)
            if self.problem.optimistic(point) is None or not self._finite(point):
                self._study().tell(trial, state=self.optuna.trial.TrialState.FAIL)
            elif point in self.values:
                self._study().tell(trial, list(self.values[point]))
            elif point in self.asked:
                self._study().tell(trial, state=self.optuna.trial.TrialState.FAIL)
            else:
                self.asked[point] = trial
                yield point
        yield from self._random()

    def _finite(self, point: Point) -> bool:
        return all(map(isfinite, self.values.get(point, ())))

    def _tell(self, point: Point, vector: Vector) -> None:
        """Says what a design is worth, whoever asked for it; illegal ones failed."""
        state = self.optuna.trial.TrialState
        legal = all(map(isfinite, vector))
        if point in self.asked:
            how = {"values": list(vector)} if legal else {"state": state.FAIL}
            self._study(vector).tell(self.asked.pop(point), **how)
        elif legal:
            params = dict(zip(self.ranges, point, strict=True))
            made = self.optuna.trial.create_trial(
                values=list(vector), params=params, distributions=self.ranges
            )
            self._study(vector).add_trial(made)

    def _study(self, vector: Vector | None = None) -> Any:
        if self.study is None:
            count = len(vector or self._example())
            self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", self.optuna.exceptions.ExperimentalWarning)
                self.study = self.optuna.create_study(
                    directions=["minimize"] * count, sampler=self.sampler()
                )
        return self.study

    def _example(self) -> Vector:
        """The objectives of some design."""
        vectors = map(self.problem.optimistic, self._random())
        return next((vector for vector in vectors if vector is not None), (0.0,))


class OptunaNsga2(OptunaSearcher):
    """NSGA-II."""

    def sampler(self) -> Any:
        """Optuna's NSGA-II with its defaults but for the population."""
        return self.optuna.samplers.NSGAIISampler(population_size=24, seed=self.seed)


class OptunaTpe(OptunaSearcher):
    """The tree-structured Parzen estimator."""

    def sampler(self) -> Any:
        """Optuna's estimator with its defaults, for parameters together."""
        return self.optuna.samplers.TPESampler(seed=self.seed, multivariate=True)


def load_optuna() -> ModuleType:
    """The package.

    Raises:
        ExploreDependencyError: it isn't there.
    """
    try:
        import optuna
    except ImportError:
        raise ExploreDependencyError(
            "--searcher optuna-…: expected the package optuna, found none; "
            f"{pip_install('explore')}, or choose guided, nsga2, random or bound"
        ) from None
    module: ModuleType = optuna
    return module
