"""The recipes of CONTRIBUTING.md: each one's diff applies, and its tests pass then."""

from __future__ import annotations

import re

import pytest
from recipes import ROOT, apply, changed_tests, command, copy_sources, diffs

DOCUMENT = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = dict(re.findall(r"^## Add (an? \w+)\n(.*?)(?=^## |\Z)", DOCUMENT, re.M | re.S))
TUTORIAL = (ROOT / "docs" / "microarchitecture.md").read_text()


def diff_of(recipe: str) -> str:
    """What following a recipe changes; that of an instruction begins with the tutorial."""
    before = diffs(TUTORIAL) if recipe == "an instruction" else ""
    return "\n".join((before, diffs(RECIPES[recipe])))


def test_there_are_four():
    assert list(RECIPES) == ["an instruction", "an operator", "a board", "a pass"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_diff_applies(recipe, tmp_path):
    done = apply(copy_sources(tmp_path), diff_of(recipe), "--check")
    assert done.returncode == 0, f"CONTRIBUTING.md, {recipe}: make its diff again\n{done.stderr}"


@pytest.mark.parametrize(
    "recipe",
    [
        *(pytest.param(name, marks=pytest.mark.long) for name in ("an operator", "a board")),
        "a pass",
    ],
)
def test_it_works(recipe, tmp_path):
    follow(recipe, tmp_path)


@pytest.mark.long
def test_an_instruction_works(tmp_path):
    follow("an instruction", tmp_path)


def follow(recipe, folder):
    """Applies a recipe's diff and runs the tests that it adds or changes."""
    sources, diff = copy_sources(folder), diff_of(recipe)
    assert apply(sources, diff).returncode == 0
    tests = changed_tests(sources, diffs(RECIPES[recipe]))
    assert tests
    done = command(sources, "pytest", "-q", "-m", "not long", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout
