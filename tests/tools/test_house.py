"""What decision 25 promised of the sources stays so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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


def test_no_file_is_too_long_to_read(house):
    assert house["largest"] <= 450
    assert house["median"] <= 120
    assert house["longest_class_of_hw"] <= 200


def test_the_top_is_a_picture_that_one_sees_at_once(house):
    # New on 2026-11-28, when vdla/ became rooms (decision 59): 18 and 81 then, 31 and 172 before.
    assert house["top"]["rooms"] <= 18
    assert house["top"]["arrows"] <= 90


def test_no_function_takes_a_crowd(house):
    assert house["many_parameters"] == []
    assert len(house["many_parameters_numba"]) <= 1


def test_what_is_public_is_documented_and_operators_are_typed(house):
    assert house["undocumented"] == 0
    assert sum(house["any"].values()) <= 170  # 417 at 113275e


def test_an_operator_stays_in_few_files(house):
    """Of the accelerator's, the newest one; of the processor's algorithms, those that are one."""
    files = house["files_per_operator"]
    assert files["QMultiply"] <= 3
    assert [files[name] for name in ("Winograd", "Depthwise", "FloatProduct")] == [2, 2, 2]
    assert len(house["convolutions"]) <= 20


def test_a_compilation_visits_few_rooms(house):
    assert house["compile"]["rooms"] <= 15
    assert house["compile"]["returns"] <= 66


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
