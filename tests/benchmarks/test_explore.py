"""benchmarks/explore.py: what it counts, on a made-up table; what it claims, on the real one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scripts import load_script

from vdla.explore.space import Space
from vdla.isa.config import load_config

explore = load_script("benchmarks/explore.py")
ROOT = Path(__file__).parents[2]


class Bounds:
    """A problem with bounds alone."""

    def __init__(self, exact):
        self.exact = exact
        self.space = Space(
            "made", load_config("tiny"), {"block_in": (1, 2, 3), "block_out": (1, 2)}
        )

    def optimistic(self, point):
        return tuple(0.8 * value for value in self.exact[point])


@pytest.fixture
def replay():
    exact = {
        (a, b): (1000.0 / (1 + a + b), 10.0 * (1 + a) * (1 + 2 * b))
        for a in range(3)
        for b in (0, 1)
    }
    return explore.Replay(Bounds(exact), exact, exact)


def test_a_curve_ends_with_all_of_the_hypervolume(replay):
    for name in explore.SEARCHERS:
        shares = explore.curve(replay, name, 1)
        assert list(np.diff(shares) >= -1e-12) == [True] * (len(shares) - 1)
        assert explore.ENOUGH <= shares[-1] <= 1.0 + 1e-12
        assert len(shares) <= 6


def test_what_is_needed_is_the_first_count_that_reaches_the_share():
    assert explore.needed([0.5, 0.98, 0.99, 1.0], 9) == 3
    assert explore.needed([0.5, 0.98], 9) == 9


def test_levels_are_compared_with_what_is_exact(replay):
    replay.model = {p: (1.1 * v[0], v[1]) for p, v in replay.exact.items()}
    replay.model[0, 0] = (np.inf, np.inf)
    replay.exact[0, 0] = (np.inf, np.inf)
    found = explore.fidelity(replay, 0)
    assert found["bound"] == pytest.approx([1.25, 1.25, 1.25])
    assert found["model"] == pytest.approx([1 / 1.1] * 3)
    assert (found["refused"], found["foreseen"]) == (1, 1)


def test_a_plot_is_written(replay, tmp_path):
    curves = {"random": [explore.curve(replay, "random", seed) for seed in range(3)]}
    explore.plot(curves, 6, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_guided_needs_few_simulations(tmp_path):
    """The claim of decision 52, on the bundled space, which is enumerated for it."""
    command = [sys.executable, "benchmarks/explore.py", "--json", "--cache", tmp_path / "log"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result["legal"] >= 300
    rows = {row["searcher"]: row for row in result["searchers"]}
    assert rows["guided"]["share"] <= 0.15
    assert rows["random"]["needed"] >= 3 * rows["guided"]["needed"]
