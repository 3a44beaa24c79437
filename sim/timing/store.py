"""STORE: reads ACC, requantizes, and writes bursts.

* The reader takes ACC's second read port, before COMPUTE: for ACC8 first the scales of a plane,
  then one vector as often as the write buffer can take its beats.
* A vector passes in steps: a beat, or the group of lanes that the multipliers take. A beat enters
  the write buffer with its last step, the first one 9 cycles after the read.
* A run of contiguous entries is written as bursts, split at their greatest length and at pages; the
  first beat of a burst waits while as many bursts are unanswered as there may be.
* An instruction finishes when its last burst is answered: its bytes are then in memory. One that
  moves nothing takes one cycle on each side.
* Reading beyond ACC and a burst outside DRAM are faults.
* With an option, a STORE's beats may go elsewhere than to the bus (``goes_elsewhere``), one by one
  (``pass_elsewhere``): they open no burst, and the instruction finishes with its last beat.
"""

from __future__ import annotations

from vdla.isa.instructions import Mem, Store
from vdla.isa.ring import Engine
from vdla.sim.compiled import inline
from vdla.sim.compiled.seams import seam
from vdla.sim.stream import column
from vdla.sim.timing.constants import BEYOND, BUSY, MEMORY, STORE_PIPELINE, STORES_IN_FLIGHT
from vdla.sim.timing.engines import can_start, finish, idle_cause, in_flight, note_cause, start
from vdla.sim.timing.fault import burst_faults, stop
from vdla.sim.timing.memory import answer_later, bears_error, burst_length
from vdla.sim.timing.state import NONE, RING, Machine, Tables

_ENGINE = int(Engine.STORE)
_MEMORY, _DRAM = column(Store, "memory"), column(Store, "dram_base")
_SRAM, _SCALE = column(Store, "sram_base"), column(Store, "scale_base")
_YP, _ZP = column(Store, "y_pitch"), column(Store, "z_pitch")
_X, _Y, _Z = (column(Store, f"{a}_size") for a in "xyz")
_XS, _YS, _ZS = (column(Store, f"{a}_stride") for a in "xyz")
_ACC, _ACC8 = int(Mem.ACC), int(Mem.ACC8)


@inline
def step_store(m: Machine, t: Tables, now: int) -> bool:
    """One cycle; true when anything moved."""
    sent, started = m.store.bursts.sent, m.engines.started[_ENGINE]
    flying = in_flight(m, _ENGINE)
    moved = _emit(m, now)
    cause = _step_reader(m, t, now)
    free = m.store.reader.row < 0 and flying < STORES_IN_FLIGHT
    if free and can_start(m, t, _ENGINE):
        _begin(m, t, now)
        if cause < 0:
            cause = BUSY
    if cause < 0:
        cause = MEMORY if flying > 0 else idle_cause(m, t, _ENGINE)
    note_cause(m, _ENGINE, cause)
    if sent < started and _entries(t, t.order[_ENGINE, sent]) == 0:
        _close(m)
        moved = True
    finished = m.engines.finished[_ENGINE]
    target = m.store.bursts.target[finished & (RING - 1)]
    if finished < sent and m.memory.answers.head >= target:
        finish(m, t, _ENGINE, now)
        moved = True
    return moved or cause == BUSY


@inline
def _entries(t: Tables, row: int) -> int:
    return int(t.rows[row, _X] * t.rows[row, _Y] * t.rows[row, _Z])


@inline
def _entry_beats(m: Machine, t: Tables, row: int) -> int:
    return int(m.settings.entry_beats[_ACC8 if _requantizes(t, row) else _ACC])


@inline
def _requantizes(t: Tables, row: int) -> bool:
    """Whether a STORE writes bytes, not lanes of ACC."""
    return bool(t.rows[row, _MEMORY] != _ACC)


# The reader -------------------------------------------------------------------------------------


@inline
def reads_acc(m: Machine, t: Tables, now: int) -> bool:
    """Whether the reader takes ACC's second read port in this cycle."""
    row = m.store.reader.row
    if row < 0 or now < m.store.reader.next_read or _entries(t, row) == 0:
        return False
    return bool(m.store.reader.scale_due or m.store.credit >= _entry_beats(m, t, row))


@inline
def _begin(m: Machine, t: Tables, now: int) -> None:
    """Starts the next instruction in the reader."""
    row = start(m, t, _ENGINE, now)
    m.store.reader.row = row
    m.store.reader.scale_due = _requantizes(t, row)
    m.store.reader.z = m.store.reader.y = m.store.reader.x = 0
    m.store.reader.next_read = max(m.store.reader.next_read, now + 1)


@inline
def _step_reader(m: Machine, t: Tables, now: int) -> int:
    """Reads scales or a vector; the cause of this cycle, or -1 when it has no instruction."""
    row = m.store.reader.row
    if row < 0:
        return -1
    if _entries(t, row) == 0:
        m.store.reader.row = NONE
        return BUSY
    if now < m.store.reader.next_read:
        return BUSY
    if not reads_acc(m, t, now):
        return MEMORY
    if m.store.reader.scale_due:
        _check_entry(m, row, t.rows[row, _SCALE] + m.store.reader.z)
        m.store.reader.scale_due = False
        m.store.reader.next_read = now + 1
        return BUSY
    z, y, x = m.store.reader.z, m.store.reader.y, m.store.reader.x
    _check_entry(m, row, t.rows[row, _SRAM] + z * t.rows[row, _ZP] + y * t.rows[row, _YP] + x)
    beats = _entry_beats(m, t, row)
    per_beat = m.settings.store_groups if _requantizes(t, row) else 1
    m.store.credit -= beats
    m.store.reader.next_read = now + beats * per_beat
    slot = m.store.requantizer.tail & (RING - 1)
    m.store.requantizer.at[slot] = now + STORE_PIPELINE
    m.store.requantizer.steps[slot] = beats * per_beat
    m.store.requantizer.per_beat[slot] = per_beat
    m.store.requantizer.tail += 1
    _next_vector(m, t, row)
    return BUSY


@inline
def _check_entry(m: Machine, row: int, entry: int) -> None:
    """Reports a read beyond ACC's last entry."""
    if entry >= m.settings.entries[_ACC]:
        stop(m, BEYOND, row)


@inline
def _next_vector(m: Machine, t: Tables, row: int) -> None:
    m.store.reader.x += 1
    if m.store.reader.x < t.rows[row, _X]:
        return
    m.store.reader.x = 0
    m.store.reader.y += 1
    if m.store.reader.y < t.rows[row, _Y]:
        return
    m.store.reader.y = 0
    m.store.reader.z += 1
    m.store.reader.scale_due = _requantizes(t, row)
    if m.store.reader.z == t.rows[row, _Z]:
        m.store.reader.row = NONE


@inline
def _emit(m: Machine, now: int) -> bool:
    """One step of the requantizer, which ends a beat or not."""
    head = m.store.requantizer.head
    if m.store.requantizer.left == 0 and head != m.store.requantizer.tail:
        slot = head & (RING - 1)
        if m.store.requantizer.at[slot] <= now:
            m.store.requantizer.left = m.store.requantizer.steps[slot]
            m.store.requantizer.slot = slot
            m.store.requantizer.head += 1
    if m.store.requantizer.left == 0:
        return False
    m.store.requantizer.left -= 1
    if m.store.requantizer.left % m.store.requantizer.per_beat[m.store.requantizer.slot] == 0:
        m.store.level += 1
    return True


# The burst side ---------------------------------------------------------------------------------


@inline
def write_waits(m: Machine, t: Tables) -> bool:
    """Whether a beat is ready that goes to the bus, as all do that don't go elsewhere."""
    if not _beat_waits(m, t):
        return False
    unanswered = m.store.bursts.opened - m.memory.answers.head
    return bool(m.store.bursts.left > 0 or unanswered < m.settings.writes_in_flight)


@inline
def waits_for_elsewhere(m: Machine, t: Tables) -> bool:
    """Whether a beat is ready that doesn't go to the bus."""
    return _beat_waits(m, t) and goes_elsewhere(m, t)


@seam("or")
def goes_elsewhere(m: Machine, t: Tables) -> bool:
    """Whether the oldest unsent instruction, which has beats, doesn't write DRAM."""
    return False


@seam("then")
def pass_elsewhere(m: Machine, t: Tables, inp_taken: bool) -> None:
    """A beat waits that doesn't go to the bus; ``inp_taken``: LOAD writes INP in this cycle."""


@inline
def _beat_waits(m: Machine, t: Tables) -> bool:
    """Whether a beat is buffered that belongs to the oldest unsent instruction."""
    return m.store.level > 0 and _entries(t, t.order[_ENGINE, m.store.bursts.sent]) != 0


@inline
def oldest_unsent(m: Machine, t: Tables) -> int:
    """The row of the oldest instruction that has beats to send."""
    return int(t.order[_ENGINE, m.store.bursts.sent])


@inline
def open_burst(m: Machine, t: Tables) -> None:
    """A beat waits for the bus: when it opens a burst, makes out where that lies."""
    if m.store.bursts.left > 0:
        return
    open_run(m, t)
    burst_faults(m, m.store.bursts.address, t.order[_ENGINE, m.store.bursts.sent])


@inline
def open_run(m: Machine, t: Tables) -> None:
    """Works out where a run of contiguous entries lies: a whole row of the tile, or one entry."""
    if m.store.bursts.run_left > 0:
        return
    row = t.order[_ENGINE, m.store.bursts.sent]
    beats = _entry_beats(m, t, row)
    z, y, x = m.store.bursts.z, m.store.bursts.y, m.store.bursts.x
    entry = z * t.rows[row, _ZS] + y * t.rows[row, _YS] + x * t.rows[row, _XS]
    m.store.bursts.address = t.rows[row, _DRAM] + entry * beats * m.settings.port_bytes
    m.store.bursts.run_left = beats * (t.rows[row, _X] if t.rows[row, _XS] == 1 else 1)


@inline
def send_beat(m: Machine, t: Tables, now: int) -> None:
    """The bus took a beat of the oldest unsent instruction: opens, fills and closes bursts."""
    if m.store.bursts.left == 0:
        m.store.bursts.left = burst_length(m)
        m.store.bursts.bad = False
        m.store.bursts.opened += 1
    if bears_error(m, m.store.bursts.address):
        m.store.bursts.bad = True
    m.store.bursts.left -= 1
    if m.store.bursts.left == 0:
        answer_later(m, t, m.store.bursts.bad, now)
    pass_beat(m, t)


@inline
def pass_beat(m: Machine, t: Tables) -> None:
    """A beat of the oldest unsent instruction leaves the write buffer."""
    m.store.level -= 1
    m.store.credit += 1
    m.store.bursts.address += m.settings.port_bytes
    m.store.bursts.run_left -= 1
    if m.store.bursts.run_left == 0:
        _next_run(m, t, t.order[_ENGINE, m.store.bursts.sent])


@inline
def _next_run(m: Machine, t: Tables, row: int) -> None:
    m.store.bursts.x += 1
    if t.rows[row, _XS] != 1 and m.store.bursts.x < t.rows[row, _X]:
        return
    m.store.bursts.x = 0
    m.store.bursts.y += 1
    if m.store.bursts.y < t.rows[row, _Y]:
        return
    m.store.bursts.y = 0
    m.store.bursts.z += 1
    if m.store.bursts.z == t.rows[row, _Z]:
        m.store.bursts.z = 0
        _close(m)


@inline
def _close(m: Machine) -> None:
    """All of the oldest unsent instruction is sent: it finishes with its last answer."""
    m.store.bursts.target[m.store.bursts.sent & (RING - 1)] = m.store.bursts.opened
    m.store.bursts.sent += 1
