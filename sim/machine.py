"""The simulated accelerator: timing, numerics, and faults in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vdla.isa.asm import format_instruction
from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.instructions import SIDES, Instruction
from vdla.isa.registers import Fault
from vdla.isa.ring import engines, ring_of
from vdla.sim import timing
from vdla.sim.semantics import ALL_RAN, State
from vdla.sim.stream import Bytes, Stream
from vdla.sim.timing import CAUSES, Clock
from vdla.support.errors import CheckError


class SimulationError(CheckError):
    """A program that the machine can't run to its end: a deadlock or a fault."""


class FaultError(SimulationError):
    """A fault: docs/timing.md, section 9. ``instruction`` is its index, ``cycle`` when."""

    def __init__(self, fault: Fault, instruction: int, cycle: int, text: str) -> None:
        super().__init__(f"fault {fault.name} in cycle {cycle} at {instruction}: {text}")
        self.fault, self.instruction, self.cycle = fault, instruction, cycle


@dataclass(frozen=True)
class Run:
    """Result of a run: the cycle each instruction started and finished in, and the causes.

    ``causes[engine][cause]`` counts cycles; an engine's causes add up to ``cycles``.
    """

    config: Config
    instructions: Sequence[Instruction]
    cycles: int
    start: NDArray[np.int64]
    finish: NDArray[np.int64]
    causes: dict[str, dict[str, int]]


def simulate(
    config: Config,
    instructions: Sequence[Instruction],
    dram: Bytes,
    base: int = 0,
    *,
    numerics: bool = True,
) -> Run:
    """Runs a program whose stream lies at ``base`` in ``dram``; DRAM is updated in place.

    ``numerics=False`` computes cycles alone and leaves DRAM as it is.

    Raises:
        FaultError: a fault stops the machine.
        SimulationError: the machine stands still, with the instructions and what they wait for; or
            micro-ops are loaded while they run, and lead beyond a memory.
    """
    return run_stream(Stream.of(config, instructions, base), dram, numerics=numerics)


def run_stream(stream: Stream, dram: Bytes, *, numerics: bool = True) -> Run:
    """Simulates a stream that was laid out before, and may be run often."""
    result = run_cycles(stream, dram)
    if numerics:
        run_functional(stream, result.finish, dram)
    return result


def run_cycles(stream: Stream, dram: Bytes) -> Run:
    """Counts the cycles of a stream, and leaves DRAM as it is.

    They depend on the stream and on ``stream.micro_ops(dram)``, not on what else DRAM holds.

    Raises:
        FaultError, SimulationError: as ``simulate``.
    """
    config, instructions = stream.config, stream.instructions
    clock = Clock(stream, dram)
    if clock.fault:
        raise _fault_error(stream, clock)
    if clock.cycles < 0:
        raise SimulationError(deadlock_report(stream, clock.start))
    causes = {
        engine.name: dict(zip(CAUSES, map(int, clock.causes[engine]), strict=True))
        for engine in engines(config)
    }
    return Run(config, instructions, clock.cycles, clock.start, clock.finish, causes)


def run_functional(stream: Stream, finish: NDArray[np.int64], dram: Bytes) -> State:
    """Runs the effects of a stream in the order in which its instructions finish.

    DRAM is updated in place; what the on-chip memories hold in the end is in the result.

    Raises:
        SimulationError: an instruction reads micro-ops while others are loaded in their place, and
            these lead beyond a memory. DRAM is left between its values before and after.
    """
    whole = dram
    if dram.size % PAGE_BYTES:  # the machine may read up to the end of the last page
        whole = np.zeros(-(-dram.size // PAGE_BYTES) * PAGE_BYTES, np.uint8)
        whole[: dram.size] = dram
    state = State(stream.config, whole)
    stopped = state.run(stream.rows, np.lexsort((stream.rows[:, 0], finish)))
    if stopped != ALL_RAN:
        raise SimulationError(_undefined(stream, stopped))
    if whole is not dram:
        dram[:] = whole[: dram.size]
    return state


def _undefined(stream: Stream, index: int) -> str:
    text = format_instruction(stream.instructions[index])
    return (
        f"instruction {index}: expected micro-ops that no LOAD changes while they run, found ones "
        f"that lead beyond a memory: {text}"
    )


def _fault_error(stream: Stream, clock: Clock) -> FaultError:
    known = clock.fault_row < len(stream.instructions)
    text = format_instruction(stream.instructions[clock.fault_row]) if known else "no instruction"
    return FaultError(clock.fault, clock.fault_row, clock.cycles - 1, text)


def warm_up(config: Config) -> None:
    """Has the loops ready that run programs of a config, before anything is timed."""
    State(config, np.zeros(PAGE_BYTES, np.uint8)).prepare()
    timing.warm_up(config)


def deadlock_report(stream: Stream, start: Sequence[int] | NDArray[np.int64]) -> str:
    """Which instruction each engine stands at, and the tokens it pops."""
    waits = []
    ring = ring_of(stream.config)
    for engine in ring.engines:
        stuck = next((i for i in stream.engine(engine) if start[i] < 0), None)
        if stuck is None:
            continue
        each, neighbours = stream.instructions[stuck], ring.neighbours(engine)
        sources = [neighbours[side].name for side in SIDES if getattr(each, f"pop_{side}")]
        wait = f"a token from {' and '.join(sources)}" if sources else "a free token slot"
        waits.append(f"{engine.name} waits for {wait} at {stuck}: {format_instruction(each)}")
    return "deadlock: " + "; ".join(waits)
