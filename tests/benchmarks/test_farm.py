"""A farm loses no job while its parts are killed, and a second worker pays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def figures():
    done = subprocess.run(
        [sys.executable, "benchmarks/farm.py", "--json"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
def test_a_thousand_jobs_outlive_killed_workers_and_a_killed_scheduler(figures):
    losses = figures["losses"]
    assert (losses["jobs"], losses["results"], losses["different_results"]) == (1000, 1000, 1000)
    assert losses["workers_killed"] >= 5
    assert losses["times_ideal"] <= 1.5


@pytest.mark.long
def test_a_second_worker_pays(figures):
    """Jobs that sleep show what the farm costs; whether two processors are free it can't know."""
    assert figures["speedup_of_waiting"] >= 1.7
    assert figures["jobs_per_second"] >= 500
