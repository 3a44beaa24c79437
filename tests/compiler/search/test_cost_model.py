"""Cost models over a space: what they learn from, and what they score."""

from __future__ import annotations

from math import inf

import numpy as np

from vdla.compiler.search import cost_model
from vdla.compiler.search.cost_model import CostModel, ModelKind, speed
from vdla.compiler.search.table import Features


class Mean(CostModel[Features]):
    """A score is minus the feature; keeps what it learned from."""

    def __init__(self, names, seed):
        self.names, self.seed, self.groups = names, seed, []

    def fit(self, groups):
        self.groups = [(seen.values[:, 0].tolist(), costs.tolist()) for seen, costs in groups]

    def score(self, seen):
        return -seen.values[:, 0]


class View:
    """A space of ten points, the last of which isn't legal."""

    def features(self, points):
        rows = [[p if p < 9 else np.nan] for p in points]
        return Features(("p",), np.array(rows, np.float64).reshape(-1, 1))

    def trees(self, points):
        raise NotImplementedError


KIND = ModelKind.of("mean", Mean, lambda shown, points: shown.features(points))


def test_other_spaces_come_before_the_one_that_is_searched():
    model = KIND.over(View(), 3, [(View(), np.array([5.0, 7.0]))])
    assert model.taught
    model.fit({})
    assert model.model.groups == [([0, 1], [5, 7])]
    model.fit({4: 1.0, 2: inf})
    assert model.model.groups == [([0, 1], [5, 7]), ([4, 2], [1, inf])]
    assert (model.model.names, model.model.seed) == (("p",), 3)
    assert not KIND.over(View(), 3, []).taught


def test_what_is_not_legal_has_no_score():
    scores = KIND.over(View(), 0, []).score([3, 9])
    assert scores[0] == -3
    assert np.isnan(scores[1])


def test_a_large_space_is_looked_at_in_parts(monkeypatch):
    monkeypatch.setattr(cost_model, "LOOKED_AT", 4)
    scores = KIND.over(View(), 0, []).score(range(10))
    assert scores[:9].tolist() == [-p for p in range(9)]
    assert np.isnan(scores[9])
    assert len(KIND.over(View(), 0, []).score([])) == 0


def test_speed_is_relative_to_the_fastest():
    assert speed(np.array([4.0, 2.0, inf])).tolist() == [0.5, 1, 0]
    assert speed(np.array([inf, inf])).tolist() == [0, 0]
