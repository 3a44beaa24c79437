"""Schedules of users' kernels that were simulated, as lines of a log.

    {"schema": 2, "kernel": "5e1c…", "machine": {…}, "trace": [{…}, …], "knobs": {"rows": 8},
     "status": "ok", "cycles": 3819, "note": "", "isa": "…", "sources": "…", "version": "0.2.0"}

The kernel's digest is over its text without any schedule; the machine is the config's, with its
memory. ``knobs`` are the values of a user's knobs that made the steps, where there were any. As
with tiles, a record of other sources may have other cycles, and one of another instruction set is
no record of this machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

from vdla.compiler.schedule.trace import Trace, from_json, to_json
from vdla.compiler.search.records import Record, Records, own_version
from vdla.compiler.targets.accelerator.search.kernel import AcceleratorFunction
from vdla.compiler.targets.accelerator.search.simulation import Cycles
from vdla.compiler.targets.accelerator.search.workload import sources
from vdla.isa.identity import isa_hash

Key = tuple[str, str]  # a kernel's digest, and the machine


@dataclass(frozen=True)
class KernelRecord(Record):
    """One schedule's measurement; ``cycles`` is None unless ``status`` is "ok"."""

    KIND: ClassVar[str] = "a tuning record of an accelerator's kernel"
    MARK: ClassVar[str] = "kernel"

    kernel: str
    machine: Mapping[str, object]
    trace: Sequence[Mapping[str, object]]
    knobs: Mapping[str, object] | None
    status: str
    cycles: int | None
    note: str = ""
    isa: str = field(default_factory=isa_hash)
    sources: str = field(default_factory=sources)
    version: str = field(default_factory=own_version)

    @classmethod
    def of(
        cls,
        function: AcceleratorFunction,
        trace: Trace,
        outcome: Cycles,
        knobs: Mapping[str, object] | None = None,
    ) -> Self:
        """The record of what became of a kernel's schedule, just now."""
        machine, steps = function.config.machine, to_json(trace)
        made = function.digest, machine, steps, knobs
        return cls(*made, outcome.status, outcome.cycles, outcome.note)

    @property
    def key(self) -> Key:
        """The kernel and the machine: records of both can be compared."""
        return self.kernel, json.dumps(self.machine, sort_keys=True, separators=(",", ":"))

    @property
    def outcome(self) -> Cycles:
        """Outcome of the schedule."""
        return Cycles(self.status, self.note, self.cycles)

    @property
    def steps(self) -> Trace:
        """The schedule."""
        return from_json([dict(step) for step in self.trace])

    @property
    def fresh(self) -> bool:
        """Whether today's instruction set and sources would give these cycles."""
        return self.usable and self.sources == sources()

    @property
    def usable(self) -> bool:
        """Whether it is of this instruction set."""
        return self.isa == isa_hash()

    @classmethod
    def foreign(cls, line: Mapping[str, object]) -> str | None:
        """Description of a line that isn't such a record; None where nobody knows."""
        return next((text for mark, text in OTHERS.items() if mark in line), None)

    def check(self) -> None:
        """Raises ValueError, which says what there is, unless it is a record that makes sense."""
        super().check()
        if (type(self.cycles) is int and self.cycles > 0) != (self.status == "ok"):
            raise ValueError(f"status {self.status} with cycles {self.cycles!r}")
        if not isinstance(self.machine, dict) or not isinstance(self.knobs, dict | None):
            raise ValueError(f"machine {self.machine!r} with knobs {self.knobs!r}")
        steps = self.trace if isinstance(self.trace, list) else [None]
        if not all(isinstance(s, dict) and {"primitive", "stage"} <= s.keys() for s in steps):
            raise ValueError("a trace that isn't a list of steps")


OTHERS = {"tile": "one of an accelerator's layer", "function": "one of a processor"}


class KernelRecords(Records[KernelRecord]):
    """Records to schedule kernels by."""

    def trace(self, function: AcceleratorFunction) -> Trace | None:
        """The best schedule of a kernel on its machine; None where there is none."""
        record = self.best.get((function.digest, function.machine))
        return None if record is None else record.steps
