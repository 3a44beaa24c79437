"""Simulator and RTL side by side: how a case ends on each, and what differs first.

Both machines report an outcome: each instruction's start and finish, the counters, the fault, and
what all memories hold. Outcomes are equal or they are not; there is no tolerance.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.analysis.case import Bytes, Case, Cycles, Outcome
from vdla.boards import find_board
from vdla.boards.connect import open_design
from vdla.isa.asm import format_instruction
from vdla.isa.config import Config
from vdla.isa.memory import Memory
from vdla.isa.registers import Cause, counter, instruction_address
from vdla.isa.ring import numbered, ring_of
from vdla.runtime.rtl.bench import Bench
from vdla.runtime.rtl.build import build, scratchpads
from vdla.sim.machine import run_functional, warm_up
from vdla.sim.semantics import State
from vdla.sim.stream import Stream
from vdla.sim.timing import Clock

SPARE_CYCLES = 100_000  # that the RTL gets beyond twice the simulator's: a fifth of a second


class Machines:
    """A simulator and a Verilated core of one config, side by side.

    With a ``board``, by its name, the core's bench is that board's whole design, and ``memory`` the
    only one that there is. Bus errors don't occur there.

    Raises:
        BoardError: there is no such board, its design has no memory, or none for the config.
    """

    def __init__(
        self,
        config: Config,
        board: str | None = None,
    ) -> None:
        warm_up(config)
        self.config, self.board = config, board
        self.memory: Memory | None = None
        if board is None:
            self._make: Callable[[], Bench] = partial(Bench, config, build(config))
        else:
            self._make, self.memory = open_design(find_board(board), config)
        self.bench = self._make()

    def renew(self) -> None:
        """Puts a core in the place of this one that has run nothing yet."""
        self.bench.close()
        self.bench = self._make()

    def possible(self, case: Case) -> Case:
        """A case as these machines can run it: without bus errors where there are none."""
        return case if self.board is None else case.without_errors()

    def run(self, case: Case, memory: Memory) -> tuple[Outcome, Outcome]:
        """Both outcomes of a case in front of a memory."""
        simulated = simulate(case, memory)
        return simulated, self.run_rtl(case, memory, limit_of(simulated))

    def run_rtl(self, case: Case, memory: Memory, limit: int | None = None) -> Outcome:
        """The case on the RTL, from cleared scratchpads, for at most ``limit`` cycles."""
        return run_on(self.bench, case, memory, limit)


def run_on(bench: Bench, case: Case, memory: Memory, limit: int | None = None) -> Outcome:
    """The case on a bench's RTL, from cleared scratchpads, for at most ``limit`` cycles."""
    stream, dram = case.stream, case.dram.copy()
    rows = {engine: stream.engine(engine) for engine in numbered(bench.config)}
    counts = [len(each) for each in rows.values()]
    bench.clear()
    length = len(stream.instructions)
    begun_at = time.perf_counter()
    bench.attach(dram, memory=memory, errors=case.errors)
    stopped = bench.run(case.base, counts, identity=case.identity, length=length, limit=limit)
    seconds = time.perf_counter() - begun_at
    start, finish = np.full(length, -1, np.int64), np.full(length, -1, np.int64)
    for engine in rows:
        start[rows[engine]] = stopped.start[engine]
        finish[rows[engine]] = stopped.finish[engine]
    if stopped.fault:
        for events in (start, finish):
            events[events == stopped.cycles - 1] = -1
    elif stopped.cycles >= 0:
        start[-1] = finish[-1] = stopped.cycles - 1
    memories = {name: bench.scratchpad(name).copy() for name in scratchpads(bench.config)}
    return Outcome(
        stopped.cycles,
        start,
        finish,
        {counter(e, c): stopped.causes[e][c] for e in rows for c in Cause},
        stopped.fault,
        stopped.fault_instruction if stopped.fault else 0,
        {"dram": dram, **memories},
        seconds,
        standing(stream, start, finish, limit) if stopped.overdue and limit else "",
    )


def limit_of(simulated: Outcome) -> int:
    """Cycles in which the RTL must have come to an end, as the simulator did: far beyond that, so
    that a core that is late shows how late it is."""
    return 2 * last_cycle(simulated) + SPARE_CYCLES


def last_cycle(outcome: Outcome) -> int:
    """The last cycle in which anything is known to happen: the end, or an instruction's."""
    events = (int(each.max(initial=0)) for each in (outcome.start, outcome.finish))
    return max(outcome.cycles, *events)


def standing(stream: Stream, start: Cycles, finish: Cycles, limit: int) -> str:
    """The instruction that has been at work for longest in a machine that was stopped."""
    under_way = np.flatnonzero((start >= 0) & (finish < 0))
    text = f"expected the RTL to end within {limit:,} cycles, found "
    if not under_way.size:
        return f"{text}that no instruction is under way, and the bus is"
    at = int(under_way[int(np.argmin(start[under_way]))])
    each = stream.instructions[at]
    engine = ring_of(stream.config).engine_of(each).name
    since = f"instruction {at} unfinished since cycle {start[at]}"
    return f"{text}{engine} at {since}: {format_instruction(each)}"


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
    engines = numbered(case.config)
    causes = {counter(e, c): int(clock.causes[e, c]) for e in engines for c in Cause}
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
    for name in scratchpads(state.config):
        if name not in arrays:  # an option's memory, or one of several that hold the same
            arrays[name] = state.options[name.partition(".")[0]]
    return {name: a.reshape(len(a), -1).view(np.uint8) for name, a in arrays.items()}


# Comparing -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A case on which the machines differ, shrunk; ``where`` names the first thing that does."""

    case: Case
    memory: Memory
    simulated: Outcome
    rtl: Outcome
    where: str
    instruction: int | None


def cycle_error(simulated: Outcome, rtl: Outcome) -> int:
    """The largest difference of any start, finish or total."""
    error = abs(simulated.cycles - rtl.cycles)
    for a, b in ((simulated.start, rtl.start), (simulated.finish, rtl.finish)):
        error = max(error, int(np.abs(a - b).max(initial=0)))
    return error


def first_difference(case: Case, simulated: Outcome, rtl: Outcome) -> tuple[str, int | None] | None:
    """First difference, and its instruction; None when the outcomes are equal."""
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
    if rtl.overdue:
        return "the end", None
    deadlock = simulated.cycles < 0
    for name, count in simulated.causes.items():
        if count != rtl.causes[name] and not deadlock:  # each stands still for its own time
            return f"counter {name}", None
    if deadlock or simulated.fault or case.mistake:
        return None
    for name, content in simulated.memories.items():
        if not np.array_equal(content, rtl.memories[name]):
            first = int(np.flatnonzero((content != rtl.memories[name]).reshape(-1))[0])
            return f"byte {first:#x} of {name}", None
    return None
