"""A bound of the house moves by a new entry with a date and a reason, and in no other way."""

from __future__ import annotations

import subprocess
from itertools import pairwise

import pytest
from scripts import load_script

bounds = load_script("tools/house_bounds.py")
FIRST = '{ value = 15, date = 2026-11-25, reason = "new" }'
SECOND = '{ value = 16, date = 2026-11-26, reason = "one more" }'


def mistakes(*entries):
    return bounds.mistakes(bounds.read(f"a = [{', '.join(entries)}]"))


def rewritten(before, after):
    return bounds.rewritten(*(bounds.read(f"a = [{', '.join(each)}]") for each in (before, after)))


def test_every_entry_of_the_house_has_a_value_a_date_and_a_reason():
    assert bounds.mistakes(bounds.read(bounds.PATH.read_text())) == []


def test_no_entry_of_the_house_was_rewritten():
    versions = bounds.versions()
    if versions is None:
        pytest.skip("these sources have no history")
    read = [bounds.read(text) for text in versions]
    assert [line for pair in pairwise(read) for line in bounds.rewritten(*pair)] == []


@pytest.mark.parametrize(("entry", "mistake"), [
    ('{ value = 16, date = 2026-11-26, reason = " " }', "expected a reason in one line, found ' '"),
    ("{ value = 16, date = 2026-11-26 }", "expected a reason in one line, found None"),
    ('{ value = 16, reason = "one more" }', "expected a date, as 2026-11-29, found None"),
    (
        '{ value = 16, date = "2026-11-26", reason = "one more" }',
        "expected a date, as 2026-11-29, found '2026-11-26'",
    ),
    (
        '{ value = 16, date = 2026-11-24, reason = "one more" }',
        "expected a date from 2026-11-25 on, found 2026-11-24",
    ),
    (
        '{ value = "16", date = 2026-11-26, reason = "one more" }',
        "expected a number as value, found '16'",
    ),
    (
        '{ valve = 16, date = 2026-11-26, reason = "one more" }',
        "expected value, date and reason, found valve, date, reason",
    ),
])  # fmt: skip
def test_an_entry_that_is_none(entry, mistake):
    assert mistakes(FIRST, SECOND) == []
    assert mistakes(FIRST, entry) == [f"a: entry 2: {mistake}"]


def test_the_last_entry_is_in_force_and_may_end_a_bound():
    end = '{ date = 2026-11-27, reason = "the figure went" }'
    assert bounds.in_force(bounds.read(f"a = [{FIRST}, {SECOND}]")) == {"a": 16}
    assert bounds.in_force(bounds.read(f"a = [{FIRST}, {end}]")) == {}
    assert mistakes(FIRST, end) == []
    assert mistakes(end) == ["a: entry 1: expected a value, since there is no bound yet to end"]


def test_a_bound_moves_by_an_entry_more():
    assert rewritten([FIRST], [FIRST]) == rewritten([FIRST], [FIRST, SECOND]) == []
    assert rewritten([FIRST], [SECOND]) == [
        "a: entry 1: expected 15 of 2026-11-25 (new), as it was, "
        "found 16 of 2026-11-26 (one more); add an entry instead"
    ]
    assert rewritten([FIRST, SECOND], [FIRST]) == [
        "a: entry 2: expected 16 of 2026-11-26 (one more), as it was, found none; "
        "add an entry instead"
    ]
    assert len(bounds.rewritten(bounds.read(f"a = [{FIRST}]"), bounds.read(""))) == 1


def test_a_figure_is_a_number_a_length_or_a_sum():
    figures = {"a": 3, "b": [1, 1], "c": {"x": 2, "y z": 5, "list": [0]}}
    names = ("a", "b", "c.x", "c.y z", "c.list")
    assert [bounds.number(figures, name) for name in names] == [3, 2, 2, 5, 1]
    assert bounds.number({"any": {"x": 2, "y": 5}}, "any") == 7


def test_the_versions_of_a_branch_with_a_merge(tmp_path, monkeypatch):
    """Of a merge, what it brought to the branch."""

    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def commit(text):
        path.write_text(text)
        git("add", ".")
        git("commit", "-m", text)

    path = tmp_path / "tools" / "house.toml"
    path.parent.mkdir()
    monkeypatch.setattr(bounds, "ROOT", tmp_path)
    monkeypatch.setattr(bounds, "PATH", path)
    assert bounds.versions() is None
    git("init", "-b", "main")
    commit("1")
    git("checkout", "-b", "other")
    commit("2")
    commit("3")
    git("checkout", "main")
    git("merge", "--no-ff", "other")
    path.write_text("4")
    assert bounds.versions() == ["1", "3", "4"]
