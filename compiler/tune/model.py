"""The learned cost model: gradient-boosted trees that rank candidates.

XGBoost's pairwise objective learns which of two candidates of one workload is faster. Cycles of
different layers and machines are never compared with one another, so their records can be learned
from together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.support.errors import UserError

Floats = NDArray[np.float64]
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
    """Ranks candidates by their features; a higher score is a faster candidate.

    Raises:
        TuneDependencyError: XGBoost is not installed.
    """

    def __init__(self, names: Sequence[str], seed: int) -> None:
        self.xgboost = load_xgboost()
        self.names, self.seed = list(names), seed
        self.booster: Any = None

    def fit(self, groups: Sequence[tuple[Floats, Floats]]) -> None:
        """Learns from groups of (features [n, features], cycles [n]); inf for an illegal one."""
        rows = np.concatenate([x for x, _ in groups])
        speed = np.concatenate([_speed(cycles) for _, cycles in groups])
        data = self.xgboost.DMatrix(rows, label=speed, feature_names=self.names)
        data.set_group([len(cycles) for _, cycles in groups])
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
            "pip install 'vdla[tune]', or choose random, grid or genetic"
        ) from None
    return xgboost


def _speed(cycles: Floats) -> Floats:
    """Relevance of each candidate: the group's best cycles over its own."""
    finite = cycles[np.isfinite(cycles)]
    return finite.min() / cycles if finite.size else np.zeros(len(cycles))
