"""State machine common to all engines: queues, starts, finishes, causes of cycles.

An instruction starts when its queue holds it and its tokens allow it; an engine's instructions
start and finish in program order.
"""

from __future__ import annotations

from vdla.sim.compiled import inline
from vdla.sim.timing.constants import DRAIN, FETCH_WAIT, TOKEN
from vdla.sim.timing.state import Machine, Tables
from vdla.sim.timing.tokens import pop, push, tokens_allow


@inline
def has_room(m: Machine, engine: int) -> bool:
    """Whether the engine's queue takes another instruction."""
    waiting = m.engines.issued[engine] - m.engines.started[engine]
    return bool(waiting < m.settings.command_queue)


@inline
def issue(m: Machine, engine: int) -> None:
    """Puts the next of its instructions into an engine's queue."""
    m.engines.issued_next[engine] += 1


@inline
def commit_issues(m: Machine, t: Tables) -> None:
    """Makes what was issued in this cycle visible."""
    for engine in range(len(t.variant.engines)):
        m.engines.issued[engine] = m.engines.issued_next[engine]


@inline
def show_issued(m: Machine, t: Tables) -> bool:
    """Shows the engines what was issued before this cycle, from the next one on; true if any."""
    moved = False
    for engine in range(len(t.variant.engines)):
        moved |= m.engines.shown[engine] != m.engines.issued[engine]
        m.engines.shown[engine] = m.engines.issued[engine]
    return moved


@inline
def can_start(m: Machine, t: Tables, engine: int) -> bool:
    """Whether the engine's next instruction is there, with its tokens and its token slots."""
    if m.engines.started[engine] == m.engines.shown[engine]:
        return False
    return tokens_allow(m, t, t.order[engine, m.engines.started[engine]], engine)


@inline
def start(m: Machine, t: Tables, engine: int, now: int) -> int:
    """Starts the engine's next instruction; its row."""
    row = t.order[engine, m.engines.started[engine]]
    m.engines.started[engine] += 1
    t.start[row] = now
    pop(m, t, row, engine)
    return int(row)


@inline
def finish(m: Machine, t: Tables, engine: int, now: int) -> None:
    """Finishes the engine's oldest instruction."""
    row = t.order[engine, m.engines.finished[engine]]
    m.engines.finished[engine] += 1
    t.finish[row] = now
    push(m, t, row, engine)


@inline
def in_flight(m: Machine, engine: int) -> int:
    """The engine's instructions that have started and not finished."""
    return int(m.engines.started[engine] - m.engines.finished[engine])


@inline
def all_finished(m: Machine, t: Tables) -> bool:
    """Whether every engine has finished all it was given."""
    busy = False
    for engine in range(len(t.variant.engines)):
        busy |= m.engines.finished[engine] != m.engines.issued[engine]
    return not busy


@inline
def end_program(m: Machine, t: Tables, now: int) -> None:
    """FINISH starts and finishes, in a cycle in which nobody has anything to do."""
    t.start[-1] = t.finish[-1] = now
    for engine in range(len(t.variant.engines)):
        m.engines.cause[engine] = DRAIN


@inline
def note_cause(m: Machine, engine: int, cause: int) -> None:
    """Says what this cycle of an engine went to."""
    m.engines.cause[engine] = cause


@inline
def count_causes(m: Machine, t: Tables, cycles: int) -> None:
    """Books this cycle, and those after it that are passed over, on each engine's cause."""
    for engine in range(len(t.variant.engines)):
        m.engines.causes[engine, m.engines.cause[engine]] += cycles


@inline
def idle_cause(m: Machine, t: Tables, engine: int) -> int:
    """Cause for which an engine with nothing in flight does nothing."""
    if m.engines.started[engine] != m.engines.shown[engine]:
        return TOKEN
    issued = 0
    for each in range(len(t.variant.engines)):
        issued += m.engines.issued[each]
    return DRAIN if issued >= m.settings.instructions - 1 else FETCH_WAIT
