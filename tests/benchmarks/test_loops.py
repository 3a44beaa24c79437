"""benchmarks/loops.py: its networks are right, and vdla's own but for one; no times."""

from __future__ import annotations

import numpy as np
import pytest
from scripts import load_script

loops = load_script("benchmarks/loops.py")


@pytest.fixture(autouse=True)
def one_round(monkeypatch):
    monkeypatch.setattr(loops, "ROUNDS", 1)


@pytest.mark.parametrize("name", loops.NETWORKS)
def test_networks(name):
    apart, _, theirs = loops.measured(*loops.NETWORKS[name](np.random.default_rng(loops.SEED)))
    assert apart <= 1e-4
    assert bool(theirs) == (name == "detections")


def test_command(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["loops.py", "choices"])
    monkeypatch.setenv("COLUMNS", "100")
    loops.main()
    out = capsys.readouterr().out
    assert "its steps" in out
    assert "choices" in out
