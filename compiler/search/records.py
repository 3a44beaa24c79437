"""Measurements on disk: one JSON object per line, appended and never changed.

A line is written by one call and flushed to the device before the search goes on, so a search
killed at any moment loses at most the measurement it hadn't reported. What a kill cut off in the
middle of a line is removed when the log is next opened. Every line says its schema; what else it
says is the target's: what was measured, which candidate, and what became of it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from vdla.compiler.search.outcomes import STATUSES, Outcome
from vdla.support.errors import UserError
from vdla.support.files import write_bytes
from vdla.support.json_text import read_json

SCHEMA = 2

Line = Mapping[str, Any]  # the object that one holds


class RecordError(UserError):
    """A file that holds no tuning records, or not of our schema, or is being written to."""


@dataclass(frozen=True)
class Record(ABC):
    """One candidate's measurement: a dataclass whose fields are a line's, behind its schema.

    ``KIND`` is what errors call such a record, ``MARK`` the name that every such line has.
    """

    KIND: ClassVar[str] = "a tuning record"
    MARK: ClassVar[str] = "schema"

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """Key of the task that the candidate is for: records with one key can be compared."""

    @property
    @abstractmethod
    def outcome(self) -> Outcome:
        """Outcome of the candidate."""

    @property
    def fresh(self) -> bool:
        """Whether another measurement would give this outcome today."""
        return True

    @property
    def usable(self) -> bool:
        """Whether schedules may be chosen by it."""
        return True

    def to_json(self) -> Line:
        """The line as a dictionary, without its schema."""
        return asdict(self)

    @classmethod
    def from_json(cls, line: Line) -> Self:
        """The record of which ``to_json`` made ``line``.

        Raises:
            KeyError, TypeError: a part is missing.
            ValueError: a part is of another type.
        """
        return cls(**{f.name: line[f.name] for f in fields(cls)})

    def check(self) -> None:
        """Raises ValueError, which says what there is, unless it is a record that makes sense."""
        if self.outcome.status not in STATUSES:
            raise ValueError(f"status {self.outcome.status!r}")

    @classmethod
    def foreign(cls, line: Line) -> str | None:
        """Description of a line that isn't such a record; None where nobody knows."""
        return None

    def to_line(self) -> bytes:
        """The line of the log."""
        value = {"schema": SCHEMA, **self.to_json()}
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes, where: str) -> Self:
        """The record of which ``to_line`` made ``line``.

        Raises:
            RecordError: the line is no such record; the message starts with ``where``.
        """
        value = _parsed(line)
        if "schema" not in value or cls.MARK not in value:
            kind = cls.foreign(value) or shorten(line)
            raise RecordError(f"{where}: expected {cls.KIND}, found {kind}")
        if value["schema"] != SCHEMA:
            raise RecordError(f"{where}: expected schema {SCHEMA}, found {value['schema']!r}")
        try:
            record = cls.from_json(value)
            record.check()
        except (KeyError, TypeError, ValueError) as error:
            text = f"{error}" if isinstance(error, ValueError) else f"a record without {error}"
            raise RecordError(f"{where}: expected a tuning record, found {text}") from None
        return record


AnyRecord = TypeVar("AnyRecord", bound=Record)


def own_version() -> str:
    """The version of vdla that measures."""
    return version("vdla")


# Of many ------------------------------------------------------------------------------------------


class Records(Generic[AnyRecord]):
    """Records to choose schedules by.

    Args:
        read: gives the records; called once, when they are first asked for.
    """

    def __init__(self, read: Callable[[], Iterable[AnyRecord]]) -> None:
        self.read = read

    @cached_property
    def best(self) -> dict[Hashable, AnyRecord]:
        """The least cost per key, of the usable ones; fresh go before stale ones."""
        return best(record for record in self.read() if record.usable)

    def with_more(self, records: Sequence[AnyRecord]) -> Self:
        """These and others; the first of equals."""
        return type(self)(lambda: [*self.best.values(), *records])


def best(records: Iterable[AnyRecord]) -> dict[Hashable, AnyRecord]:
    """The least cost per key; any fresh record beats any stale one."""
    chosen: dict[Hashable, AnyRecord] = {}
    for record in records:
        if record.outcome.status != "ok":
            continue
        other = chosen.get(record.key)
        if other is None or _order(record) < _order(other):
            chosen[record.key] = record
    return chosen


def _order(record: Record) -> tuple[bool, float]:
    return not record.fresh, record.outcome.cost


# Files of them ------------------------------------------------------------------------------------


def load(path: Path, of: type[AnyRecord]) -> list[AnyRecord]:
    """The records of a file, all of one kind; a last line that was cut off is left out.

    Raises:
        RecordError: it holds something else.
        OSError: it can't be read.
    """
    return list(_parse(path.read_bytes(), path, of))


def export(records: Iterable[Record], path: Path) -> int:
    """Writes the best record per key, whole or not at all; how many there are."""
    lines = sorted(record.to_line() for record in best(records).values())
    write_bytes(path, b"".join(lines))
    return len(lines)


def holds(path: Path, of: type[Record]) -> bool:
    """Whether the first line of a file is marked as one kind of records are.

    Raises:
        OSError: it can't be read.
    """
    with path.open("rb") as file:
        return of.MARK in _parsed(file.readline())


class Log(Generic[AnyRecord]):
    """A log of one kind of records, open for appending, by one process at a time; use it in a
    ``with`` statement.

    ``records`` are those it holds, all of the kind ``of``; ``cut`` counts the bytes of a cut-off
    line that were removed.

    Raises:
        RecordError: it holds something else, or another process writes to it.
        OSError: it can't be opened.
    """

    def __init__(self, path: Path, of: type[AnyRecord]) -> None:
        self.path = path
        if path.exists():
            load(path, of)  # a foreign file is refused before anything is opened for writing
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            raw = path.read_bytes()
            self.records = list(_parse(raw, path, of))
            self.size = raw.rfind(b"\n") + 1
            self.cut = len(raw) - self.size
            if self.cut:
                os.ftruncate(self.file, self.size)
        except BlockingIOError:
            os.close(self.file)
            text = f"{path}: expected a log for this search alone, found another search writing it"
            raise RecordError(text) from None
        except BaseException:
            os.close(self.file)
            raise

    def append(self, record: AnyRecord) -> None:
        """Adds a record; when this returns it survives a kill and a power cut.

        Raises:
            OSError: there is no room; the log then ends with the record before.
        """
        line = record.to_line()
        try:
            written = os.write(self.file, line)
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self.file)
        except OSError as error:
            os.ftruncate(self.file, self.size)
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        self.size += len(line)
        self.records.append(record)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.file)


def _parse(raw: bytes, path: Path, of: type[AnyRecord]) -> Iterator[AnyRecord]:
    """The records of a file's whole lines.

    Raises:
        RecordError: a line is no record.
    """
    whole = raw[: raw.rfind(b"\n") + 1]
    if raw and not whole and not raw.startswith(b'{"schema":'[: len(raw)]):
        raise RecordError(f"{path}: expected tuning records, found {shorten(raw)}")
    for number, line in enumerate(whole.splitlines(), 1):
        yield of.from_line(line, f"{path}:{number}")


def _parsed(line: bytes) -> Line:
    """A line's object; nothing where it holds none."""
    try:
        value = read_json(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def shorten(raw: bytes) -> str:
    """The start of a line, for messages."""
    text = raw[:40].decode("utf-8", "replace").splitlines()
    return repr(text[0] if text else "")
