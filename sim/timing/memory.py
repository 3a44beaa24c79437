"""The memory behind the port: the contract of docs/timing.md, section 2, one cycle at a time.

A read accepted in cycle t may move its first beat in cycle t + 1 + latency; reads are served in the
order they were accepted. One data bus moves one beat per ``interval`` cycles; when a read beat and
a write beat both wait, they alternate. A write burst whose last beat moves in cycle t is answered
in cycle t + 1 + latency.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vdla.isa.config import PAGE_BYTES
from vdla.sim.stream import inline
from vdla.sim.timing.registers import (
    BURST,
    BUS_FREE,
    F_ARRIVED,
    INTERVAL,
    L_ARRIVED,
    L_BURSTS,
    LATENCY,
    PORT,
    Q_READ_BEATS,
    Q_READ_READY,
    Q_READ_WHO,
    Q_RESPONSE_AT,
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


@inline
def accept_read(s: Registers, q: Registers, now: int, who: int, beats: int) -> None:
    """Takes one read burst from BY_FETCH or BY_LOAD."""
    slot = s[READ_TAIL] & (RING - 1)
    q[Q_READ_WHO, slot] = who
    q[Q_READ_BEATS, slot] = beats
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
def step_bus(s: Registers, q: Registers, now: int, write_waits: bool) -> bool:
    """Moves at most one beat; true when it was a write beat."""
    answer = q[Q_RESPONSE_AT, s[RESPONSE_HEAD] & (RING - 1)]
    if s[RESPONSE_HEAD] != s[RESPONSE_TAIL] and answer <= now:
        s[RESPONSE_HEAD] += 1
        s[ST_RESPONDED] += 1
    if now < s[BUS_FREE]:
        return False
    slot = s[READ_HEAD] & (RING - 1)
    read_waits = s[READ_HEAD] != s[READ_TAIL] and q[Q_READ_READY, slot] <= now
    if read_waits and (not write_waits or s[SERVED_WRITE]):
        s[BUS_FREE] = now + s[INTERVAL]
        s[SERVED_WRITE] = 0
        _deliver(s, q, slot)
        return False
    if write_waits:
        s[BUS_FREE] = now + s[INTERVAL]
        s[SERVED_WRITE] = 1
    return write_waits


@inline
def respond(s: Registers, q: Registers, now: int) -> None:
    """Schedules the response to a write burst whose last beat moved now."""
    q[Q_RESPONSE_AT, s[RESPONSE_TAIL] & (RING - 1)] = now + 1 + s[LATENCY]
    s[RESPONSE_TAIL] += 1


@inline
def _deliver(s: Registers, q: Registers, slot: int) -> None:
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
