"""The language of the sources is plain, and places that aren't are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scripts import load_script

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "language.py"


@pytest.fixture(scope="module")
def language():
    return load_script("tools/language.py")


def test_the_sources_are_plain():
    command = [sys.executable, SCRIPT, "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == (
        "0 leaning docstrings, 0 docstrings that ask, 0 names that say nothing\n"
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("source", "kind", "line"),
    [
        ('"""As the other one."""\n', "docstring", 1),
        ('def f():\n    """Its size."""\n', "docstring", 2),
        ('"""What a tile takes."""\n', "question", 1),
        ('class C:\n    """How a tile is cut."""\n', "question", 2),
        ('def f():\n    """Where it lies."""\n', "question", 2),
        ('def f():\n    """Why it fails."""\n', "question", 2),
        ("class C:\n    def f(self):\n        found = 1\n", "name", 3),
        ("def f(told):\n    return told\n", "name", 1),
        ("for there in range(3):\n    pass\n", "name", 1),
        ("match x:\n    case [1, *those]:\n        pass\n", "name", 2),
        ('"""Asks nobody. Those of others, it is."""\nx.found = 1\n', "", 0),
        ('"""Whether it fits."""\n"""What."""\n', "", 0),
        ('"""However it is cut; what is left."""\n', "", 0),
        ('"""Iterates; its own."""\nprint("found")\n', "", 0),
    ],
)
def test_places_are_named(language, tmp_path, source, kind, line):
    path = tmp_path / "a.py"
    path.write_text(source)
    places = [each[:2] for each in language.problems(path, "compiler/a.py")]
    assert places == ([(kind, line)] if kind else [])


def test_signals_keep_their_names(language, tmp_path):
    path = tmp_path / "a.py"
    path.write_text("there = 1\n")
    assert list(language.problems(path, "hw/a.py")) == []
