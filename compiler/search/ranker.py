"""The learned cost model: gradient-boosted trees that rank candidates.

XGBoost's pairwise objective learns which of two candidates of one space costs less. Costs of
different spaces, such as layers on several machines, are never compared with one another, so their
records can be learned from together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vdla.compiler.search.points import Floats
from vdla.support.errors import UserError
from vdla.support.install import pip_install

ROUNDS = 60
PARAMETERS = {
    "objective": "rank:pairwise",
    "lambdarank_pair_method": "mean",
    "lambdarank_num_pair_per_sample": 8,
    "max_depth": 3,
    "eta": 0.3,
    "gamma": 1e-4,
    "min_child_weight": 1,
    "nthread": 1,  # small data: more threads only wait for one another
    "verbosity": 0,
}


class TuneDependencyError(UserError, ImportError):
    """XGBoost isn't installed."""


class Ranker:
    """Ranks candidates by their features; a higher score is a candidate that costs less.

    Raises:
        TuneDependencyError: XGBoost is not installed.
    """

    def __init__(self, names: Sequence[str], seed: int) -> None:
        self.xgboost = load_xgboost()
        self.names, self.seed = list(names), seed
        self.booster: Any = None

    def fit(self, groups: Sequence[tuple[Floats, Floats]]) -> None:
        """Learns from groups of (features [n, features], costs [n]); inf for an illegal one."""
        rows = np.concatenate([x for x, _ in groups])
        speed = np.concatenate([_speed(costs) for _, costs in groups])
        data = self.xgboost.DMatrix(rows, label=speed, feature_names=self.names)
        data.set_group([len(costs) for _, costs in groups])
        self.booster = self.xgboost.train({**PARAMETERS, "seed": self.seed}, data, ROUNDS)

    def score(self, rows: Floats) -> Floats:
        """Scores [n] of features [n, features]."""
        data = self.xgboost.DMatrix(rows, feature_names=self.names)
        scores: Floats = self.booster.predict(data).astype(np.float64)
        return scores


def load_xgboost() -> Any:
    """The package, imported when it is first needed."""
    try:
        import xgboost
    except ImportError:
        raise TuneDependencyError(
            "--searcher xgboost: expected the package xgboost, found none; "
            f"{pip_install('tune')}, or choose random, grid or genetic"
        ) from None
    return xgboost


def _speed(costs: Floats) -> Floats:
    """Relevance of each candidate: the group's least cost over its own."""
    finite = costs[np.isfinite(costs)]
    return finite.min() / costs if finite.size else np.zeros(len(costs))
