"""Searchers by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vdla.explore.errors import ExploreError
from vdla.explore.guided import GuidedSearcher
from vdla.explore.optuna import OptunaNsga2, OptunaTpe, load_optuna
from vdla.explore.searchers import (
    BoundSearcher,
    Nsga2Searcher,
    Problem,
    RandomSearcher,
    Searcher,
)

GUIDED = "guided"
SEARCHERS: Mapping[str, Callable[[Problem, int], Searcher]] = {
    GUIDED: GuidedSearcher,
    "nsga2": Nsga2Searcher,
    "random": RandomSearcher,
    "bound": BoundSearcher,
    "optuna-nsga2": OptunaNsga2,
    "optuna-tpe": OptunaTpe,
}


def make_searcher(name: str) -> Callable[[Problem, int], Searcher]:
    """Function that makes a searcher of a problem and a seed.

    Raises:
        ExploreError: there is no searcher of that name.
        ExploreDependencyError: it needs Optuna, which isn't installed.
    """
    if name not in SEARCHERS:
        known = ", ".join(SEARCHERS)
        raise ExploreError(f"--searcher: expected one of {known}, found {name}")
    if name.startswith("optuna-"):
        load_optuna()
    return SEARCHERS[name]
