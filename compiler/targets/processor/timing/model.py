"""The time that a processor takes for a network's functions, by a model and not by a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from vdla.compiler.targets.processor.timing.cycles import Cycles
from vdla.compiler.targets.processor.timing.instructions import functions_of
from vdla.compiler.targets.processor.timing.machine import Machine
from vdla.compiler.targets.processor.timing.traffic import memory_seconds, traffic
from vdla.runtime.module import TensorInfo
from vdla.runtime.plan import Accelerate, Host, Onnx, Open, Plan, undecided
from vdla.runtime.plan import runs as runs_of
from vdla.runtime.rows import Compiled


class StepData(TypedDict):
    """A :class:`FunctionTime` in a module's metadata."""

    name: str
    operators: list[str]
    cycles: float
    memory_seconds: float
    seconds: float
    runs: int


class TimeData(TypedDict):
    """A :class:`HostTime` in a module's metadata."""

    processor: str
    clock_mhz: float
    steps: list[StepData]
    call_seconds: float
    shared_bytes: int
    unknown: list[str]
    undecided: list[str]


@dataclass(frozen=True)
class FunctionTime:
    """The time of one step: a function of one operator, or of several that were fused.

    ``cycles`` are what it computes for, ``memory_seconds`` what its operands take to come from
    caches and memory, and ``seconds`` the whole of one of its ``runs``.
    """

    name: str
    operators: tuple[str, ...]
    cycles: float
    memory_seconds: float
    seconds: float
    runs: int = 1

    @property
    def milliseconds(self) -> float:
        """The time of all runs in milliseconds."""
        return 1e3 * self.runs * self.seconds


@dataclass(frozen=True)
class HostTime:
    """The time of all steps that the host runs, and of the calls that lead to them.

    ``shared_bytes`` are those of the tensors that it shares with an accelerator. ``unknown`` are
    the steps of onnxruntime, whose time isn't known. ``undecided`` are choices, of which both ways
    count, and loops and calls that count once, since only a run knows more.
    """

    processor: str
    clock_mhz: float
    steps: tuple[FunctionTime, ...]
    call_seconds: float
    shared_bytes: int = 0
    unknown: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The whole time."""
        return self.call_seconds + sum(step.runs * step.seconds for step in self.steps)

    @property
    def milliseconds(self) -> float:
        """The whole time in milliseconds."""
        return 1e3 * self.seconds

    def to_json(self) -> TimeData:
        """JSON in a module's metadata."""
        steps: list[StepData] = [
            {
                "name": step.name,
                "operators": list(step.operators),
                "cycles": step.cycles,
                "memory_seconds": step.memory_seconds,
                "seconds": step.seconds,
                "runs": step.runs,
            }
            for step in self.steps
        ]
        return {
            "processor": self.processor,
            "clock_mhz": self.clock_mhz,
            "steps": steps,
            "call_seconds": self.call_seconds,
            "shared_bytes": self.shared_bytes,
            "unknown": list(self.unknown),
            "undecided": list(self.undecided),
        }

    @staticmethod
    def from_json(data: TimeData) -> HostTime:
        """Reads what a module's metadata keeps."""
        steps = tuple(
            FunctionTime(
                each["name"],
                tuple(each["operators"]),
                each["cycles"],
                each["memory_seconds"],
                each["seconds"],
                each["runs"],
            )
            for each in data["steps"]
        )
        return HostTime(
            data["processor"],
            data["clock_mhz"],
            steps,
            data["call_seconds"],
            data["shared_bytes"],
            tuple(data["unknown"]),
            tuple(data["undecided"]),
        )


def modelled(
    text: str,
    plan: Plan,
    tensors: Mapping[str, TensorInfo],
    operators: Mapping[str, Sequence[str]],
    machine: Machine,
) -> HostTime:
    """The time of a plan's host functions.

    Args:
        text: LLVM's optimized text of the functions.
        plan: a module's steps; those of other devices touch memory, too.
        tensors: where they lie.
        operators: the operators of each step, by the step's name.
        machine: the processor.
    """
    cycles = Cycles(functions_of(text), machine)
    ranges = [_ranges(_touched(step), tensors) for step in plan]
    hertz = machine.clock_mhz * 1e6
    steps, rows, last = [], 0, False
    for step, row, runs in zip(plan, traffic(ranges, machine), runs_of(plan), strict=True):
        own = isinstance(step, Compiled)
        rows += runs * (own and not last)
        last = own
        if not isinstance(step, Host):
            continue
        work = cycles.of(step.function)
        computing = (work.cycles + machine.call_cycles) / hertz
        waiting = memory_seconds(row, machine, work.bytes)
        seconds = max(computing, waiting) if machine.overlaps else computing + waiting
        names = tuple(operators.get(step.name, ()))
        steps.append(FunctionTime(step.name, names, work.cycles, waiting, seconds, runs))
    unknown = tuple(s.name for s in plan if isinstance(s, Onnx | Open))
    calls = rows * machine.row_seconds
    return HostTime(
        machine.name, machine.clock_mhz, tuple(steps), calls, 0, unknown, tuple(undecided(plan))
    )


def _touched(step: object) -> tuple[str, ...]:
    if isinstance(step, Accelerate):
        return (*step.reads, *step.writes)
    return tuple(getattr(step, "args", ()))


def _ranges(names: Sequence[str], tensors: Mapping[str, TensorInfo]) -> list[tuple[int, int]]:
    known = (tensors[name] for name in dict.fromkeys(names) if name in tensors)
    return [(t.offset, t.offset + t.nbytes) for t in known]
