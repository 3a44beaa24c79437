"""Schedules of functions that were timed, as lines of a log.

    {"schema": 2, "function": "5e1c…", "processor": "x86-64-v4 vnni", "trace": [{…}, …],
     "status": "ok", "seconds": 0.00061, "reference": 0.00072, "spread": 0.03, "note": "",
     "version": "0.1.0", "threads": 1}

The function's digest is over its text without any schedule, so a record is of one expression on one
kind of processor, or on one other device, whatever network it came from. ``reference`` is the
default schedule's time, by turns with the candidate's; records are compared by the ratio.
``threads`` is how many shared the loops of both; logs without it are of one thread. ``knobs`` are
the values of a user's knobs that made the steps, where there were any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from vdla.compiler.schedule.trace import Json, Trace, from_json, to_json
from vdla.compiler.search.records import Line, Record, Records, own_version
from vdla.compiler.targets.functions import Traces
from vdla.compiler.targets.search.stopwatch import Timing

Key = tuple[str, str]  # a function's digest, and the machine

# A record is used only if it takes at most this share of the default schedule's time; a smaller
# gain may be noise.
MAX_TIME_SHARE = 0.97


@dataclass(frozen=True)
class FunctionRecord(Record):
    """One schedule's measurement: times in seconds, None unless ``status`` is "ok"."""

    KIND: ClassVar[str] = "a tuning record of a processor"
    MARK: ClassVar[str] = "function"

    function: str
    processor: str
    trace: Sequence[Mapping[str, Json]]
    status: str
    seconds: float | None = None
    reference: float | None = None
    spread: float | None = None
    note: str = ""
    version: str = field(default_factory=own_version)
    threads: int = 1
    knobs: Mapping[str, object] | None = None

    @classmethod
    def of(
        cls,
        key: Key,
        trace: Trace,
        o: Timing,
        threads: int = 1,
        knobs: Mapping[str, object] | None = None,
    ) -> Self:
        """The record of what became of a function's schedule on a machine, just now."""
        steps = to_json(trace)
        made = cls(*key, steps, o.status, o.seconds, o.reference, o.spread, o.note)
        return replace(made, threads=threads, knobs=knobs)

    def to_json(self) -> Mapping[str, object]:
        """The line as a dictionary, without its schema; without knobs where there are none."""
        line = super().to_json()
        return {name: value for name, value in line.items() if name != "knobs" or value is not None}

    @classmethod
    def from_json(cls, line: Line) -> Self:
        """The record of which ``to_json`` made ``line``."""
        return super().from_json({"threads": 1, "knobs": None, **line})

    @property
    def key(self) -> Key:
        """The function and the machine: records of both can be compared."""
        return self.function, self.processor

    @property
    def outcome(self) -> Timing:
        """Outcome of the schedule."""
        return Timing(self.status, self.note, self.seconds, self.reference, self.spread)

    @property
    def steps(self) -> Trace:
        """The schedule."""
        return from_json([dict(step) for step in self.trace])

    @classmethod
    def foreign(cls, line: Line) -> str | None:
        """Description of a line that isn't such a record; None where nobody knows."""
        return "one of an accelerator" if "tile" in line else None

    def check(self) -> None:
        """Raises ValueError, which says what there is, unless it is a record that makes sense."""
        super().check()
        for name in ("seconds", "reference"):
            value = getattr(self, name)
            if (isinstance(value, float) and value > 0) != (self.status == "ok"):
                raise ValueError(f"status {self.status} with {name} {value!r}")
        if type(self.threads) is not int or self.threads < 1:
            raise ValueError(f"threads {self.threads!r}")
        if not isinstance(self.knobs, dict | None):
            raise ValueError(f"knobs {self.knobs!r}")
        if not isinstance(self.trace, list) or not all(_is_step(step) for step in self.trace):
            raise ValueError("a trace that isn't a list of steps")


def _is_step(step: object) -> bool:
    return isinstance(step, dict) and {"primitive", "stage"} <= step.keys()


class FunctionRecords(Records[FunctionRecord]):
    """Records to schedule functions by."""

    def traces(self, machine: str) -> Traces:
        """The best schedules on a machine by their functions' digests; None for a function whose
        default is as good."""

        def trace(digest: str) -> Trace | None:
            record = self.best.get((digest, machine))
            if record is None or record.outcome.cost >= MAX_TIME_SHARE:
                return None
            return record.steps

        return trace
