"""Optuna's samplers as searchers; what all searchers hold to is in test_searchers.py."""

from __future__ import annotations

import sys

import pytest

from vdla.explore.optuna import ExploreDependencyError
from vdla.explore.registry import make_searcher
from vdla.support.install import pip_install


@pytest.mark.parametrize("name", ["optuna-nsga2", "optuna-tpe"])
def test_without_optuna_one_line_says_what_to_install(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ExploreDependencyError) as caught:
        make_searcher(name)
    assert str(caught.value) == (
        "--searcher optuna-…: expected the package optuna, found none; "
        f"{pip_install('explore')}, or choose guided, nsga2, random or bound"
    )
