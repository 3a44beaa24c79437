"""XGBoost as a cost model: gradient-boosted trees that rank candidates by their features.

Its pairwise objective learns which of two candidates of one space costs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vdla.compiler.search.cost_model import CostModel, ModelKind, speed
from vdla.compiler.search.points import Floats
from vdla.compiler.search.table import Features
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


class Ranker(CostModel[Features]):
    """Boosted trees over features of some names; of those that a group lacks nothing is known.

    Raises:
        TuneDependencyError: XGBoost is not installed.
    """

    def __init__(self, names: Sequence[str], seed: int) -> None:
        self.xgboost = load_xgboost()
        self.names, self.seed = tuple(names), seed
        self.booster: Any = None

    def fit(self, groups: Sequence[tuple[Features, Floats]]) -> None:
        """Learns from groups of (candidates, costs); infinity for an illegal one."""
        rows = np.concatenate([seen.columns(self.names) for seen, _ in groups])
        label = np.concatenate([speed(costs) for _, costs in groups])
        data = self.xgboost.DMatrix(rows, label=label, feature_names=list(self.names))
        data.set_group([len(costs) for _, costs in groups])
        self.booster = self.xgboost.train({**PARAMETERS, "seed": self.seed}, data, ROUNDS)

    def score(self, seen: Features) -> Floats:
        """Scores of candidates [candidates]."""
        rows = seen.columns(self.names)
        data = self.xgboost.DMatrix(rows, feature_names=list(self.names))
        scores: Floats = self.booster.predict(data).astype(np.float64)
        return scores


def load_xgboost() -> Any:
    """The package, imported when it is first needed."""
    try:
        import xgboost
    except ImportError:
        raise TuneDependencyError(
            "--cost-model xgboost: expected the package xgboost, found none; "
            f"{pip_install('tune')}, or choose --cost-model tree"
        ) from None
    return xgboost


XGBOOST = ModelKind.of("xgboost", Ranker, lambda shown, points: shown.features(points))
