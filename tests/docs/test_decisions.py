"""Decisions say when they were made and whether they stand, and name files that are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path, PurePath

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
ROOMS = {
    "isa", "sim", "hw", "compiler", "runtime", "boards", "explore", "vdla", "farm", "support",
    "tests", "benchmarks", "tools", "training", "examples", "docs",
}  # fmt: skip


@pytest.fixture(scope="module")
def tracked():
    """The files of the repository, and their folders."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    files = listed.stdout.split()
    return {*files, *(str(folder) for name in files for folder in PurePath(name).parents)}


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_date_and_status(path):
    title, _, status = path.read_text().splitlines()[:3]
    assert title.startswith(f"# {int(path.stem[:4])}. ")
    assert re.match(r"\d{4}-\d\d-\d\d, (accepted|superseded|rejected)", status)


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_no_dead_paths(path, tracked):
    names = re.findall(r"`([\w./-]+/[\w./-]*)`", path.read_text())
    paths = [name.rstrip("/") for name in names if name.split("/")[0] in ROOMS]
    assert [name for name in paths if name not in tracked] == []
