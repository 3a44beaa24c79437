"""Profile of a run's time: each step's share, its speed, and what the processor could do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vdla.compiler.graph.ir import BY_OP, IntegerNode, Node
from vdla.compiler.targets.processor.peak import peak
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module
from vdla.runtime.plan import Host, Onnx, Open, decided, program_titles
from vdla.runtime.plan import runs as runs_of
from vdla.runtime.results import RunResult, StepResult
from vdla.support.files import write_bytes

Progress = Callable[[str, int, int], None]
RUNS = 20
PROCESSOR_STEPS = (Host.KIND, Onnx.KIND, Open.KIND)  # those that the processor's peak bounds
SIMULATED = ("sim", "rtl")  # devices whose seconds are the simulation's own


@dataclass(frozen=True)
class ProfiledStep:
    """One step: ``seconds`` of its shortest run, in a loop of all turns, and the ``share`` of all
    steps' seconds.

    A program on a simulated accelerator has neither, but ``cycles``: how long it takes to simulate
    says nothing of the machine. ``gops`` are 10^9 operations per second, a multiplication and an
    addition being two, and ``of_peak`` their share of what all threads could do of the step's
    element type; None for steps of other devices, and for copies to and from another memory.
    ``title`` is what tables call the step: of a program, its layers.
    """

    name: str
    op: str
    device: str
    seconds: float | None
    share: float | None
    cycles: int | None
    operations: int | None
    gops: float | None
    of_peak: float | None
    title: str = ""


@dataclass
class _Step:
    """All runs of a step in one run of a module."""

    name: str
    kind: str
    seconds: float = 0.0
    cycles: int | None = None


@dataclass(frozen=True)
class Profile:
    """All steps in order, and the peaks that they are measured by, in 10^9 operations a second;
    ``worker`` is the machine of a farm that ran them, empty for this one."""

    steps: list[ProfiledStep]
    threads: int
    peaks: dict[str, float]
    worker: str = ""


def profile(
    ready: Executor,
    inputs: Mapping[str, Any],
    runs: int = RUNS,
    progress: Progress = lambda what, done, total: None,
) -> Profile:
    """Runs a module some times; each step counts with its shortest run."""
    peaks = {dtype: ready.threads * peak(dtype) for dtype in ("float32", "int8")}
    results = []
    for done in range(runs):
        progress("run", done, runs)
        results.append(_together(ready.run(inputs).steps))
    work = _operations(ready.module)
    ops = {row["name"]: row["op"] for row in ready.module.metadata.get("placement", [])}
    best = [min(each.seconds for each in steps) for steps in zip(*results, strict=True)]
    timed = [s.cycles is None or ready.device.name not in SIMULATED for s in results[0]]
    titles = program_titles(ready.module.steps)
    total, steps = sum(s for s, counts in zip(best, timed, strict=True) if counts), []
    for step, seconds, counts in zip(results[0], best, timed, strict=True):
        op, operations = ops.get(step.name, step.kind), work.get(step.name)
        gops = operations / seconds if operations is not None and seconds else None
        integers = issubclass(BY_OP.get(op, Node), IntegerNode)
        most = peaks["int8" if integers else "float32"] if step.kind in PROCESSOR_STEPS else 0.0
        steps.append(
            ProfiledStep(
                step.name, op, step.kind, seconds if counts else None,
                seconds / (total or 1.0) if counts else None, step.cycles, operations,
                None if gops is None else gops / 1e9,
                gops / most if gops is not None and most else None,
                titles.get(step.name, step.name),
            )
        )  # fmt: skip
    return Profile(steps, ready.threads, {dtype: most / 1e9 for dtype, most in peaks.items()})


def _together(steps: Sequence[StepResult]) -> list[_Step]:
    """The steps of a run in the order in which they began, all runs of one together."""
    result: dict[tuple[str, str], _Step] = {}
    for step in steps:
        own = result.setdefault((step.name, step.kind), _Step(step.name, step.kind))
        own.seconds += step.seconds
        if step.cycles is not None:
            own.cycles = (own.cycles or 0) + step.cycles
    return list(result.values())


def _operations(module: Module) -> dict[str, int]:
    """The operations of each step in a run, where the plan says how often it runs."""
    work: Mapping[str, int] = module.metadata.get("work", {})
    plan = zip(module.steps, runs_of(module.steps), decided(module.steps), strict=True)
    return {str(s): n * work[str(s)] for s, n, known in plan if known and str(s) in work}


def write_timeline(result: RunResult, path: Path) -> None:
    """Writes a run's steps, in a row, for https://ui.perfetto.dev; whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(
        path, json.dumps({"traceEvents": _events(result), "displayTimeUnit": "ms"}).encode()
    )


def _events(result: RunResult) -> Sequence[Mapping[str, Any]]:
    names = sorted({step.kind for step in result.steps})
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": n, "args": {"name": name}}
        for n, name in enumerate(names)
    ]
    begin = 0.0
    for step in result.steps:
        events.append({"ph": "X", "name": step.name, "pid": 0, "tid": names.index(step.kind),
                       "ts": 1e6 * begin, "dur": 1e6 * step.seconds})  # fmt: skip
        begin += step.seconds
    return events
