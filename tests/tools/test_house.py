"""The figures of the house keep their bounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import load_script

ROOT = Path(__file__).parents[2]
house_bounds = load_script("tools/house_bounds.py")
BOUNDS = house_bounds.in_force(house_bounds.read(house_bounds.PATH.read_text()))


@pytest.fixture(scope="module")
def house():
    done = subprocess.run(
        [sys.executable, "tools/house.py", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_figure_keeps_its_bound(house, name):
    """One above it needs an entry in tools/house.toml: a value, a date and a reason."""
    assert house_bounds.number(house, name) <= BOUNDS[name], house.get(name)


@pytest.mark.long
def test_without_ruff_it_says_so_in_a_line(tmp_path):
    (tmp_path / "ruff.py").write_text("raise SystemExit('no ruff')")
    done = subprocess.run(
        [sys.executable, "tools/house.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "house: expected ruff, found none; install with: pip install ruff\n"
