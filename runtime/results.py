"""Results of a run: its outputs, and each step's share of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from vdla.runtime.devices.base import DeviceResult
from vdla.runtime.values import described
from vdla.support.tables import html_table


class StepResult(NamedTuple):
    """One step's share: ``cycles`` is None for a host function."""

    name: str
    kind: str
    seconds: float
    device: DeviceResult | None = None

    @property
    def cycles(self) -> int | None:
        """Cycles that the accelerator took; None for a host function."""
        return self.device.cycles if self.device else None


@dataclass(frozen=True, repr=False)
class RunResult:
    """Result of one run; an output is an array, or a list of such or None where the model has a
    sequence or an optional value. ``worker`` is the machine of a farm that ran it, and where the
    board is there; empty for a run on this machine.

    A network may have thousands of steps of a microsecond each, so how each of them went is put
    together when it is asked for.
    """

    outputs: dict[str, Any]
    seconds: float
    reports: Sequence[Report] = field(default=(), repr=False)
    worker: str = ""

    @cached_property
    def steps(self) -> list[StepResult]:
        """Results of the steps, in order."""
        return [step for report in self.reports for step in report()]

    @property
    def cycles(self) -> int | None:
        """Cycles that the accelerator took; None where none took part."""
        cycles = [step.cycles for step in self.steps if step.cycles is not None]
        return sum(cycles) if cycles else None

    def __repr__(self) -> str:
        outputs = ", ".join(f"{name}: {described(each)}" for name, each in self.outputs.items())
        cycles = "" if self.cycles is None else f"{self.cycles:,} cycles, "
        return f"RunResult({cycles}{self.seconds:.3f} s; {outputs})"

    def _repr_html_(self) -> str:
        """Table of the steps that took cycles, and of where each engine's cycles went."""
        columns, rows = ["step", "cycles", "engine"], list[list[object]]()
        for step in self.steps:
            if step.device is None or (trace := step.device.trace) is None:
                continue
            for engine, causes in trace.causes.items():
                columns[3:] = causes
                shares = (n / max(trace.cycles, 1) for n in causes.values())
                rows.append([step.name, trace.cycles, engine, *shares])
        return html_table(repr(self), columns if rows else (), rows)


Report = Callable[[], Sequence[StepResult]]  # of a part of a run: how its steps went
