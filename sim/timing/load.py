"""LOAD: a request side that runs ahead and a write side that follows in order.

* The request side sends one burst a cycle, across instruction boundaries, as long as LOAD has
  bursts and buffer space left. A run of contiguous entries is split at BURST beats and at pages.
* The write side writes one entry of padding a cycle, or takes one buffered beat a cycle and writes
  the entry with its last beat. ACC has one write port; a COMPUTE write goes first.
* An instruction finishes with its last entry. One that moves nothing takes one cycle on each side.
* A burst outside DRAM and an entry beyond its buffer are faults.
"""

from __future__ import annotations

from vdla.isa.instructions import Engine, Load, Mem
from vdla.sim.stream import Rows, column, inline
from vdla.sim.timing.faults import burst_faults, stop
from vdla.sim.timing.memory import BY_LOAD, Registers, accept_read, burst_beats
from vdla.sim.timing.registers import (
    BANK,
    BEYOND,
    BUFFER,
    BUSY,
    C_WRITE_MASK,
    CAUSE,
    L_A_ADDRESS,
    L_A_LEFT,
    L_A_ROW,
    L_A_X,
    L_A_Y,
    L_A_Z,
    L_ARRIVED,
    L_BURSTS,
    L_CONSUMED,
    L_REQUESTED,
    L_W_BEAT,
    L_W_ENTRY,
    L_W_X,
    L_W_Y,
    L_W_Z,
    LOADS_IN_FLIGHT,
    MEMORY,
    PORT,
    READS,
    RETIRED,
    STARTED,
)
from vdla.sim.timing.tokens import can_start, idle_cause, push, start

_ENGINE = int(Engine.LOAD)
_MEMORY, _DRAM = column(Load, "memory"), column(Load, "dram_base")
_SRAM = column(Load, "sram_base")
_X, _Y, _Z = (column(Load, f"{a}_size") for a in "xyz")
_XS, _YS, _ZS = (column(Load, f"{a}_stride") for a in "xyz")
_X0, _X1 = column(Load, "pad_x0"), column(Load, "pad_x1")
_Y0, _Y1 = column(Load, "pad_y0"), column(Load, "pad_y1")
_ACC, _ACC8 = int(Mem.ACC), int(Mem.ACC8)


@inline
def step_load(
    s: Registers,
    q: Registers,
    rows: Rows,
    order: Rows,
    beats: Rows,
    depths: Rows,
    now: int,
    channel_free: bool,
    begun: Rows,
    ended: Rows,
) -> bool:
    """One cycle; true when anything moved. ``beats`` has the beats of an entry per memory, and
    ``depths`` its entries."""
    started = s[STARTED + _ENGINE]
    moved = _request(s, q, rows, beats, now, channel_free)
    in_flight = s[STARTED + _ENGINE] - s[RETIRED + _ENGINE]
    if s[L_A_ROW] < 0 and in_flight < LOADS_IN_FLIGHT and can_start(s, rows, order, _ENGINE):
        s[L_A_ROW] = start(s, rows, order, _ENGINE, now, begun)
        s[L_A_Z] = s[L_A_Y] = s[L_A_X] = 0
        s[L_A_LEFT] = 0
        moved = True
    if s[RETIRED + _ENGINE] == started:
        s[CAUSE + _ENGINE] = BUSY if moved else idle_cause(s, _ENGINE)
        return moved
    cause = _write(s, rows, order, beats, depths, now, ended)
    s[CAUSE + _ENGINE] = cause
    return moved or cause == BUSY


@inline
def writes_acc(s: Registers, rows: Rows, order: Rows) -> bool:
    """Whether the write side stands at an instruction that writes ACC."""
    if s[RETIRED + _ENGINE] == s[STARTED + _ENGINE]:
        return False
    memory = rows[order[_ENGINE, s[RETIRED + _ENGINE]], _MEMORY]
    return memory in (_ACC, _ACC8)


@inline
def _request(
    s: Registers, q: Registers, rows: Rows, beats: Rows, now: int, channel_free: bool
) -> bool:
    """Sends the next burst of the instruction on the request side."""
    row = s[L_A_ROW]
    if row < 0:
        return False
    if rows[row, _X] * rows[row, _Y] * rows[row, _Z] == 0:
        s[L_A_ROW] = -1
        return True
    dense = rows[row, _XS] == 1
    per_entry = beats[rows[row, _MEMORY]]
    if s[L_A_LEFT] == 0:  # a new run
        entry = s[L_A_Z] * rows[row, _ZS] + s[L_A_Y] * rows[row, _YS] + s[L_A_X] * rows[row, _XS]
        s[L_A_ADDRESS] = rows[row, _DRAM] + entry * per_entry * s[PORT]
        s[L_A_LEFT] = per_entry * (rows[row, _X] if dense else 1)
    n = burst_beats(s, s[L_A_ADDRESS], s[L_A_LEFT])
    room = s[L_REQUESTED] - s[L_CONSUMED] + n <= s[BUFFER]
    if not (channel_free and room and s[L_BURSTS] < s[READS]):
        return False
    if burst_faults(s, s[L_A_ADDRESS], row):
        return False
    accept_read(s, q, now, BY_LOAD, s[L_A_ADDRESS], n)
    s[L_BURSTS] += 1
    s[L_REQUESTED] += n
    s[L_A_ADDRESS] += n * s[PORT]
    s[L_A_LEFT] -= n
    if s[L_A_LEFT] == 0:
        _next_run(s, rows, row, dense)
    return True


@inline
def _next_run(s: Registers, rows: Rows, row: int, dense: bool) -> None:
    s[L_A_X] += 1
    if dense or s[L_A_X] == rows[row, _X]:
        s[L_A_X] = 0
        s[L_A_Y] += 1
        if s[L_A_Y] == rows[row, _Y]:
            s[L_A_Y] = 0
            s[L_A_Z] += 1
            if s[L_A_Z] == rows[row, _Z]:
                s[L_A_ROW] = -1


@inline
def _write(
    s: Registers, rows: Rows, order: Rows, beats: Rows, depths: Rows, now: int, ended: Rows
) -> int:
    """Writes padding or a beat of the oldest instruction; the cause of this cycle."""
    row = order[_ENGINE, s[RETIRED + _ENGINE]]
    height = rows[row, _Y0] + rows[row, _Y] + rows[row, _Y1]
    width = rows[row, _X0] + rows[row, _X] + rows[row, _X1]
    if height * width * rows[row, _Z] == 0:
        _retire(s, rows, row, now, ended)
        return BUSY
    memory = rows[row, _MEMORY]
    port_taken = s[C_WRITE_MASK] & 1 != 0 and writes_acc(s, rows, order)
    y, x = s[L_W_Y] - rows[row, _Y0], s[L_W_X] - rows[row, _X0]
    data = 0 <= y < rows[row, _Y] and 0 <= x < rows[row, _X]
    if data:
        if s[L_CONSUMED] == s[L_ARRIVED]:
            return MEMORY
        last = s[L_W_BEAT] + 1 == beats[memory]
        if last and port_taken:
            return BANK
        s[L_CONSUMED] += 1
        s[L_W_BEAT] = 0 if last else s[L_W_BEAT] + 1
        if not last:
            return BUSY
    elif port_taken:
        return BANK
    if rows[row, _SRAM] + s[L_W_ENTRY] >= depths[memory]:
        stop(s, BEYOND, row)
    s[L_W_ENTRY] += 1
    s[L_W_X] += 1
    if s[L_W_X] == width:
        s[L_W_X] = 0
        s[L_W_Y] += 1
        if s[L_W_Y] == height:
            s[L_W_Y] = 0
            s[L_W_Z] += 1
            if s[L_W_Z] == rows[row, _Z]:
                s[L_W_Z] = 0
                _retire(s, rows, row, now, ended)
    return BUSY


@inline
def _retire(s: Registers, rows: Rows, row: int, now: int, ended: Rows) -> None:
    s[L_W_ENTRY] = 0
    s[RETIRED + _ENGINE] += 1
    ended[row] = now
    push(s, rows, row, _ENGINE)
