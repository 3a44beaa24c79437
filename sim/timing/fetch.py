"""Fetch: prefetches the stream and dispatches one instruction a cycle, in order.

* A burst is requested whenever the prefetch buffer has room for it; fetch wins the address channel
  over LOAD.
* An instruction is dispatched when all its beats have arrived and its engine's queue has room.
* FINISH waits at the head until every engine has retired all it was given.
* An instruction at the head that the ISA doesn't know, one whose dram_base lies between two beats,
  a FINISH before the end and an end without FINISH are faults.
"""

from __future__ import annotations

from vdla.isa.instructions import Finish
from vdla.sim.stream import ENGINE_OF, Rows, inline
from vdla.sim.timing.faults import burst_faults, stop
from vdla.sim.timing.memory import BY_FETCH, Registers, accept_read, burst_beats
from vdla.sim.timing.registers import (
    BEATS_PER_INSTRUCTION,
    BEYOND,
    BURST,
    F_ADDRESS,
    F_ARRIVED,
    F_DISPATCHED,
    F_LEFT,
    F_REQUESTED,
    F_TOTAL,
    FETCH_BUFFER,
    ILLEGAL,
    ISSUED,
    ISSUED_NEXT,
    PORT,
    QUEUE,
    RETIRED,
    STARTED,
)

_FINISH = Finish.opcode
UNKNOWN = -1  # the opcode of rows that the ISA doesn't know
MISALIGNED = -2  # of those whose dram_base lies between two beats
WAITED, REQUESTED, DISPATCHED, FINISHED = 0, 1, 2, 4


@inline
def step_fetch(s: Registers, q: Registers, rows: Rows, now: int) -> int:
    """One cycle: a set of REQUESTED, DISPATCHED, FINISHED."""
    did = WAITED
    dispatched = s[F_DISPATCHED]
    if s[F_LEFT] > 0:
        held = s[F_REQUESTED] - dispatched * s[BEATS_PER_INSTRUCTION]
        if held + s[BURST] <= s[FETCH_BUFFER]:
            if burst_faults(s, s[F_ADDRESS], dispatched):
                return did
            beats = burst_beats(s, s[F_ADDRESS], s[F_LEFT])
            accept_read(s, q, now, BY_FETCH, s[F_ADDRESS], beats)
            s[F_ADDRESS] += beats * s[PORT]
            s[F_REQUESTED] += beats
            s[F_LEFT] -= beats
            did |= REQUESTED
    if s[F_ARRIVED] >= (dispatched + 1) * s[BEATS_PER_INSTRUCTION]:
        if rows[dispatched, 0] == MISALIGNED:
            stop(s, BEYOND, dispatched)
            return did
        if (rows[dispatched, 0] == _FINISH) != (dispatched == s[F_TOTAL] - 1) or (
            rows[dispatched, 0] == UNKNOWN
        ):
            stop(s, ILLEGAL, dispatched)
            return did
        if dispatched == s[F_TOTAL] - 1:
            return did | (FINISHED if _all_retired(s) else WAITED)
        engine = ENGINE_OF[rows[dispatched, 0]]
        if s[ISSUED + engine] - s[STARTED + engine] < s[QUEUE]:
            s[ISSUED_NEXT + engine] += 1
            s[F_DISPATCHED] += 1
            did |= DISPATCHED
    return did


@inline
def _all_retired(s: Registers) -> bool:
    busy = False
    for engine in range(3):
        busy |= s[RETIRED + engine] != s[ISSUED + engine]
    return not busy
