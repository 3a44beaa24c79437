"""XGBoost as a cost model."""

from __future__ import annotations

import numpy as np

from vdla.compiler.search.ranker import Ranker
from vdla.compiler.search.table import Features

NAMES = ("a", "b", "c")


def test_it_orders_within_groups_alone():
    rows = Features(NAMES, np.random.default_rng(0).random((40, 3)))
    fast = rows.values[:, 0] + 1  # on one machine, and on one far slower
    ranker = Ranker(NAMES, 0)
    ranker.fit([(rows, fast), (rows, 1000 * fast)])
    assert np.corrcoef(ranker.score(rows), -rows.values[:, 0])[0, 1] > 0.9


def test_a_group_may_lack_features():
    rows = Features(NAMES, np.random.default_rng(0).random((40, 3)))
    fewer = Features(NAMES[:1], rows.values[:, :1])
    ranker = Ranker(NAMES, 0)
    ranker.fit([(fewer, rows.values[:, 0] + 1)])
    assert np.corrcoef(ranker.score(rows), -rows.values[:, 0])[0, 1] > 0.9
