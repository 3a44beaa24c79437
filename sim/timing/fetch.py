"""Fetch: prefetches the stream and dispatches one instruction a cycle, in order.

* A burst is requested whenever the prefetch buffer has room for it; fetch wins the address channel
  over LOAD.
* An instruction is at the head from the cycle after that in which all its beats were there. It is
  dispatched when its engine's queue has room.
* FINISH waits at the head until every engine has finished all it was given.
* An instruction at the head that the ISA doesn't know, one whose dram_base lies between two beats,
  a FINISH before the end and an end without FINISH are faults.
"""

from __future__ import annotations

from vdla.isa.instructions import Finish
from vdla.sim.compiled import inline
from vdla.sim.timing.constants import BEYOND, ILLEGAL
from vdla.sim.timing.engines import all_finished, has_room, issue
from vdla.sim.timing.fault import burst_faults, stop
from vdla.sim.timing.memory import BY_FETCH, accept_read, burst_beats
from vdla.sim.timing.state import Machine, Tables

_FINISH = Finish.opcode
UNKNOWN = -1  # the opcode of rows that the ISA doesn't know
MISALIGNED = -2  # of those whose dram_base lies between two beats
WAITED, REQUESTED, DISPATCHED, FINISHED, SHOWN = 0, 1, 2, 4, 8


@inline
def step_fetch(m: Machine, t: Tables, now: int) -> int:
    """One cycle: a set of REQUESTED, DISPATCHED, FINISHED, SHOWN."""
    head = m.fetch.dispatched
    did = WAITED
    if m.fetch.left > 0 and _has_room_for_burst(m):
        if burst_faults(m, m.fetch.address, head):
            return did
        _request(m, now)
        did = REQUESTED
    shown = m.fetch.shown
    m.fetch.shown = m.memory.arrived[BY_FETCH] // m.settings.instruction_beats
    if shown != m.fetch.shown:
        did |= SHOWN
    if shown <= head:
        return did
    if _is_refused(m, t, head):
        return did
    if head == m.settings.instructions - 1:
        return did | (FINISHED if all_finished(m, t) else WAITED)
    engine = t.engine_of[t.rows[head, 0]]
    if has_room(m, engine):
        issue(m, engine)
        m.fetch.dispatched += 1
        did |= DISPATCHED
    return did


@inline
def _has_room_for_burst(m: Machine) -> bool:
    held = m.fetch.requested - m.fetch.dispatched * m.settings.instruction_beats
    return held + m.settings.burst_beats <= m.settings.fetch_buffer_beats


@inline
def _request(m: Machine, now: int) -> None:
    beats = burst_beats(m, m.fetch.address, m.fetch.left)
    accept_read(m, BY_FETCH, m.fetch.address, beats, now)
    m.fetch.address += beats * m.settings.port_bytes
    m.fetch.requested += beats
    m.fetch.left -= beats


@inline
def _is_refused(m: Machine, t: Tables, row: int) -> bool:
    """Whether the instruction at the head is a fault; reports it."""
    opcode = t.rows[row, 0]
    if opcode == MISALIGNED:
        stop(m, BEYOND, row)
        return True
    at_end = row == m.settings.instructions - 1
    if opcode == UNKNOWN or (opcode == _FINISH) != at_end:
        stop(m, ILLEGAL, row)
        return True
    return False
