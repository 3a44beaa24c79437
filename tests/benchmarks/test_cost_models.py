"""Figures of the comparison of cost models: correlations, trials, and a run from its cache."""

from __future__ import annotations

import sys
from math import inf, isnan

import numpy as np
import pytest
from scripts import load_script

from vdla.compiler import tree_rnn

benchmark = load_script("benchmarks/cost_models.py")


def test_correlation_is_of_ranks_and_equal_values_share_theirs():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    assert benchmark.spearman(values, values**3) == pytest.approx(1)
    assert benchmark.spearman(values, -values) == pytest.approx(-1)
    ties = np.array([1.0, 2.0, 2.0, 3.0])  # ranks 1, 2.5, 2.5, 4
    assert benchmark.spearman(values, ties) == pytest.approx(4.5 / np.sqrt(5 * 4.5))
    assert isnan(benchmark.spearman(values, np.ones(4)))


def test_trials_until_a_search_is_near_the_best():
    assert benchmark.trials_to(0.95, [200, 106, 105, 100], 100) == 3
    assert benchmark.trials_to(0.98, [200, 106, 105, 100], 100) == 4
    assert benchmark.trials_to(0.95, [200, 106], 100) == inf


@pytest.mark.long
def test_a_run_measures_nothing_twice(tmp_path, monkeypatch, capsys):
    cache, picture = tmp_path / "log", tmp_path / "curves.svg"
    monkeypatch.setattr(benchmark, "OWN", (8, 16))
    monkeypatch.setattr(tree_rnn, "STEPS", 10)
    command = f"cost_models.py --cache {cache} --networks digits --layers 2 --trials 16 --seeds 1"
    more = f"--samples 24 --searchers random,xgboost,tree+floor --plot {picture}"
    monkeypatch.setattr(sys, "argv", [*command.split(), *more.split()])
    benchmark.main()
    first, shown = cache.read_bytes(), capsys.readouterr().out
    assert "TreeRNN, low floors" in shown
    assert "digits conv2" in shown
    benchmark.main()
    assert cache.read_bytes() == first
    assert "best found / best known" in picture.read_text()
