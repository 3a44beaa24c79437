"""Measurements of processor schedules on disk: lines of a log, as ``tune.records`` keeps them.

    {"schema": 2, "function": "5e1c…", "processor": "x86-64-v4 vnni", "trace": [{…}, …],
     "status": "ok", "seconds": 0.00061, "reference": 0.00072, "spread": 0.03, "note": "",
     "version": "0.1.0"}

The function's digest is over its text without any schedule, so a record is of one expression on one
kind of processor, whatever network it came from. ``reference`` is the default schedule's time, by
turns with the candidate's; records are compared by the ratio.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vdla.compiler.schedule.trace import Step, Trace, from_json, to_json
from vdla.compiler.targets.processor.description.processor import (
    AVX2,
    AVX512,
    NEON32,
    NEON64,
    SSE,
    VNNI,
    Processor,
)
from vdla.compiler.tune.cpu.measure import Timing
from vdla.compiler.tune.records import SCHEMA, STATUSES, Lines, RecordError, parse, shorten
from vdla.support.files import write_bytes

PROCESSORS = {
    SSE: "x86-64-v2",
    AVX2: "x86-64-v3",
    AVX512: "x86-64-v4",
    VNNI: "x86-64-v4 vnni",
    NEON32: "armv7 neon",
    NEON64: "armv8",
}

WORTH = 0.97  # of the default schedule's time: what is nearer to it may be chance


def processor(target: Processor) -> str:
    """The kind of processor that a target is, as far as schedules go."""
    return PROCESSORS.get(target.vectors, target.cpu)


@dataclass(frozen=True)
class FunctionRecord:
    """One schedule's measurement: times in seconds, None unless ``status`` is "ok".

    ``status`` is "ok", "illegal" (``note`` says why), "crash" or "timeout".
    """

    function: str
    processor: str
    trace: Sequence[Mapping[str, Any]]
    status: str
    seconds: float | None = None
    reference: float | None = None
    spread: float | None = None
    note: str = ""
    version: str = field(default_factory=lambda: version("vdla"))

    @classmethod
    def of(cls, function: str, kind: str, trace: Trace, outcome: Timing) -> FunctionRecord:
        """What became of a candidate."""
        o = outcome
        return cls(
            function, kind, to_json(trace), o.status, o.seconds, o.reference, o.spread, o.note
        )

    @property
    def outcome(self) -> Timing:
        """The reverse."""
        return Timing(
            self.status,
            note=self.note,
            seconds=self.seconds,
            reference=self.reference,
            spread=self.spread,
        )

    @property
    def steps(self) -> Trace:
        """The schedule."""
        return from_json([dict(step) for step in self.trace])

    def to_line(self) -> bytes:
        """The line of the log."""
        value = {"schema": SCHEMA, **asdict(self)}
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes, where: str) -> FunctionRecord:
        """The reverse.

        Raises:
            RecordError: the line is no such record; the message starts with ``where``.
        """
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict) or value.get("schema") != SCHEMA or "function" not in value:
            kind = "one of an accelerator" if _is_tile(value) else shorten(line)
            raise RecordError(f"{where}: expected a tuning record of a processor, found {kind}")
        try:
            record = cls(**{f.name: value[f.name] for f in fields(cls)})
            record._check()
        except (KeyError, TypeError, ValueError) as error:
            text = f"{error}" if isinstance(error, ValueError) else f"a record without {error}"
            raise RecordError(f"{where}: expected a tuning record, found {text}") from None
        return record

    def _check(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r}")
        for name in ("seconds", "reference"):
            found = getattr(self, name)
            if (isinstance(found, float) and found > 0) != (self.status == "ok"):
                raise ValueError(f"status {self.status} with {name} {found!r}")
        if not isinstance(self.trace, list) or not all(_is_step(step) for step in self.trace):
            raise ValueError("a trace that isn't a list of steps")


Key = tuple[str, str]  # a function's digest, and the kind of processor


def best(records: Iterable[FunctionRecord]) -> dict[Key, FunctionRecord]:
    """The least time, over the default schedule's, per function and processor."""
    found: dict[Key, FunctionRecord] = {}
    for record in records:
        key = (record.function, record.processor)
        if record.status != "ok":
            continue
        if key not in found or record.outcome.cost < found[key].outcome.cost:
            found[key] = record
    return found


class FunctionRecords:
    """Records to schedule functions by.

    Args:
        read: gives the records; called once, when they are first asked for.
    """

    def __init__(self, read: Callable[[], Iterable[FunctionRecord]]) -> None:
        self.read = read

    @cached_property
    def best(self) -> dict[Key, FunctionRecord]:
        """The least time, over the default schedule's, per function and processor."""
        return best(self.read())

    def trace(self, function: str, target: Processor) -> Sequence[Step] | None:
        """The best schedule of a function; None where the default is as good."""
        record = self.best.get((function, processor(target)))
        return record.steps if record is not None and record.outcome.cost < WORTH else None


def _is_tile(value: Any) -> bool:
    return isinstance(value, dict) and "tile" in value


def _is_step(step: Any) -> bool:
    return isinstance(step, dict) and {"primitive", "stage"} <= step.keys()


class FunctionLog(Lines[FunctionRecord]):
    """A log of processors' schedules."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, FunctionRecord)


def load(path: Path) -> list[FunctionRecord]:
    """The records of a file; a last line that was cut off is left out.

    Raises:
        RecordError: it holds something else.
        OSError: it can't be read.
    """
    return list(parse(path.read_bytes(), path, FunctionRecord))


def export(records: Iterable[FunctionRecord], path: Path) -> int:
    """Writes the best record per function, whole or not at all; how many there are."""
    chosen = sorted(best(records).values(), key=lambda r: r.to_line())
    write_bytes(path, b"".join(record.to_line() for record in chosen))
    return len(chosen)


def holds_functions(path: Path) -> bool:
    """Whether a file of tuning records is of processors' schedules, as its first line says.

    Raises:
        OSError: it can't be read.
    """
    with path.open("rb") as file:
        return file.readline().startswith(b'{"schema":%d,"function":' % SCHEMA)
