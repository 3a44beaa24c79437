"""LOAD: a request side that runs ahead and a write side that follows in order.

* The request side takes an instruction when none offers runs. It takes a run when no burst is left
  of the one before, and sends one burst a cycle, as long as LOAD has bursts and buffer space left.
  A run of contiguous entries is split into bursts, also at pages.
* The write side writes one entry of padding a cycle, or takes one buffered beat a cycle and writes
  the entry with its last beat. ACC has one write port; what is computed goes first.
* An entry that has results takes a cycle for each of them.
* An option may have a memory's writes wait (``load_waits``).
* INP has one write port, too: LOAD goes before STORE.
* An instruction finishes with its last entry. One that moves nothing takes one cycle on each side.
* A burst outside DRAM and an entry beyond its buffer are faults.
"""

from __future__ import annotations

from vdla.isa.instructions import Load, Mem
from vdla.isa.ring import Engine
from vdla.sim.compiled import inline
from vdla.sim.compiled.seams import seam
from vdla.sim.stream import column
from vdla.sim.timing.constants import BANK, BEYOND, BUSY, LOADS_IN_FLIGHT, MEMORY, TILE
from vdla.sim.timing.engines import can_start, finish, idle_cause, in_flight, note_cause, start
from vdla.sim.timing.fault import burst_faults, stop
from vdla.sim.timing.memory import BY_LOAD, accept_read, burst_beats
from vdla.sim.timing.pipeline import computes_acc
from vdla.sim.timing.state import NONE, Machine, Tables

_ENGINE = int(Engine.LOAD)
_MEMORY, _DRAM = column(Load, "memory"), column(Load, "dram_base")
_SRAM = column(Load, "sram_base")
_X, _Y, _Z = (column(Load, f"{a}_size") for a in "xyz")
_XS, _YS, _ZS = (column(Load, f"{a}_stride") for a in "xyz")
_X0, _X1 = column(Load, "pad_x0"), column(Load, "pad_x1")
_Y0, _Y1 = column(Load, "pad_y0"), column(Load, "pad_y1")
_INP, _ACC, _ACC8 = int(Mem.INP), int(Mem.ACC), int(Mem.ACC8)


@inline
def step_load(m: Machine, t: Tables, channel_free: bool, now: int) -> bool:
    """One cycle; true when anything moved. ``channel_free``: fetch leaves it the address
    channel."""
    flying, writes = in_flight(m, _ENGINE), _writes(m, t, now)
    free = m.load.runs.row < 0 and flying < LOADS_IN_FLIGHT
    moved = _step_request(m, t, channel_free, now)
    moved |= _step_runs(m, t)
    if free and can_start(m, t, _ENGINE):
        m.load.runs.row = start(m, t, _ENGINE, now)
        m.load.runs.z = m.load.runs.y = m.load.runs.x = 0
        moved = True
    if not writes:
        moved |= flying > 0
        note_cause(m, _ENGINE, BUSY if moved else idle_cause(m, t, _ENGINE))
        return moved
    cause = _step_write(m, t, now)
    note_cause(m, _ENGINE, cause)
    return moved or cause == BUSY


@inline
def _writes(m: Machine, t: Tables, now: int) -> bool:
    """Whether the write side has an instruction: its tile is known two cycles after its start."""
    if in_flight(m, _ENGINE) == 0:
        return False
    return bool(now >= t.start[t.order[_ENGINE, m.engines.finished[_ENGINE]]] + TILE)


@inline
def writes_acc(m: Machine, t: Tables) -> bool:
    """Whether the write side stands at an instruction that writes ACC."""
    if in_flight(m, _ENGINE) == 0:
        return False
    memory = t.rows[t.order[_ENGINE, m.engines.finished[_ENGINE]], _MEMORY]
    return memory in (_ACC, _ACC8)


@inline
def writes_inp(m: Machine, t: Tables, now: int) -> bool:
    """Whether the write side writes INP in this cycle: padding, or what completes an entry. Nothing
    there keeps it waiting but a beat that isn't there."""
    if not _writes(m, t, now):
        return False
    row = t.order[_ENGINE, m.engines.finished[_ENGINE]]
    if t.rows[row, _MEMORY] != _INP or _width(t, row) * _height(t, row) * t.rows[row, _Z] == 0:
        return False
    if not _at_data(m, t, row):
        return True
    completes = m.load.write.step + 1 == m.settings.entry_steps[_INP]
    return bool(completes and m.load.consumed != m.memory.arrived[BY_LOAD])


@inline
def _step_request(m: Machine, t: Tables, channel_free: bool, now: int) -> bool:
    """Sends the next burst of the run that is being requested."""
    row = m.load.request.row
    if row < 0:
        return False
    held = m.load.requested - m.load.consumed
    room = held + m.settings.burst_beats <= m.settings.read_buffer_beats
    reads = m.memory.open_reads[BY_LOAD]
    if not (channel_free and room and reads < m.settings.reads_in_flight):
        return False
    if burst_faults(m, m.load.request.address, row):
        return False
    beats = burst_beats(m, m.load.request.address, m.load.request.left)
    accept_read(m, BY_LOAD, m.load.request.address, beats, now)
    m.load.requested += beats
    m.load.request.address += beats * m.settings.port_bytes
    m.load.request.left -= beats
    if m.load.request.left == 0:
        m.load.request.row = NONE
    return True


@inline
def _step_runs(m: Machine, t: Tables) -> bool:
    """Goes on to the next run, if the one that is offered is taken; an instruction without entries
    is given up."""
    row = m.load.runs.row
    if row < 0:
        return False
    if t.rows[row, _X] * t.rows[row, _Y] * t.rows[row, _Z] == 0:
        m.load.runs.row = NONE
        return True
    if m.load.request.row >= 0:
        return False
    _open_run(m, t, row)
    _next_run(m, t, row)
    return True


@inline
def _open_run(m: Machine, t: Tables, row: int) -> None:
    """Takes a run of contiguous entries: a whole row of the tile, or one entry."""
    beats = m.settings.entry_beats[t.rows[row, _MEMORY]]
    z, y, x = m.load.runs.z, m.load.runs.y, m.load.runs.x
    entry = z * t.rows[row, _ZS] + y * t.rows[row, _YS] + x * t.rows[row, _XS]
    m.load.request.row = row
    m.load.request.address = t.rows[row, _DRAM] + entry * beats * m.settings.port_bytes
    m.load.request.left = beats * (t.rows[row, _X] if t.rows[row, _XS] == 1 else 1)


@inline
def _next_run(m: Machine, t: Tables, row: int) -> None:
    m.load.runs.x += 1
    if t.rows[row, _XS] != 1 and m.load.runs.x < t.rows[row, _X]:
        return
    m.load.runs.x = 0
    m.load.runs.y += 1
    if m.load.runs.y < t.rows[row, _Y]:
        return
    m.load.runs.y = 0
    m.load.runs.z += 1
    if m.load.runs.z == t.rows[row, _Z]:
        m.load.runs.row = NONE


@inline
def _step_write(m: Machine, t: Tables, now: int) -> int:
    """Writes padding or a beat of the oldest instruction; the cause of this cycle."""
    row = t.order[_ENGINE, m.engines.finished[_ENGINE]]
    if _width(t, row) * _height(t, row) * t.rows[row, _Z] == 0:
        finish(m, t, _ENGINE, now)
        return BUSY
    memory = t.rows[row, _MEMORY]
    by_results, at_data = m.settings.entry_results[memory] > 0, _at_data(m, t, row)
    port_taken = memory in (_ACC, _ACC8) and computes_acc(m, t)
    port_taken |= load_waits(m, t, memory)
    if at_data and m.load.consumed == m.memory.arrived[BY_LOAD]:
        return MEMORY
    if at_data or by_results:
        last = m.load.write.step + 1 == m.settings.entry_steps[memory]
        if port_taken and (last or by_results):
            return BANK
        if at_data and (last or not by_results):
            m.load.consumed += 1
        m.load.write.step = 0 if last else m.load.write.step + 1
        if not last:
            return BUSY
    elif port_taken:
        return BANK
    if t.rows[row, _SRAM] + m.load.write.entry >= m.settings.entries[memory]:
        stop(m, BEYOND, row)
    if _next_entry(m, t, row):
        finish(m, t, _ENGINE, now)
    return BUSY


@seam("or")
def load_waits(m: Machine, t: Tables, memory: int) -> bool:
    """Whether a memory that an option adds can't be written in this cycle."""
    return False


@inline
def _height(t: Tables, row: int) -> int:
    return int(t.rows[row, _Y0] + t.rows[row, _Y] + t.rows[row, _Y1])


@inline
def _width(t: Tables, row: int) -> int:
    return int(t.rows[row, _X0] + t.rows[row, _X] + t.rows[row, _X1])


@inline
def _at_data(m: Machine, t: Tables, row: int) -> bool:
    """Whether the write side stands at an entry from DRAM, not at padding."""
    y, x = m.load.write.y - t.rows[row, _Y0], m.load.write.x - t.rows[row, _X0]
    return bool(0 <= y < t.rows[row, _Y] and 0 <= x < t.rows[row, _X])


@inline
def _next_entry(m: Machine, t: Tables, row: int) -> bool:
    """Steps the write side; true after the last entry."""
    m.load.write.entry += 1
    m.load.write.x += 1
    if m.load.write.x < _width(t, row):
        return False
    m.load.write.x = 0
    m.load.write.y += 1
    if m.load.write.y < _height(t, row):
        return False
    m.load.write.y = 0
    m.load.write.z += 1
    if m.load.write.z < t.rows[row, _Z]:
        return False
    m.load.write.z = m.load.write.entry = 0
    return True
