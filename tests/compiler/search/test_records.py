"""Logs: nothing written is ever lost, and nothing foreign is taken for a record."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass, replace
from math import inf

import pytest

from vdla.compiler.search import records as module
from vdla.compiler.search.outcomes import Outcome
from vdla.compiler.search.records import (
    Log,
    Record,
    RecordError,
    Records,
    best,
    export,
    holds,
    load,
)


@dataclass(frozen=True)
class Measured(Outcome):
    """How long a thing is."""

    cost: float = inf


@dataclass(frozen=True)
class Length(Record):
    """One thing's length; with ``doubted``, measured with another ruler."""

    name: str
    status: str
    length: int | None
    doubted: bool = False

    @property
    def key(self):
        return self.name

    @property
    def outcome(self):
        return Measured(self.status, cost=inf if self.length is None else self.length)

    @property
    def fresh(self):
        return not self.doubted


class Width(Length):
    """Of things that are no lengths."""

    KIND, MARK = "a record of a width", "width"

    @classmethod
    def foreign(cls, line):
        return "a length" if "length" in line else None


@pytest.fixture
def record():
    return Length("thing", "ok", 5)


def test_a_record_survives_the_disk(tmp_path, record):
    path = tmp_path / "log"
    bad = replace(record, status="illegal", length=None, name="“a thing”\nof 3")
    with Log(path, Length) as log:
        log.append(record)
        log.append(bad)
    assert load(path, Length) == [record, bad]
    with Log(path, Length) as log:
        assert (log.records, log.cut) == ([record, bad], 0)
    assert path.read_bytes().splitlines()[0] == (
        b'{"schema":2,"name":"thing","status":"ok","length":5,"doubted":false}'
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"a,b", "expected a tuning record, found 'a,b'"),
        (b"[]", "expected a tuning record, found '[]'"),
        (b'{"schema":1}', "expected schema 2, found 1"),
        (b'{"schema":2}', "expected a tuning record, found a record without 'name'"),
        (
            b'{"schema":2,"name":"n","status":"fine","length":1,"doubted":false}',
            "expected a tuning record, found status 'fine'",
        ),
    ],
)
def test_what_is_no_record_is_named(line, found):
    with pytest.raises(RecordError) as refused:
        Length.from_line(line, "log:7")
    assert str(refused.value) == f"log:7: {found}"


def test_records_of_another_kind_are_told_by_their_mark(tmp_path, record):
    path = tmp_path / "log"
    with Log(path, Length) as log:
        log.append(record)
    assert holds(path, Length)
    assert not holds(path, Width)
    with pytest.raises(RecordError) as refused:
        load(path, Width)
    assert str(refused.value) == f"{path}:1: expected a record of a width, found a length"
    with pytest.raises(RecordError, match="expected a record of a width, found 'a,b'"):
        Width.from_line(b"a,b", "log:1")


@pytest.mark.parametrize("kept", [1, 10, 50, -1])
def test_a_line_cut_off_is_removed_on_resuming(tmp_path, record, kept):
    path, line = tmp_path / "log", record.to_line()
    path.write_bytes(line + line[:kept])
    assert load(path, Length) == [record]
    with Log(path, Length) as log:
        assert log.cut == len(line[:kept])
        assert log.records == [record]
        log.append(record)
    assert path.read_bytes() == 2 * line


def test_one_search_at_a_time(tmp_path, record):
    path = tmp_path / "log"
    with Log(path, Length) as log:
        with pytest.raises(RecordError, match="found another search writing it"):
            Log(path, Length)
        log.append(record)
    with Log(path, Length) as log:
        assert log.records == [record]


@pytest.mark.parametrize("part", [0, 17])
def test_a_full_disk_loses_nothing(tmp_path, record, monkeypatch, part):
    path = tmp_path / "log"
    real = os.write

    def full(file, data):
        real(file, data[:part])
        raise OSError(28, "No space left on device")

    def partial(file, data):
        return real(file, data[:part])

    for broken in (full, partial):
        with Log(path, Length) as log:
            log.append(record)
            held = path.read_bytes()
            monkeypatch.setattr(module.os, "write", broken)
            with pytest.raises(OSError, match="No space left") as refused:
                log.append(record)
            monkeypatch.setattr(module.os, "write", real)
            assert refused.value.filename == str(path)
            assert path.read_bytes() == held
            log.append(record)  # room again
        assert path.read_bytes() == held + record.to_line()


def test_a_disk_that_fills_up_in_the_middle_of_a_record(tmp_path, record):
    path, line = tmp_path / "log", record.to_line()
    child = os.fork()
    if child == 0:  # a real short write: this process's files may not grow any further
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * len(line) + 40, 2 * len(line) + 40))
        code = 1
        with Log(path, Length) as log:
            try:
                for _ in range(5):
                    log.append(record)
            except OSError as error:
                code = 0 if error.filename == str(path) else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.read_bytes() == 2 * line


def test_export_keeps_the_best(tmp_path, record):
    path = tmp_path / "best"
    other, failed = replace(record, name="other"), replace(record, status="crash", length=None)
    assert export([record, replace(record, length=3), other, failed], path) == 2
    assert load(path, Length) == [other, replace(record, length=3)]
    assert list(tmp_path.iterdir()) == [path]


def test_the_best_is_the_least_and_fresh_ones_go_first(record):
    doubted, long = replace(record, length=1, doubted=True), replace(record, length=9)
    assert best([doubted, long, record]) == {"thing": record}
    assert best([doubted]) == {"thing": doubted}
    assert best([replace(record, status="crash", length=None)]) == {}
    assert Records(lambda: [long]).with_more([record, doubted]).best == {"thing": record}
