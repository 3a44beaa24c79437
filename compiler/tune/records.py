"""Measurements on disk: one JSON object per line, appended and never changed.

A line is written by one call and flushed to the device before the search goes on, so a search
killed at any moment loses at most the measurement it hadn't reported. What a kill cut off in the
middle of a line is removed when the log is next opened. Every line says its schema, what was
measured on which machine, and the sources that decided the cycles:

    {"schema": 2, "workload": {…}, "tile": {…}, "status": "ok", "cycles": 60988,
     "note": "", "isa": "5e1c…", "sources": "0d2f…", "version": "0.1.0"}

A record of another instruction set is no record of this machine: no tile is chosen by it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from vdla.compiler.targets.accelerator.operators.template import BY_NAME, AnyTemplate, Tile
from vdla.compiler.tune.workload import Workload, sources
from vdla.isa.config import Config
from vdla.isa.identity import isa_hash, other_isa
from vdla.support.errors import UserError
from vdla.support.files import write_bytes

SCHEMA = 2
RENAMED = {"keep": "stationary"}  # knobs of a tile, as records before the renaming call them
STATUSES = ("ok", "illegal", "crash", "timeout")


class RecordError(UserError):
    """A file that holds no tuning records, or not of our schema, or is being written to."""


@dataclass(frozen=True)
class Record:
    """One candidate's measurement. ``cycles`` is None unless ``status`` is "ok".

    ``status`` is "ok", "illegal" (``note`` says why), "crash" or "timeout".
    """

    workload: Workload
    tile: Mapping[str, Any]
    status: str
    cycles: int | None
    note: str = ""
    isa: str = field(default_factory=isa_hash)
    sources: str = field(default_factory=sources)
    version: str = field(default_factory=lambda: version("vdla"))

    @property
    def fresh(self) -> bool:
        """Whether today's instruction set and sources would give these cycles."""
        return self.isa == isa_hash() and self.sources == sources()

    def to_line(self) -> bytes:
        """The line of the log."""
        value = {"schema": SCHEMA, **asdict(self), "workload": self.workload.to_json()}
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes, where: str) -> Self:
        """The reverse.

        Raises:
            RecordError: the line is no record of our schema; the message starts with ``where``.
        """
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict) or "schema" not in value:
            raise RecordError(f"{where}: expected a tuning record, found {shorten(line)}")
        if value["schema"] != SCHEMA:
            raise RecordError(f"{where}: expected schema {SCHEMA}, found {value['schema']!r}")
        try:
            found = {f.name: value[f.name] for f in fields(cls)}
            workload, tile = Workload.from_json(found["workload"]), _renamed(found["tile"])
            record = cls(**{**found, "workload": workload, "tile": tile})
            record._check()
        except (KeyError, TypeError, ValueError) as error:
            text = f"{error}" if isinstance(error, ValueError) else f"a record without {error}"
            raise RecordError(f"{where}: expected a tuning record, found {text}") from None
        return record

    def _check(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r}")
        if (type(self.cycles) is int and self.cycles > 0) != (self.status == "ok"):
            raise ValueError(f"status {self.status} with cycles {self.cycles!r}")
        if not isinstance(self.tile, dict):
            raise ValueError(f"tile {self.tile!r}")


class Line(Protocol):
    """A record as a line of a log: of a tile for the accelerator, or of a processor's schedule."""

    def to_line(self) -> bytes:
        """The line."""

    @classmethod
    def from_line(cls, line: bytes, where: str) -> Self:
        """The reverse.

        Raises:
            RecordError: the line is no such record; the message starts with ``where``.
        """


AnyRecord = TypeVar("AnyRecord", bound=Line)


def _renamed(tile: Any) -> Any:
    """A tile under today's names of its knobs."""
    return {RENAMED.get(k, k): v for k, v in tile.items()} if isinstance(tile, dict) else tile


class Records:
    """Records to choose tiles by.

    Args:
        read: gives the records; called once, when they are first asked for.
    """

    def __init__(self, read: Callable[[], Sequence[Record]]) -> None:
        self.read = read

    @cached_property
    def best(self) -> dict[Workload, Record]:
        """The fewest cycles per workload, of this instruction set; fresh go before stale ones."""
        return best(record for record in self.read() if record.isa == isa_hash())

    def tile(self, template: AnyTemplate, config: Config, vthreads: int) -> Tile | None:
        """The best recorded tile of a template, if there is one and today's rules allow it."""
        record = self.best.get(Workload.of(template, config, vthreads))
        tile = None if record is None else make_tile(record)
        return tile if tile and template.is_legal(tile, config, vthreads) else None

    def with_more(self, records: Sequence[Record]) -> Records:
        """These and others; the first of equals."""
        return Records(lambda: [*self.best.values(), *records])


def load(path: Path) -> list[Record]:
    """The records of a file; a last line that was cut off is left out.

    Raises:
        RecordError: it holds something else.
        OSError: it can't be read.
    """
    return list(parse(path.read_bytes(), path, Record))


def load_own(path: Path) -> list[Record]:
    """The records of a file that are of this instruction set.

    Raises:
        RecordError: it holds something else, or records of another instruction set alone.
        OSError: it can't be read.
    """
    records = load(path)
    own = [record for record in records if record.isa == isa_hash()]
    if records and not own:
        text = other_isa(isa_hash(), records[-1].isa, "tuned", "tune again")
        raise RecordError(f"{path}: {text}")
    return own


def parse(raw: bytes, path: Path, of: type[AnyRecord]) -> Iterator[AnyRecord]:
    """The records of a file's whole lines.

    Raises:
        RecordError: a line is no record.
    """
    whole = raw[: raw.rfind(b"\n") + 1]
    if raw and not whole and not raw.startswith(b'{"schema":'[: len(raw)]):
        raise RecordError(f"{path}: expected tuning records, found {shorten(raw)}")
    for number, line in enumerate(whole.splitlines(), 1):
        yield of.from_line(line, f"{path}:{number}")


def best(records: Iterable[Record]) -> dict[Workload, Record]:
    """The fewest cycles per workload; any fresh record beats any stale one."""
    found: dict[Workload, Record] = {}
    for record in records:
        if record.cycles is None:
            continue
        there = found.get(record.workload)
        if there is None or _order(record) < _order(there):
            found[record.workload] = record
    return found


def make_tile(record: Record) -> Tile | None:
    """The tile of a record, or None if tiles have other fields today."""
    try:
        tile: Tile = BY_NAME[record.workload.kind].TILE(**record.tile)
        return tile
    except (KeyError, TypeError):
        return None


def export(records: Iterable[Record], path: Path) -> int:
    """Writes the best record per workload, whole or not at all; how many there are."""
    chosen = sorted(best(records).values(), key=lambda r: r.to_line())
    write_bytes(path, b"".join(record.to_line() for record in chosen))
    return len(chosen)


class Lines(Generic[AnyRecord]):
    """A log of one kind of records, open for appending, by one process at a time; use it in a
    ``with`` statement.

    ``records`` are those it held, all of the kind ``of``; ``cut`` counts the bytes of a cut-off
    line that were removed.

    Raises:
        RecordError: it holds something else, or another process writes to it.
        OSError: it can't be opened.
    """

    def __init__(self, path: Path, of: type[AnyRecord]) -> None:
        self.path = path
        raw = path.read_bytes() if path.exists() else b""
        list(
            parse(raw, path, of)
        )  # a foreign file is refused before anything is opened for writing
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            raw = path.read_bytes()
            self.records = list(parse(raw, path, of))
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


class Log(Lines[Record]):
    """A log of tiles for the accelerator."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Record)


def _order(record: Record) -> tuple[bool, int]:
    assert record.cycles is not None
    return not record.fresh, record.cycles


def shorten(raw: bytes) -> str:
    """The start of a line, for messages."""
    text = raw[:40].decode("utf-8", "replace").splitlines()
    return repr(text[0] if text else "")


BUNDLED_PATH = Path(__file__).parent / "data" / "best.jsonl"
BUNDLED = Records(lambda: load(BUNDLED_PATH))
