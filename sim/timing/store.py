"""STORE: reads ACC, requantizes, and writes bursts.

* The reader takes ACC's second read port, before COMPUTE: for ACC8 first the scales of a plane,
  then one vector as often as the write buffer can take its beats.
* A vector's beats enter the write buffer from 8 cycles after its read, one a cycle.
* A run of contiguous entries is written as bursts, split at BURST beats and at pages; the first
  beat of a burst waits while WRITES bursts are unanswered.
* An instruction finishes when its last burst is answered: its bytes are then in memory. One that
  moves nothing takes one cycle on each side.
* Reading beyond ACC and a burst outside DRAM are faults.
"""

from __future__ import annotations

from vdla.isa.instructions import Engine, Mem, Store
from vdla.sim.stream import Rows, column, inline
from vdla.sim.timing.faults import burst_faults, stop
from vdla.sim.timing.memory import Registers, bears_error, burst_beats, respond
from vdla.sim.timing.registers import (
    ACC_BEATS,
    BEYOND,
    BUSY,
    CAUSE,
    MEMORY,
    OUT_BEATS,
    PORT,
    Q_EMIT_AT,
    Q_EMIT_BEATS,
    Q_STORE_TARGET,
    RETIRED,
    RING,
    ST_BURSTS,
    ST_CREDIT,
    ST_EMIT_HEAD,
    ST_EMIT_LEFT,
    ST_EMIT_TAIL,
    ST_LEVEL,
    ST_R_NEXT,
    ST_R_ROW,
    ST_R_SCALE_DUE,
    ST_R_X,
    ST_R_Y,
    ST_R_Z,
    ST_RESPONDED,
    ST_W_ADDRESS,
    ST_W_BAD,
    ST_W_BURST_LEFT,
    ST_W_DONE,
    ST_W_RUN_LEFT,
    ST_W_X,
    ST_W_Y,
    ST_W_Z,
    STARTED,
    STORE_PIPELINE,
    STORES_IN_FLIGHT,
    WRITES,
)
from vdla.sim.timing.tokens import can_start, idle_cause, push, start

_ENGINE = int(Engine.STORE)
_MEMORY, _DRAM = column(Store, "memory"), column(Store, "dram_base")
_SRAM, _SCALE = column(Store, "sram_base"), column(Store, "scale_base")
_YP, _ZP = column(Store, "y_pitch"), column(Store, "z_pitch")
_X, _Y, _Z = (column(Store, f"{a}_size") for a in "xyz")
_XS, _YS, _ZS = (column(Store, f"{a}_stride") for a in "xyz")
_ACC8 = int(Mem.ACC8)


@inline
def write_waits(s: Registers, rows: Rows, order: Rows) -> bool:
    """Whether a write beat is ready for the bus."""
    if s[ST_LEVEL] == 0 or _entries(rows, order[_ENGINE, s[ST_W_DONE]]) == 0:
        return False
    return bool(s[ST_W_BURST_LEFT] > 0 or s[ST_BURSTS] - s[ST_RESPONDED] < s[WRITES])


@inline
def step_store(
    s: Registers,
    q: Registers,
    rows: Rows,
    order: Rows,
    depth: int,
    now: int,
    begun: Rows,
    ended: Rows,
) -> bool:
    """One cycle; true when anything moved. ``depth``: ACC's entries."""
    sent, written = s[ST_W_DONE], s[STARTED + _ENGINE]
    in_flight = written - s[RETIRED + _ENGINE]
    moved = _emit(s, q, now)
    cause = _reader(s, q, rows, depth, now)
    if s[ST_R_ROW] < 0 and in_flight < STORES_IN_FLIGHT and can_start(s, rows, order, _ENGINE):
        row = start(s, rows, order, _ENGINE, now, begun)
        s[ST_R_ROW] = row
        s[ST_R_SCALE_DUE] = rows[row, _MEMORY] == _ACC8
        s[ST_R_Z] = s[ST_R_Y] = s[ST_R_X] = 0
        s[ST_R_NEXT] = max(s[ST_R_NEXT], now + 1)
        if cause < 0:
            cause = BUSY
    if cause < 0:
        cause = MEMORY if in_flight > 0 else idle_cause(s, _ENGINE)
    s[CAUSE + _ENGINE] = cause
    if sent < written and _entries(rows, order[_ENGINE, sent]) == 0:
        q[Q_STORE_TARGET, sent & (RING - 1)] = s[ST_BURSTS]
        s[ST_W_DONE] += 1
        moved = True
    done = s[RETIRED + _ENGINE]
    if done < sent and s[ST_RESPONDED] >= q[Q_STORE_TARGET, done & (RING - 1)]:
        row = order[_ENGINE, done]
        s[RETIRED + _ENGINE] += 1
        ended[row] = now
        push(s, rows, row, _ENGINE)
        moved = True
    return moved or cause == BUSY


@inline
def open_burst(s: Registers, rows: Rows, order: Rows) -> None:
    """A beat waits for the bus: when it opens a burst, makes out where that lies."""
    if s[ST_W_BURST_LEFT] > 0:
        return
    row = order[_ENGINE, s[ST_W_DONE]]
    if s[ST_W_RUN_LEFT] == 0:
        dense = rows[row, _XS] == 1
        per_entry = _entry_beats(s, rows, row)
        entry = s[ST_W_Z] * rows[row, _ZS] + s[ST_W_Y] * rows[row, _YS] + s[ST_W_X] * rows[row, _XS]
        s[ST_W_ADDRESS] = rows[row, _DRAM] + entry * per_entry * s[PORT]
        s[ST_W_RUN_LEFT] = per_entry * (rows[row, _X] if dense else 1)
    burst_faults(s, s[ST_W_ADDRESS], row)


@inline
def send_beat(s: Registers, q: Registers, rows: Rows, order: Rows, now: int) -> None:
    """The bus took a beat of the oldest unsent instruction: opens, fills and closes bursts."""
    row = order[_ENGINE, s[ST_W_DONE]]
    if s[ST_W_BURST_LEFT] == 0:
        s[ST_W_BURST_LEFT] = burst_beats(s, s[ST_W_ADDRESS], s[ST_W_RUN_LEFT])
        s[ST_W_BAD] = 0
        s[ST_BURSTS] += 1
    if bears_error(s, s[ST_W_ADDRESS]):
        s[ST_W_BAD] = 1
    s[ST_LEVEL] -= 1
    s[ST_CREDIT] += 1
    s[ST_W_ADDRESS] += s[PORT]
    s[ST_W_RUN_LEFT] -= 1
    s[ST_W_BURST_LEFT] -= 1
    if s[ST_W_BURST_LEFT] == 0:
        respond(s, q, now, s[ST_W_BAD])
    if s[ST_W_RUN_LEFT] == 0:
        _next_run(s, q, rows, row, rows[row, _XS] == 1)


@inline
def _next_run(s: Registers, q: Registers, rows: Rows, row: int, dense: bool) -> None:
    s[ST_W_X] += 1
    if dense or s[ST_W_X] == rows[row, _X]:
        s[ST_W_X] = 0
        s[ST_W_Y] += 1
        if s[ST_W_Y] == rows[row, _Y]:
            s[ST_W_Y] = 0
            s[ST_W_Z] += 1
            if s[ST_W_Z] == rows[row, _Z]:
                s[ST_W_Z] = 0
                q[Q_STORE_TARGET, s[ST_W_DONE] & (RING - 1)] = s[ST_BURSTS]
                s[ST_W_DONE] += 1


@inline
def reads_acc(s: Registers, rows: Rows, now: int) -> bool:
    """Whether the reader takes ACC's second read port in this cycle."""
    row = s[ST_R_ROW]
    if row < 0 or now < s[ST_R_NEXT] or _entries(rows, row) == 0:
        return False
    return bool(s[ST_R_SCALE_DUE] or s[ST_CREDIT] >= _entry_beats(s, rows, row))


@inline
def _reader(s: Registers, q: Registers, rows: Rows, depth: int, now: int) -> int:
    """Reads scales or a vector; the cause of this cycle, or -1 when it has no instruction."""
    row = s[ST_R_ROW]
    if row < 0:
        return -1
    if _entries(rows, row) == 0:
        s[ST_R_ROW] = -1
        return BUSY
    if now < s[ST_R_NEXT]:
        return BUSY
    if not reads_acc(s, rows, now):
        return MEMORY
    if s[ST_R_SCALE_DUE]:
        if rows[row, _SCALE] + s[ST_R_Z] >= depth:
            stop(s, BEYOND, row)
        s[ST_R_SCALE_DUE] = 0
        s[ST_R_NEXT] = now + 1
        return BUSY
    entry = rows[row, _SRAM] + s[ST_R_Z] * rows[row, _ZP] + s[ST_R_Y] * rows[row, _YP] + s[ST_R_X]
    if entry >= depth:
        stop(s, BEYOND, row)
    beats = _entry_beats(s, rows, row)
    s[ST_CREDIT] -= beats
    s[ST_R_NEXT] = now + beats
    slot = s[ST_EMIT_TAIL] & (RING - 1)
    q[Q_EMIT_AT, slot] = now + STORE_PIPELINE
    q[Q_EMIT_BEATS, slot] = beats
    s[ST_EMIT_TAIL] += 1
    _next_vector(s, rows, row)
    return BUSY


@inline
def _next_vector(s: Registers, rows: Rows, row: int) -> None:
    s[ST_R_X] += 1
    if s[ST_R_X] == rows[row, _X]:
        s[ST_R_X] = 0
        s[ST_R_Y] += 1
        if s[ST_R_Y] == rows[row, _Y]:
            s[ST_R_Y] = 0
            s[ST_R_Z] += 1
            s[ST_R_SCALE_DUE] = rows[row, _MEMORY] == _ACC8
            if s[ST_R_Z] == rows[row, _Z]:
                s[ST_R_ROW] = -1


@inline
def _emit(s: Registers, q: Registers, now: int) -> bool:
    """One beat leaves the requantizer for the write buffer."""
    if s[ST_EMIT_LEFT] == 0 and s[ST_EMIT_HEAD] != s[ST_EMIT_TAIL]:
        slot = s[ST_EMIT_HEAD] & (RING - 1)
        if q[Q_EMIT_AT, slot] <= now:
            s[ST_EMIT_LEFT] = q[Q_EMIT_BEATS, slot]
            s[ST_EMIT_HEAD] += 1
    if s[ST_EMIT_LEFT] == 0:
        return False
    s[ST_EMIT_LEFT] -= 1
    s[ST_LEVEL] += 1
    return True


@inline
def _entries(rows: Rows, row: int) -> int:
    return int(rows[row, _X] * rows[row, _Y] * rows[row, _Z])


@inline
def _entry_beats(s: Registers, rows: Rows, row: int) -> int:
    return int(s[OUT_BEATS] if rows[row, _MEMORY] == _ACC8 else s[ACC_BEATS])
