"""Lockstep of netlists: programs on the simulator, and on a board as yosys or nextpnr has it.

A netlist is spoken to as the board will be, over its serial line: so what is compared is how a
program ends, its cycles, the counters, and its DRAM. When instructions start and finish can't be
seen from there, nor what the scratchpads hold. Programs run 64 at a time, a netlist in each copy.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from vdla.analysis.case import Case, Outcome
from vdla.analysis.cases import random_case
from vdla.analysis.coverage import Coverage
from vdla.analysis.lockstep import Tally, unexpected_endings
from vdla.analysis.machines import Difference, first_difference, last_cycle, simulate
from vdla.boards import find_board, memory_of
from vdla.boards.netlists.bench import NetlistBench, Program, Result
from vdla.boards.netlists.circuit import Circuit
from vdla.boards.netlists.copies import COPIES
from vdla.isa.config import Config
from vdla.isa.memory import Memory

SPARE_CYCLES = 2000  # that a netlist gets beyond the simulator's


class Netlists:
    """Boards of one netlist, and the simulator behind the board's memory.

    Raises:
        BoardError: the board's memory is none for the config.
        DeviceError: there is no g++.
    """

    def __init__(self, circuit: Circuit, board: str, config: Config) -> None:
        self.board, self.config = board, config
        whole = find_board(board)
        self.memory: Memory = memory_of(whole, config)
        self.bench = NetlistBench(circuit, whole, config)

    def run(self, cases: Sequence[Case]) -> list[tuple[Outcome, Outcome]]:
        """Both outcomes of up to 64 cases, of the simulator and of the netlist."""
        simulated = [simulate(case, self.memory) for case in cases]
        return list(zip(simulated, self.run_netlist(cases, simulated), strict=True))

    def run_netlist(self, cases: Sequence[Case], simulated: Sequence[Outcome]) -> list[Outcome]:
        """The cases on the netlist; each is given the simulator's time and SPARE_CYCLES more."""
        programs = [
            Program(
                case.dram,
                case.base,
                len(case.stream.instructions),
                case.identity,
                last_cycle(each) + SPARE_CYCLES,
            )
            for case, each in zip(cases, simulated, strict=True)
        ]
        begun = time.perf_counter()
        results = self.bench.run(programs)
        seconds = (time.perf_counter() - begun) / len(cases)
        return [
            _outcome(result, each, seconds) for result, each in zip(results, simulated, strict=True)
        ]


def _outcome(result: Result, simulated: Outcome, seconds: float) -> Outcome:
    """A netlist's outcome, with the simulator's in the place of what can't be seen from outside."""
    return replace(
        simulated,
        cycles=result.cycles,
        causes=result.causes,
        fault=result.fault,
        fault_at=result.fault_at if result.fault else 0,
        memories={**simulated.memories, "dram": result.dram},
        seconds=seconds,
        overdue=result.trouble,
    )


def lockstep_netlist(
    machines: Netlists, programs: int, seed: int, *, keep: int = 1, coverage: Coverage | None = None
) -> Iterator[Tally]:
    """Runs cases ``seed`` .. ``seed + programs - 1`` on a netlist; yields after each 64.

    Up to ``keep`` differences are kept, as they were seen; all are counted.
    """
    tally = Tally()
    for first in range(seed, seed + programs, COPIES):
        numbers = range(first, min(first + COPIES, seed + programs))
        cases = [random_case(machines.config, number).without_errors() for number in numbers]
        outcomes = machines.run(cases)
        for number, case, (simulated, netlist) in zip(numbers, cases, outcomes, strict=True):
            tally.add(simulated, netlist)
            tally.end(
                [simulated.ending], unexpected_endings(number, case, machines.memory, simulated)
            )
            if coverage is not None:
                coverage.add(case, simulated)
            if result := difference(case, simulated, netlist):
                tally.mismatches += 1
                if len(tally.differences) < keep:
                    seen = Difference(case, machines.memory, simulated, netlist, *result)
                    tally.differences.append(
                        replace(seen, where=f"{seen.where} of program {number}")
                    )
        yield tally


def difference(case: Case, simulated: Outcome, netlist: Outcome) -> tuple[str, int | None] | None:
    """First difference of what can be seen from outside; None when there is none."""
    if netlist.overdue:
        return netlist.overdue, None
    if not netlist.causes:
        return "the answer", None
    return first_difference(case, simulated, netlist)
