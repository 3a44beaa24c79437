"""Random programs on a board and on the simulator behind its memory: bytes, cycles, counters.

No board clears its scratchpads between programs, and most random programs read what they haven't
written. So each runs behind one that zeroes all of them, and is lockstep's own, by its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vdla.analysis.case import Bytes, Case, Ending, Outcome
from vdla.analysis.cases import random_case
from vdla.analysis.first_check.session import Figures, Session, StepFailure
from vdla.analysis.machines import simulate
from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.instructions import Finish, Load, memories
from vdla.isa.program import Program
from vdla.isa.registers import Cause, counter
from vdla.isa.ring import numbered
from vdla.runtime.board.driver import BoardFault, RunLimitError
from vdla.sim.random_programs import DATA_AT, DATA_BYTES

LEAST_INSTRUCTIONS = 12  # of a program that tells something
IMAGE_BYTES = DATA_AT + DATA_BYTES + 2 * PAGE_BYTES  # the data, what made programs add, a stream


class Finished(NamedTuple):
    """A program that ran to its FINISH: cycles, counters by name, and the DRAM it left."""

    cycles: int
    causes: Mapping[str, int]
    dram: Bytes


def check_programs(session: Session) -> Figures:
    """The programs' numbers, instructions, cycles expected and found.

    Raises:
        StepFailure: one ended otherwise than on the simulator, or left other bytes; or, where the
            memory is exact, took other cycles or counted otherwise.
        LinkError: the board doesn't answer.
    """
    rows: list[Figures] = []
    clearing = clearing_case(session.config)
    cleared = simulate(clearing, session.config.memory)
    for seed, case, simulated in sound_cases(session.config, session.programs):
        session.progress("programs", len(rows), session.programs)
        _compare(session, "the program that zeroes scratchpads", clearing, cleared, rows)
        actual = _compare(session, f"program {seed}", case, simulated, rows)
        cycles = {"expected": simulated.cycles, "found": actual.cycles}
        instructions = len(case.stream.instructions)
        rows.append({"seed": seed, "instructions": instructions, "cycles": cycles})
    return {"programs": rows}


def _compare(
    session: Session, what: str, case: Case, expected: Outcome, rows: Sequence[Figures]
) -> Finished:
    """A program's end on the board.

    Raises:
        StepFailure: it is otherwise than expected; has the ``rows`` before it.
    """
    try:
        actual = run_case(session, case)
        wrong = difference(expected, actual, session.exact)
    except (BoardFault, RunLimitError) as error:
        wrong = f"its FINISH, found {error}"
    if not wrong:
        return actual
    figures = {"programs": rows, "program": what, "difference": f"expected {wrong}"}
    raise StepFailure(f"{session.transport.name}: {what}: expected {wrong}", figures)


def sound_cases(config: Config, count: int) -> Iterator[tuple[int, Case, Outcome]]:
    """The first lockstep programs that run to their FINISH as they are: number, case and outcome
    behind the config's memory."""
    seed = 0
    while count:
        case = compact(random_case(config, seed))
        if _is_sound(case):
            simulated = simulate(case, config.memory)
            if simulated.ending == Ending.FINISH:
                count -= 1
                yield seed, case, simulated
        seed += 1


def _is_sound(case: Case) -> bool:
    """Whether a case was made to end with FINISH, and isn't over at once."""
    sound = case.purpose == Ending.FINISH and not case.mistake and case.errors == (0, 0)
    return sound and len(case.stream.instructions) >= LEAST_INSTRUCTIONS


def compact(case: Case) -> Case:
    """The case in the IMAGE_BYTES that its data reach to, so that a line moves less."""
    return replace(case, dram=case.dram[:IMAGE_BYTES]).with_raw(case.raw)


def clearing_case(config: Config) -> Case:
    """A program that zeroes every scratchpad: a LOAD of padding alone for each."""
    buffers = {memory.buffer: memory for memory in reversed(memories(config))}
    loads = [
        Load(memory=memory, pad_x0=1, y_size=config.depth(buffer), z_size=1)
        for buffer, memory in buffers.items()
    ]
    return Case.of(Program(config, [*loads, Finish()]), PAGE_BYTES)


def run_case(session: Session, case: Case) -> Finished:
    """The case on the board, from the scratchpads as they are.

    Raises:
        BoardFault: the core stopped at a fault.
        RunLimitError: the program didn't end within the limit.
        LinkError: the board doesn't answer.
    """
    transport, driver = session.transport, session.device.driver
    image, address = transport.allocate(case.dram.size)
    image[:] = case.dram
    transport.upload(image, 0, image.size)
    transport.release(image, 0, image.size)
    length = len(case.stream.instructions)
    driver.run(address, image.size, case.base, length, case.identity)
    engines = numbered(case.config)
    counted = driver.counters(engines)
    transport.download(image, 0, image.size)
    causes = {
        counter(engine, cause): counted.causes[engine.name][cause.name.lower()]
        for engine in engines
        for cause in Cause
    }
    return Finished(counted.cycles, causes, image)


def difference(expected: Outcome, actual: Finished, exact: bool) -> str:
    """Words about what differs first, ``… , found …``; none where nothing does. Cycles and counters
    count where they are ``exact``."""
    if exact and expected.cycles != actual.cycles:
        return f"{expected.cycles:,} cycles, found {actual.cycles:,}"
    for name, count in expected.causes.items() if exact else ():
        if actual.causes[name] != count:
            return f"{count:,} in counter {name}, found {actual.causes[name]:,}"
    own, other = expected.memories["dram"], actual.dram
    if (apart := np.flatnonzero(own != other)).size:
        at = int(apart[0])
        return (
            f"byte {at:#x} of DRAM to be {own[at]:#04x}, found {other[at]:#04x}; "
            f"{apart.size:,} of {own.size:,} bytes differ"
        )
    return ""
