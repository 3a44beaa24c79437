"""The recipes of docs/recipes: each one's diff applies, and the tests that it adds pass then."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from recipes import ROOT, apply, changed, command, copy_sources, diffs

from vdla.isa.config import load_config
from vdla.isa.manual import header

FOLDER = ROOT / "docs" / "recipes"
RECIPES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.md"))}
TUTORIAL = (ROOT / "docs" / "microarchitecture.md").read_text()
SLOW = ("board", "engine", "instruction", "option")


def to_follow(*quick: str):
    """A parameter for all recipes; the tests of all but ``quick`` are long."""
    marked = [pytest.param(n, marks=() if n in quick else pytest.mark.long) for n in RECIPES]
    return pytest.mark.parametrize("recipe", marked)


def diffs_of(recipe: str) -> list[str]:
    """What following a recipe changes; an instruction's begins with the tutorial's diffs."""
    before = diffs(TUTORIAL) if recipe == "instruction" else []
    return [*before, *diffs(RECIPES[recipe])]


def test_contributing_lists_all_of_them_and_is_short():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert sorted(RECIPES) == [
        "board", "engine", "instruction", "operator", "option", "pass", "processor_algorithm",
        "target",
    ]  # fmt: skip
    assert [name for name in RECIPES if f"docs/recipes/{name}.md" not in text] == []
    assert len(text.splitlines()) <= 120


def sources_for(recipe: str, folder: Path) -> Path:
    """A copy of the sources without what a recipe has its reader take out first."""
    sources = copy_sources(folder)
    for line in re.findall(r"^git rm -q (.+)$", RECIPES[recipe], re.MULTILINE):
        for name in line.split():
            (sources / name).unlink()
    return sources


def followed(recipe: str, folder: Path) -> Path:
    """A copy of the sources, changed as a recipe says."""
    sources = sources_for(recipe, folder)
    done = apply(sources, diffs_of(recipe))
    assert done.returncode == 0, done.stderr
    return sources


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_diff_applies(recipe, tmp_path):
    """Each by itself, behind those before it."""
    done = apply(sources_for(recipe, tmp_path), diffs_of(recipe))
    assert done.returncode == 0, f"{FOLDER}/{recipe}.md: make its diff again\n{done.stderr!r}"


@to_follow(*(name for name in RECIPES if name not in SLOW))
def test_it_works(recipe, tmp_path):
    sources = followed(recipe, tmp_path)
    tests = changed(sources, diffs(RECIPES[recipe]), "tests/")
    tests = [path for path in tests if "/lockstep/" not in path]  # long: Verilator compiles the RTL
    assert tests
    done = command(sources, "pytest", "-q", "-m", "not long", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_lockstep_reaches_all_of_an_engine_and_finds_faults_in_it(tmp_path):
    sources = followed("engine", tmp_path)
    tests = changed(sources, diffs(RECIPES["engine"]), "tests/lockstep/")
    done = command(sources, "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout


@to_follow(*RECIPES)
def test_it_is_in_our_style(recipe, tmp_path):
    sources = followed(recipe, tmp_path)
    files = changed(sources, diffs_of(recipe))
    for task in (("check",), ("format", "--check")):
        done = command(sources, "ruff", *task, "--no-cache", *files)
        assert done.returncode == 0, done.stdout


@to_follow()
def test_its_types_are_right(recipe, tmp_path):
    sources = followed(recipe, tmp_path)
    done = command(sources, "mypy", "--config-file", str(sources / "pyproject.toml"), "-p", "vdla")
    assert done.returncode == 0, done.stdout


def test_what_an_operator_takes_out_comes_back_as_it_was(tmp_path):
    """Without it networks compile; the diff has the very files of the tree."""
    sources = sources_for("operator", tmp_path)
    script = "import vdla; print(vdla.compile('digits', 'tiny').accelerated)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=sources / "import", capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(sources / "import")},
    )  # fmt: skip
    assert done.stdout == "True\n", done.stderr
    assert apply(sources, diffs_of("operator")).returncode == 0
    for name in changed(sources, diffs(RECIPES["operator"])):
        assert (sources / name).read_text() == (ROOT / name).read_text()


def test_an_engine_is_in_the_manual_and_no_config_without_it_changes(tmp_path):
    sources = followed("engine", tmp_path)
    manual = command(sources, "vdla", "isa", "doc", "-c", "tiny", "--set", "fill_engine=1")
    assert "### FILL (opcode 5)" in manual.stdout, manual.stderr
    assert "`FILL_BANK` | ro | cycles FILL spent: bank" in manual.stdout
    same = command(sources, "vdla", "isa", "header", "-c", "tiny")
    assert same.stdout == header(load_config("tiny")), same.stderr
