"""Evaluations on disk: one JSON object per line, appended and never changed.

    {"schema": 1, "key": {"space": "1f…", "networks": "0d…", …, "version": "0.1.0"},
     "point": [0, 1, 2], "level": "exact", "networks": {"digits": {"cycles": 12669, …}}}

Several searches may append to one log, on one machine or over a shared folder: a line is written
under a lock, by one call, and each reads what the others have added. Every line says what decided
its figures; a log of another space, of other networks or of another version is refused.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Self

from vdla import compiler, isa, sim
from vdla.explore.errors import ExploreError
from vdla.explore.space import Point
from vdla.support.files import digest
from vdla.support.json_text import read_json

SCHEMA = 1
TITLES = {
    "space": "another space",
    "networks": "other networks",
    "energy": "another table of energy",
    "sources": "other sources of vdla",
    "version": "another version of vdla",
}


@dataclass(frozen=True)
class Key:
    """Key that an evaluation's figures follow from: digests of the space and of the networks'
    files, the table of energy, "" for none, a digest of vdla's sources, its version."""

    space: str
    networks: str
    energy: str
    sources: str
    version: str

    @classmethod
    def now(cls, space: str, networks: str, energy: str = "") -> Self:
        """The key of what this vdla evaluates."""
        return cls(space, networks, energy, sources(), version("vdla"))

    def difference(self, other: Mapping[str, object]) -> str:
        """Difference of a line's key from this one; "" where there is none."""
        for name, value in asdict(self).items():
            if other.get(name) != value:
                return f"{TITLES[name]} ({other.get(name)}, not {value})"
        return ""


@cache
def sources() -> str:
    """12 hex digits over all that decides a network's cycles: ISA, compiler, simulator."""
    return digest([Path(room.__path__[0]) for room in (isa, compiler, sim)], digits=12)


@dataclass(frozen=True)
class Line:
    """Outcome of one point at one level, by network: ``cycles``, null where ``refusal`` says why
    there are none, and the cycles of its ``layers``."""

    point: Point
    level: str
    networks: Mapping[str, Mapping[str, object]]

    def to_bytes(self, key: Key) -> bytes:
        """The line of the log."""
        own = {"point": list(self.point), "level": self.level, "networks": self.networks}
        value = {"schema": SCHEMA, "key": asdict(key), **own}
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_bytes(cls, raw: bytes, key: Key, where: str) -> Self:
        """The line of which ``to_bytes`` made ``raw``.

        Raises:
            ExploreError: it is no evaluation, or one of another space, version or networks; the
                message starts with ``where``.
        """
        try:
            value = read_json(raw)
            schema, own = value["schema"], value["key"]
            point, level, networks = value["point"], value["level"], value["networks"]
            runs = all({"cycles", "refusal", "layers"} <= each.keys() for each in networks.values())
            known = isinstance(own, dict) and runs and all(type(n) is int for n in point)
        except (ValueError, KeyError, TypeError, AttributeError):
            known = False
        if not known:
            text = raw[:40].decode("utf-8", "replace")
            raise ExploreError(f"{where}: expected an evaluation of a design, found {text!r}")
        if schema != SCHEMA:
            raise ExploreError(f"{where}: expected schema {SCHEMA}, found {schema!r}")
        if difference := key.difference(own):
            raise ExploreError(
                f"{where}: expected evaluations of this search, found those of {difference}; "
                "name another log"
            )
        return cls(tuple(point), str(level), networks)


class EvaluationLog:
    """A log that is open for appending, by several processes at once; use it in a ``with``
    statement.

    ``lines`` are what it holds, by point and level: those of this process, and what others had
    added when ``refresh`` was called last. Of two for one point and level the first one counts.

    Raises:
        ExploreError: it holds something else, or evaluations of another search.
        OSError: it can't be opened.
    """

    def __init__(self, path: Path, key: Key) -> None:
        self.path, self.key = path, key
        self.lines: dict[tuple[Point, str], Line] = {}
        self._read = 0  # bytes of whole lines
        self._count = 0  # lines among them
        if path.exists():
            self._take(path.read_bytes())  # a foreign file is refused before it is written to
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)

    def refresh(self) -> None:
        """Reads what others have added."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            self._take(file.read())

    def append(self, line: Line) -> None:
        """Adds a line; when this returns it survives a kill and a power cut.

        Raises:
            OSError: there is no room; the log then ends with the line before.
        """
        raw = line.to_bytes(self.key)
        with self._locked():
            end = self._whole_end()
            os.ftruncate(self._file, end)  # what a kill cut off
            try:
                if os.write(self._file, raw) < len(raw):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(self._file)
            except OSError as error:
                os.ftruncate(self._file, end)
                raise OSError(error.errno, error.strerror, str(self.path)) from None
        self.refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def _take(self, raw: bytes) -> None:
        """Takes the whole lines among the bytes behind those read."""
        whole = raw[: raw.rfind(b"\n") + 1]
        if raw and not whole and not self._read and not raw.startswith(b'{"schema":'[: len(raw)]):
            text = raw[:40].decode("utf-8", "replace").partition("\n")[0]
            raise ExploreError(f"{self.path}: expected evaluations of designs, found {text!r}")
        for each in whole.splitlines():
            self._count += 1
            line = Line.from_bytes(each, self.key, f"{self.path}:{self._count}")
            self.lines.setdefault((line.point, line.level), line)
        self._read += len(whole)

    def _whole_end(self) -> int:
        """The bytes of the file's whole lines; others may have added some."""
        size = os.fstat(self._file).st_size
        tail = os.pread(self._file, size - self._read, self._read)
        return self._read + tail.rfind(b"\n") + 1

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
