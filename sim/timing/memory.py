"""The memory behind the port: the contract of docs/timing.md, section 2, one cycle at a time.

A read accepted in cycle t may move its first beat in cycle t + 1 + latency; reads are served in the
order they were accepted. One data bus moves one beat per ``interval`` cycles; when a read beat and
a write beat both wait, they alternate. A write burst whose last beat moves in cycle t is answered
in cycle t + 1 + latency. Beats at addresses from ERROR_FROM up to ERROR_TO bear an error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vdla.isa.config import PAGE_BYTES
from vdla.sim.stream import inline
from vdla.sim.timing.registers import (
    BURST,
    BUS_FREE,
    ERROR_FROM,
    ERROR_TO,
    F_ARRIVED,
    INTERVAL,
    L_ARRIVED,
    L_BURSTS,
    LATENCY,
    PORT,
    Q_READ_ADDRESS,
    Q_READ_BEATS,
    Q_READ_READY,
    Q_READ_WHO,
    Q_RESPONSE_AT,
    Q_RESPONSE_BAD,
    READ_HEAD,
    READ_LEFT,
    READ_TAIL,
    RESPONSE_HEAD,
    RESPONSE_TAIL,
    RING,
    SERVED_WRITE,
    ST_RESPONDED,
)

Registers = NDArray[np.int64]

BY_FETCH, BY_LOAD = 0, 1
WROTE, BAD_FETCH, BAD_LOAD, BAD_ANSWER = 1, 2, 4, 8


@inline
def accept_read(s: Registers, q: Registers, now: int, who: int, address: int, beats: int) -> None:
    """Takes one read burst from BY_FETCH or BY_LOAD."""
    slot = s[READ_TAIL] & (RING - 1)
    q[Q_READ_WHO, slot] = who
    q[Q_READ_BEATS, slot] = beats
    q[Q_READ_ADDRESS, slot] = address
    q[Q_READ_READY, slot] = now + 1 + s[LATENCY]
    if s[READ_HEAD] == s[READ_TAIL]:
        s[READ_LEFT] = beats
    s[READ_TAIL] += 1


@inline
def burst_beats(s: Registers, address: int, wanted: int) -> int:
    """Beats of the burst at ``address``: no longer than BURST, and within its 4 KiB page."""
    page = (PAGE_BYTES - (address & (PAGE_BYTES - 1))) // s[PORT]
    return int(min(wanted, s[BURST], page))


@inline
def step_bus(s: Registers, q: Registers, now: int, write_waits: bool) -> int:
    """Moves at most one beat: a set of WROTE, and of whose transfer bore an error."""
    did = 0
    answer = q[Q_RESPONSE_AT, s[RESPONSE_HEAD] & (RING - 1)]
    if s[RESPONSE_HEAD] != s[RESPONSE_TAIL] and answer <= now:
        if q[Q_RESPONSE_BAD, s[RESPONSE_HEAD] & (RING - 1)]:
            did |= BAD_ANSWER
        s[RESPONSE_HEAD] += 1
        s[ST_RESPONDED] += 1
    if now < s[BUS_FREE]:
        return did
    slot = s[READ_HEAD] & (RING - 1)
    read_waits = s[READ_HEAD] != s[READ_TAIL] and q[Q_READ_READY, slot] <= now
    if read_waits and (not write_waits or s[SERVED_WRITE]):
        s[BUS_FREE] = now + s[INTERVAL]
        s[SERVED_WRITE] = 0
        return did | _deliver(s, q, slot)
    if write_waits:
        s[BUS_FREE] = now + s[INTERVAL]
        s[SERVED_WRITE] = 1
        did |= WROTE
    return did


@inline
def bears_error(s: Registers, address: int) -> bool:
    """Whether the memory answers the beat at ``address`` with an error."""
    return bool(s[ERROR_FROM] <= address < s[ERROR_TO])


@inline
def respond(s: Registers, q: Registers, now: int, bad: bool) -> None:
    """Schedules the response to a write burst whose last beat moved now."""
    q[Q_RESPONSE_BAD, s[RESPONSE_TAIL] & (RING - 1)] = bad
    q[Q_RESPONSE_AT, s[RESPONSE_TAIL] & (RING - 1)] = now + 1 + s[LATENCY]
    s[RESPONSE_TAIL] += 1


@inline
def _deliver(s: Registers, q: Registers, slot: int) -> int:
    bad = bears_error(s, q[Q_READ_ADDRESS, slot])
    q[Q_READ_ADDRESS, slot] += s[PORT]
    by_load = q[Q_READ_WHO, slot] == BY_LOAD
    if by_load:
        s[L_ARRIVED] += 1
    else:
        s[F_ARRIVED] += 1
    s[READ_LEFT] -= 1
    if s[READ_LEFT] == 0:
        s[READ_HEAD] += 1
        s[READ_LEFT] = q[Q_READ_BEATS, s[READ_HEAD] & (RING - 1)]
        if by_load:
            s[L_BURSTS] -= 1
    if not bad:
        return 0
    return BAD_LOAD if by_load else BAD_FETCH
