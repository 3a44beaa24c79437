"""The recipes of docs/recipes: each one's diff applies, and the tests that it adds pass then."""

from __future__ import annotations

import pytest
from recipes import ROOT, apply, changed_tests, command, copy_sources, diffs

FOLDER = ROOT / "docs" / "recipes"
RECIPES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.md"))}
TUTORIAL = (ROOT / "docs" / "microarchitecture.md").read_text()
SLOW = ("board", "instruction")
FOLLOWED = ("operator",)  # what they add is in the tree


def diff_of(recipe: str) -> str:
    """What following a recipe changes; an instruction's begins with the tutorial's diff."""
    before = diffs(TUTORIAL) if recipe == "instruction" else ""
    return "\n".join((before, diffs(RECIPES[recipe])))


def test_contributing_lists_all_of_them_and_is_short():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert sorted(RECIPES) == [
        "board", "instruction", "operator", "pass", "processor_algorithm", "target",
    ]  # fmt: skip
    assert [name for name in RECIPES if f"docs/recipes/{name}.md" not in text] == []
    assert len(text.splitlines()) <= 120


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_diff_applies(recipe, tmp_path):
    options = ("--check", "--reverse") if recipe in FOLLOWED else ("--check",)
    done = apply(copy_sources(tmp_path), diff_of(recipe), *options)
    assert done.returncode == 0, f"{FOLDER}/{recipe}.md: make its diff again\n{done.stderr!r}"


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(name, marks=pytest.mark.long if name in SLOW else ())
        for name in RECIPES
        if name not in FOLLOWED
    ],
)
def test_it_works(recipe, tmp_path):
    sources = copy_sources(tmp_path)
    assert apply(sources, diff_of(recipe)).returncode == 0
    tests = changed_tests(sources, diffs(RECIPES[recipe]))
    assert tests
    done = command(sources, "pytest", "-q", "-m", "not long", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout
