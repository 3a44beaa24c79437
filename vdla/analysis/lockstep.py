"""Lockstep: one program on the simulator and on the RTL, compared in every cycle and every byte.

A case is a program, random or made for a goal (``cases.py``). It runs on both machines
(``machines.py``), and a case that differs is shrunk as long as they still differ (``shrink.py``).
Two machines that stand still alike are equal, too: so lockstep also holds how each program ends
against how it was made to end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from vdla.analysis.case import Case, Ending, Outcome
from vdla.analysis.cases import random_case
from vdla.analysis.coverage import Coverage
from vdla.analysis.machines import Difference, Machines, cycle_error, first_difference
from vdla.analysis.shrink import shrink
from vdla.farm.work import Job, JobPool, Setup
from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.isa.memory import Memory
from vdla.runtime.devices.base import DeviceResult
from vdla.runtime.dram import Dram, Ranges, host_image, place, whole_pages
from vdla.support.errors import CheckError

MEMORIES = 3
CHUNK = 50  # cases that a process runs at once
RTL = "rtl"  # the resource of who can build the RTL's model
NAMED = 5  # programs that end otherwise than they were made to: so many are kept


@dataclass(frozen=True)
class UnexpectedEnding:
    """A program that ended otherwise than it was made to; its number is the command's --seed, or
    None for the program of a model."""

    number: int | None
    goal: str
    memory: Memory
    purpose: Ending
    ending: Ending


@dataclass
class Tally:
    """Tally of what lockstep has seen so far.

    A program is run behind several memories. It counts as deadlocked if it stood still behind any
    of them, else as faulted if a fault stopped it behind any, else as ended.
    """

    programs: int = 0
    ended: int = 0
    faulted: int = 0
    deadlocked: int = 0
    unexpected_endings: int = 0
    instructions: int = 0
    mismatches: int = 0
    max_cycle_error: int = 0
    cycles: int = 0
    rtl_seconds: float = 0.0
    sim_seconds: float = 0.0
    differences: list[Difference] = field(default_factory=list)
    unexpected: list[UnexpectedEnding] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether the machines differ, or a program ended otherwise than it was made to."""
        return self.mismatches + self.unexpected_endings > 0

    def add(self, simulated: Outcome, rtl: Outcome) -> None:
        """Counts one pair of outcomes."""
        self.instructions += len(simulated.start)
        self.cycles += max(simulated.cycles, 0)
        self.sim_seconds += simulated.seconds
        self.rtl_seconds += rtl.seconds
        self.max_cycle_error = max(self.max_cycle_error, cycle_error(simulated, rtl))

    def end(self, endings: Sequence[Ending], unexpected: Sequence[UnexpectedEnding]) -> None:
        """Counts a program that has been run behind its memories."""
        worst = max(endings)
        self.programs += 1
        self.ended += worst == Ending.FINISH
        self.faulted += worst == Ending.FAULT
        self.deadlocked += worst == Ending.DEADLOCK
        self.unexpected_endings += bool(unexpected)
        self.unexpected += unexpected[: 1 if len(self.unexpected) < NAMED else 0]

    def merge(self, other: Tally) -> None:
        """Adds what another process has seen."""
        for f in fields(self):
            ours, theirs = getattr(self, f.name), getattr(other, f.name)
            joined = max(ours, theirs) if f.name == "max_cycle_error" else ours + theirs
            setattr(self, f.name, joined)


# Running many ----------------------------------------------------------------------------------


def memory_models(config: Config) -> list[Memory]:
    """The three memories every program meets: none to wait for, the config's own, a slow one."""
    port = config.port_bytes
    return [
        Memory(latency=0, bytes_per_cycle=port),
        config.memory,
        Memory(latency=193, bytes_per_cycle=max(port // 3, 1)),
    ]


def lockstep(
    machines: Machines,
    programs: int,
    seed: int,
    *,
    keep: int = 1,
    memories: int = MEMORIES,
    coverage: Coverage | None = None,
) -> Iterator[Tally]:
    """Runs cases ``seed`` .. ``seed + programs - 1``; yields after each.

    Each is run behind ``memories`` of the memory models, which take turns when these aren't all, or
    behind the board's. Up to ``keep`` differences are shrunk and kept; all are counted.
    """
    tally = Tally()
    models = [machines.memory] if machines.memory else memory_models(machines.config)
    for number in range(seed, seed + programs):
        case = machines.possible(random_case(machines.config, number))
        differs, endings, unexpected = False, [], []
        for turn in range(min(memories, len(models))):
            memory = models[(number + turn) % len(models)]
            simulated, rtl = machines.run(case, memory)
            tally.add(simulated, rtl)
            endings.append(simulated.ending)
            unexpected += unexpected_endings(number, case, memory, simulated)
            if coverage is not None:
                coverage.add(case, simulated)
            if result := first_difference(case, simulated, rtl):
                differs = True
                if len(tally.differences) < keep:
                    seen = Difference(case, memory, simulated, rtl, *result)
                    tally.differences.append(shrink(machines, seen))
        tally.end(endings, unexpected)
        tally.mismatches += differs
        yield tally


def unexpected_endings(
    number: int | None, case: Case, memory: Memory, outcome: Outcome
) -> list[UnexpectedEnding]:
    """Says how a program ended, unless it did so as it was made to, or chance decided."""
    if case.purpose in (None, outcome.ending):
        return []
    return [UnexpectedEnding(number, case.goal, memory, case.purpose, outcome.ending)]


def lockstep_in_parallel(
    config: Config,
    programs: int,
    seed: int,
    *,
    pool: JobPool,
    memories: int = MEMORIES,
    coverage: Coverage | None = None,
    board: str | None = None,
) -> Iterator[Tally]:
    """Runs ``lockstep`` in a pool's processes, on a ``board`` or on cores; yields after each CHUNK
    of cases. Build the model first.

    Raises:
        CheckError: a process was killed, or it couldn't run its programs.
        FarmError: nobody in the pool can build the RTL's model.
    """
    tally, end = Tally(), seed + programs
    setup = Setup(_Runner, (config, memories, coverage is not None, board))
    chunks = [(first, min(CHUNK, end - first)) for first in range(seed, end, CHUNK)]
    waiting = {first for first, _ in chunks}
    for number, answer in pool.run(Job(_Runner.run, chunk, setup, (RTL,)) for chunk in chunks):
        if answer.value is None:
            raise _failed(answer.note, min(waiting))
        waiting.remove(chunks[number][0])
        result, reached = answer.value
        result.differences = result.differences[: 1 - len(tally.differences)]
        result.unexpected = result.unexpected[: NAMED - len(tally.unexpected)]
        tally.merge(result)
        if coverage is not None:
            coverage.reached |= reached
        yield tally


def _failed(note: str, first: int) -> CheckError:
    return CheckError(
        f"workers: expected processes that run their programs, found one that doesn't: {note}; "
        f"every program before --seed {first} has been run"
    )


class _Runner:
    """State that a process of ``lockstep_in_parallel`` keeps from chunk to chunk."""

    def __init__(self, config: Config, memories: int, covers: bool, board: str | None) -> None:
        self.machines, self.memories = Machines(config, board=board), memories
        self.coverage = Coverage(config) if covers else None

    def run(self, seed: int, programs: int) -> tuple[Tally, set[str]]:
        """Runs some programs; what was seen, and the goals that were reached so far."""
        *_, tally = lockstep(
            self.machines, programs, seed, memories=self.memories, coverage=self.coverage
        )
        return tally, set() if self.coverage is None else self.coverage.reached


class LockstepDevice:
    """A device that runs each program on both machines, and goes on with the simulator's result."""

    name = "lockstep"

    def __init__(self, machines: Machines) -> None:
        self.machines, self.tally = machines, Tally()
        self.identity: Identity | None = Identity.of(machines.config)
        self.memory = machines.memory or machines.config.memory

    def allocate(self, size: int, constants: bytes) -> Dram:
        """A DRAM image in the host's memory."""
        return host_image(size, constants)

    def load(
        self, program: bytes, dram: Dram, given: Ranges = (), wanted: Ranges = ()
    ) -> Callable[[], DeviceResult]:
        """Places the stream in DRAM."""
        config = self.machines.config
        loaded = place(self.name, program, config, dram)
        raw = loaded.stream()

        def run() -> DeviceResult:
            whole = np.zeros(whole_pages(dram.size), np.uint8)
            whole[: dram.size] = dram
            case = Case(config, raw, loaded.base, whole, Identity.of(config))
            simulated, rtl = self.machines.run(case, self.memory)
            self._note(case, simulated, rtl)
            dram[:] = simulated.memories["dram"][: dram.size]
            return DeviceResult(simulated.cycles)

        return run

    def _note(self, case: Case, simulated: Outcome, rtl: Outcome) -> None:
        self.tally.add(simulated, rtl)
        self.tally.end([simulated.ending], unexpected_endings(None, case, self.memory, simulated))
        result = first_difference(case, simulated, rtl)
        if result:
            self.tally.mismatches += 1
            self.tally.differences.append(Difference(case, self.memory, simulated, rtl, *result))
