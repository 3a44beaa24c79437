"""What decision 25 promised of the sources stays so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def house():
    done = subprocess.run(
        [sys.executable, "benchmarks/house.py", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_no_file_is_too_long_to_read(house):
    assert house["largest"] <= 450
    assert house["median"] <= 120


def test_no_function_takes_a_crowd(house):
    assert house["many_parameters"] == []
    assert len(house["many_parameters_numba"]) <= 1


def test_what_is_public_is_documented_and_operators_are_typed(house):
    assert house["undocumented"] == 0
    assert house["any_in_operators"] <= 10
