"""The site is built without a warning: each link leads somewhere, each name of the API is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scripts import load_script

ROOT = Path(__file__).parents[2]
pages = load_script("tools/pages.py")


def test_no_warnings(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "dummy"]
    done = subprocess.run(
        [*command, "-d", tmp_path / "doctrees", "docs", tmp_path / "site"],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", pages.PAGES)
def test_generated_pages_are_current(name):
    assert (ROOT / name).read_text() == pages.PAGES[name]()
