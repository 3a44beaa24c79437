"""Lockstep: one program on the simulator and on the RTL, compared in every cycle and every byte.

A case is a program, random or made for a goal (``cases.py``). Both machines report an outcome: each
instruction's start and finish, the counters, the fault, and what all memories hold. Outcomes are
equal or they are not; there is no tolerance. A case that differs is shrunk as long as the machines
still differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, fields, replace
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.analysis.cases import Bytes, Case, Outcome, random_case
from vdla.analysis.coverage import Coverage
from vdla.isa.config import Config, Memory
from vdla.isa.identity import Identity
from vdla.isa.instructions import Engine, Instruction
from vdla.isa.registers import Cause, instruction_address
from vdla.runtime.devices.base import DeviceResult
from vdla.runtime.dram import Dram, Ranges, host_image, place, whole_pages
from vdla.runtime.rtl.bench import Bench
from vdla.runtime.rtl.build import build
from vdla.sim.checker import check
from vdla.sim.machine import SimulationError, run_functional, warm_up
from vdla.sim.semantics import State
from vdla.sim.timing import Clock
from vdla.support.errors import CheckError

SCRATCHPADS = ("inp", "wgt", "acc", "uop")
MEMORIES = 3
CHUNK = 50  # cases that a process runs at once


@dataclass(frozen=True)
class Difference:
    """A case on which the machines differ, shrunk; ``where`` names the first thing that does."""

    case: Case
    memory: Memory
    simulated: Outcome
    rtl: Outcome
    where: str
    instruction: int | None


@dataclass
class Tally:
    """What lockstep has seen so far."""

    programs: int = 0
    instructions: int = 0
    mismatches: int = 0
    max_cycle_error: int = 0
    cycles: int = 0
    rtl_seconds: float = 0.0
    sim_seconds: float = 0.0
    differences: list[Difference] = field(default_factory=list)

    def add(self, simulated: Outcome, rtl: Outcome) -> None:
        """Counts one pair of outcomes."""
        self.instructions += len(simulated.start)
        self.cycles += max(simulated.cycles, 0)
        self.sim_seconds += simulated.seconds
        self.rtl_seconds += rtl.seconds
        self.max_cycle_error = max(self.max_cycle_error, cycle_error(simulated, rtl))

    def merge(self, other: Tally) -> None:
        """Adds what another process has seen."""
        for f in fields(self):
            ours, theirs = getattr(self, f.name), getattr(other, f.name)
            joined = max(ours, theirs) if f.name == "max_cycle_error" else ours + theirs
            setattr(self, f.name, joined)


class Machines:
    """A simulator and a Verilated core of one config, side by side."""

    def __init__(self, config: Config, report: Callable[[str], None] = lambda text: None) -> None:
        warm_up()
        self.config = config
        self.library = build(config, report=report)
        self.bench = Bench(config, self.library)

    def renew(self) -> None:
        """Puts a core in the place of this one that has run nothing yet."""
        self.bench.close()
        self.bench = Bench(self.config, self.library)

    def run(self, case: Case, memory: Memory) -> tuple[Outcome, Outcome]:
        """Both outcomes of a case in front of a memory."""
        return simulate(case, memory), self.run_rtl(case, memory)

    def run_rtl(self, case: Case, memory: Memory) -> Outcome:
        """The case on the RTL, from cleared scratchpads."""
        stream, dram = case.stream, case.dram.copy()
        rows = {engine: stream.engine(engine) for engine in Engine}
        counts = [len(rows[engine]) for engine in Engine]
        self.bench.clear()
        length = len(stream.instructions)
        begun_at = time.perf_counter()
        stopped = self.bench.run(
            dram,
            case.base,
            counts,
            memory=memory,
            identity=case.identity,
            length=length,
            errors=case.errors,
        )
        seconds = time.perf_counter() - begun_at
        start, finish = np.full(length, -1, np.int64), np.full(length, -1, np.int64)
        for engine in Engine:
            start[rows[engine]] = stopped.start[engine]
            finish[rows[engine]] = stopped.finish[engine]
        if stopped.fault:
            for events in (start, finish):
                events[events == stopped.cycles - 1] = -1
        elif stopped.cycles >= 0:
            start[-1] = finish[-1] = stopped.cycles - 1
        return Outcome(
            stopped.cycles,
            start,
            finish,
            {f"{e.name}_{c.name}": stopped.causes[e][c] for e in Engine for c in Cause},
            stopped.fault,
            stopped.fault_instruction if stopped.fault else 0,
            {"dram": dram, **{name: self.bench.scratchpad(name).copy() for name in SCRATCHPADS}},
            seconds,
        )


@cache
def behind(config: Config, memory: Memory) -> Config:
    """The config in front of a memory."""
    return replace(config, memory=memory)


def simulate(case: Case, memory: Memory) -> Outcome:
    """The case on the simulator."""
    stream = replace(case.stream, config=behind(case.config, memory))
    dram = case.dram.copy()
    begun_at = time.perf_counter()
    clock = Clock(stream, dram, identity=case.identity, errors=case.errors)
    memories = {"dram": dram}
    if clock.cycles >= 0 and not clock.fault:
        memories |= _scratchpads(run_functional(stream, clock.finish, dram))
    seconds = time.perf_counter() - begun_at
    at = instruction_address(case.config, case.base, clock.fault_row) if clock.fault else 0
    causes = {f"{e.name}_{c.name}": int(clock.causes[e, c]) for e in Engine for c in Cause}
    return Outcome(
        clock.cycles, clock.start, clock.finish, causes, clock.fault, at, memories, seconds
    )


def _scratchpads(state: State) -> dict[str, Bytes]:
    arrays: dict[str, NDArray[Any]] = {
        "inp": state.inp,
        "wgt": state.wgt,
        "acc": state.acc,
        "uop": state.uop_raw,
    }
    return {name: a.reshape(len(a), -1).view(np.uint8) for name, a in arrays.items()}


# Comparing -------------------------------------------------------------------------------------


def cycle_error(simulated: Outcome, rtl: Outcome) -> int:
    """The largest difference of any start, finish or total."""
    error = abs(simulated.cycles - rtl.cycles)
    for a, b in ((simulated.start, rtl.start), (simulated.finish, rtl.finish)):
        error = max(error, int(np.abs(a - b).max(initial=0)))
    return error


def first_difference(case: Case, simulated: Outcome, rtl: Outcome) -> tuple[str, int | None] | None:
    """What differs first, and at which instruction; None when the outcomes are equal."""
    times = [simulated.start, rtl.start, simulated.finish, rtl.finish]
    apart = np.flatnonzero((times[0] != times[1]) | (times[2] != times[3]))
    if apart.size:
        earliest = [
            min(int(t[i]) for t in times if t[i] >= 0) if any(t[i] >= 0 for t in times) else 0
            for i in apart
        ]
        at = int(apart[int(np.argmin(earliest))])
        return f"instruction {at}", at
    if (simulated.fault, simulated.fault_at) != (rtl.fault, rtl.fault_at):
        return "the fault", None
    if simulated.cycles != rtl.cycles:
        return "the cycles", None
    deadlock = simulated.cycles < 0
    for name, count in simulated.causes.items():
        if count != rtl.causes[name] and not deadlock:  # each stands still for its own time
            return f"counter {name}", None
    if deadlock or simulated.fault or case.spoilt:
        return None
    for name, content in simulated.memories.items():
        if not np.array_equal(content, rtl.memories[name]):
            first = int(np.flatnonzero((content != rtl.memories[name]).reshape(-1))[0])
            return f"byte {first:#x} of {name}", None
    return None


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

    Each is run behind ``memories`` of the memory models, which take turns when these aren't all. Up
    to ``keep`` differences are shrunk and kept; all are counted.
    """
    tally, models = Tally(), memory_models(machines.config)
    for number in range(seed, seed + programs):
        case = random_case(machines.config, number)
        differs = False
        for turn in range(memories):
            memory = models[(number + turn) % MEMORIES]
            simulated, rtl = machines.run(case, memory)
            tally.add(simulated, rtl)
            if coverage is not None:
                coverage.add(case, simulated)
            if found := first_difference(case, simulated, rtl):
                differs = True
                if len(tally.differences) < keep:
                    seen = Difference(case, memory, simulated, rtl, *found)
                    tally.differences.append(shrink(machines, seen))
        tally.programs += 1
        tally.mismatches += differs
        yield tally


def lockstep_in_parallel(
    config: Config,
    programs: int,
    seed: int,
    *,
    workers: int,
    memories: int = MEMORIES,
    coverage: Coverage | None = None,
) -> Iterator[Tally]:
    """As ``lockstep``, in several processes; yields after each CHUNK of cases. Build the model
    first.

    Raises:
        CheckError: the system killed one of the processes.
    """
    tally, end = Tally(), seed + programs
    with ProcessPoolExecutor(
        workers, get_context("spawn"), _start_worker, (config, memories, coverage is not None)
    ) as pool:
        chunks = {
            pool.submit(_run_chunk, first, min(CHUNK, end - first)): first
            for first in range(seed, end, CHUNK)
        }
        for done in as_completed(chunks):
            if isinstance(done.exception(), BrokenProcessPool):
                raise _killed([first for each, first in chunks.items() if each.exception()])
            found, reached = done.result()
            found.differences = found.differences[: 1 - len(tally.differences)]
            tally.merge(found)
            if coverage is not None:
                coverage.reached |= reached
            yield tally


def _killed(unfinished: Sequence[int]) -> CheckError:
    return CheckError(
        "workers: expected processes that run their programs, found one killed (out of memory?); "
        f"every program before --seed {min(unfinished)} has been run"
    )


@dataclass(frozen=True)
class _Worker:
    """What a process of ``lockstep_in_parallel`` keeps from chunk to chunk."""

    machines: Machines
    memories: int
    coverage: Coverage | None


_worker: _Worker | None = None


def _start_worker(config: Config, memories: int, covers: bool) -> None:
    global _worker
    _worker = _Worker(Machines(config), memories, Coverage(config) if covers else None)


def _run_chunk(seed: int, programs: int) -> tuple[Tally, set[str]]:
    assert _worker is not None
    coverage = _worker.coverage
    *_, tally = lockstep(
        _worker.machines, programs, seed, memories=_worker.memories, coverage=coverage
    )
    return tally, set() if coverage is None else coverage.reached


class LockstepDevice:
    """A device that runs each program on both machines, and goes on with the simulator's result."""

    name = "lockstep"

    def __init__(self, machines: Machines) -> None:
        self.machines, self.tally = machines, Tally()
        self.identity: Identity | None = Identity.of(machines.config)

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
            simulated, rtl = self.machines.run(case, config.memory)
            self._note(case, simulated, rtl)
            dram[:] = simulated.memories["dram"][: dram.size]
            return DeviceResult(simulated.cycles)

        return run

    def _note(self, case: Case, simulated: Outcome, rtl: Outcome) -> None:
        self.tally.programs += 1
        self.tally.add(simulated, rtl)
        found = first_difference(case, simulated, rtl)
        if found:
            memory = self.machines.config.memory
            self.tally.mismatches += 1
            self.tally.differences.append(Difference(case, memory, simulated, rtl, *found))


# Shrinking -------------------------------------------------------------------------------------


def shrink(machines: Machines, seen: Difference) -> Difference:
    """The smallest case found that still differs, by leaving out instructions and work.

    Each try has a new core, so that what is found doesn't hang on what ran before it. A difference
    that does is given back as it was seen.
    """

    def tried(case: Case) -> Difference | None:
        machines.renew()
        try:
            simulated, rtl = machines.run(case, seen.memory)
        except SimulationError:  # it reads micro-ops while they are loaded
            return None
        found = first_difference(case, simulated, rtl)
        return Difference(case, seen.memory, simulated, rtl, *found) if found else None

    smallest = tried(seen.case)
    if smallest is None:
        return replace(seen, where=f"{seen.where}, only after the programs before it")
    while smaller := next(
        (d for c in _candidates(smallest.case) if _is_fair(c) and (d := tried(c))), None
    ):
        smallest = smaller
    return smallest


def _is_fair(case: Case) -> bool:
    """A program that was sound stays sound, so that its memories are determined."""
    if case.spoilt:
        return True
    return not check(case.config, case.stream.instructions, case.dram, case.base)


def _candidates(case: Case) -> Iterator[Case]:
    """Simpler cases, the boldest first."""
    if case.spoilt == "opcode":
        return
    stream = list(case.stream.instructions)
    body, tail = stream[:-1], stream[-1:]
    step = len(body)
    while step >= 1:
        for first in range(0, len(body), step):
            left = _without(body, range(first, min(first + step, len(body))))
            yield case.with_instructions([*left, *tail])
        step //= 2
    for i, each in enumerate(body):
        for simpler in _simpler(each):
            yield case.with_instructions([*body[:i], simpler, *body[i + 1 :], *tail])


def _simpler(each: Instruction) -> Iterator[Instruction]:
    """The instruction with one field at its default, or halved."""
    for f in each.fields[1:]:
        value = getattr(each, f.name)
        if f.name.startswith(("pop", "push")) or value == f.default:
            continue
        yield each.replace(**{f.name: f.default})
        if value > 1:
            yield each.replace(**{f.name: value // 2})


def _without(stream: Sequence[Instruction], gone: range) -> list[Instruction]:
    """A stream less some instructions, and less the other ends of their tokens."""
    changes: dict[int, dict[str, int]] = {}
    for engine in Engine:
        for push, pop, other in (
            ("push_next", "pop_prev", engine.next),
            ("push_prev", "pop_next", engine.prev),
        ):
            givers = [i for i, s in enumerate(stream) if s.engine == engine and getattr(s, push)]
            takers = [i for i, s in enumerate(stream) if s.engine == other and getattr(s, pop)]
            for giver, taker in zip(givers, takers, strict=False):
                if giver in gone or taker in gone:
                    changes.setdefault(giver, {})[push] = 0
                    changes.setdefault(taker, {})[pop] = 0
    return [each.replace(**changes.get(i, {})) for i, each in enumerate(stream) if i not in gone]
