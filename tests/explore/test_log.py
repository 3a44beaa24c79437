"""Logs of evaluations: whole lines, several writers, and what is refused."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from vdla.explore.errors import ExploreError
from vdla.explore.log import EvaluationLog, Key, Line

KEY = Key("space", "networks", "table", "sources", "0.1.0")
RUN = {"cycles": 7, "refusal": "", "layers": {"conv1": 7}}


def line(*point, level="exact"):
    return Line(point, level, {"digits": RUN})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log"


def test_lines_come_back(path):
    with EvaluationLog(path, KEY) as log:
        log.append(line(0, 1))
        log.append(line(0, 1, level="tuned"))
    with EvaluationLog(path, KEY) as log:
        assert log.lines == {
            ((0, 1), "exact"): line(0, 1), ((0, 1), "tuned"): line(0, 1, level="tuned"),
        }  # fmt: skip


def test_several_append(path):
    def write(number):
        with EvaluationLog(path, KEY) as log:
            for each in range(20):
                log.append(line(number, each))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    with EvaluationLog(path, KEY) as log:
        assert len(log.lines) == 80
        assert len(path.read_bytes().splitlines()) == 80


def test_others_lines_are_seen(path):
    with EvaluationLog(path, KEY) as one, EvaluationLog(path, KEY) as other:
        other.append(line(1))
        one.append(line(2))
        assert set(one.lines) == {((1,), "exact"), ((2,), "exact")}
        assert set(other.lines) == {((1,), "exact")}
        other.refresh()
        assert other.lines == one.lines


def test_what_a_kill_cut_off_is_removed(path):
    with EvaluationLog(path, KEY) as log:
        log.append(line(1))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:30])
    with EvaluationLog(path, KEY) as log:
        assert len(log.lines) == 1
        log.append(line(2))
    assert path.read_bytes() == whole + line(2).to_bytes(KEY)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (replace(KEY, space="mine"), "another space (space, not mine)"),
        (replace(KEY, networks="mine"), "other networks (networks, not mine)"),
        (replace(KEY, energy="mine"), "another table of energy (table, not mine)"),
        (replace(KEY, sources="mine"), "other sources of vdla (sources, not mine)"),
        (replace(KEY, version="mine"), "another version of vdla (0.1.0, not mine)"),
    ],
)
def test_a_log_of_another_search_is_refused(path, key, text):
    with EvaluationLog(path, KEY) as log:
        log.append(line(1))
    before = path.read_bytes()
    with pytest.raises(ExploreError) as caught:
        EvaluationLog(path, key)
    expected = f"{path}:1: expected evaluations of this search, found those of {text}; "
    assert str(caught.value) == f"{expected}name another log"
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", "{path}: expected evaluations of designs, found 'hello'"),
        ("hello\n", "{path}:1: expected an evaluation of a design, found 'hello'"),
        ('{"schema":2,"workload":{}}\n', "{path}:1: expected an evaluation of a design, found"),
    ],
)
def test_a_foreign_file_is_refused_and_left_alone(path, text, expected):
    path.write_text(text)
    with pytest.raises(ExploreError) as caught:
        EvaluationLog(path, KEY)
    assert str(caught.value).startswith(expected.format(path=path))
    assert path.read_text() == text


def test_another_schema_is_refused(path):
    path.write_bytes(line(1).to_bytes(KEY).replace(b'"schema":1', b'"schema":9'))
    with pytest.raises(ExploreError, match=r"expected schema 1, found 9$"):
        EvaluationLog(path, KEY)


def test_a_full_disk_loses_nothing(path, monkeypatch):
    with EvaluationLog(path, KEY) as log:
        log.append(line(1))
        before = path.read_bytes()
        write = os.write
        monkeypatch.setattr(os, "write", lambda file, raw: write(file, raw[:9]))
        with pytest.raises(OSError, match="No space left on device") as caught:
            log.append(line(2))
        assert caught.value.filename == str(path)
        assert path.read_bytes() == before
        monkeypatch.undo()
        log.append(line(3))
    with EvaluationLog(path, KEY) as log:
        assert set(log.lines) == {((1,), "exact"), ((3,), "exact")}
