"""Every example runs as a user runs it, is short, and prints the figures the tutorial quotes."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()


@cache
def output(path):
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_the_tutorial_quotes(path):
    assert output(path).rstrip() in TUTORIAL


def test_the_tutorial_has_every_example_and_all_are_short():
    assert len(EXAMPLES) == 6
    for path in EXAMPLES:
        assert f"examples/{path.name}" in TUTORIAL
        schedules = 3 if path.stem == "three_targets" else 1
        assert len(path.read_text().splitlines()) <= 30 + 10 * schedules
    assert len((ROOT / "examples" / "matmul.py").read_text().splitlines()) <= 25


def test_the_product_reaches_95_percent_of_its_bound_by_primitives_alone():
    steps = re.findall(r"([\d,]+) cycles +([\d.]+)%", output(ROOT / "examples" / "matmul_steps.py"))
    cycles = [int(n.replace(",", "")) for n, _ in steps]
    assert len(cycles) == 5
    assert cycles == sorted(cycles, reverse=True)
    assert 256**3 / 256 / cycles[-1] >= 0.95
