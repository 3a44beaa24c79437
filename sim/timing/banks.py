"""A memory with banks: the contract of docs/timing.md, section 12, one cycle at a time.

* Requests are taken into NEXT, and go on into NOW. Each finds its row open, or has its bank closed
  and its row opened; that of NEXT while NOW moves its beats.
* One command a cycle: a column of NOW, else the row of NOW, else the row of NEXT.
* Every decision looks at what the cycle before left. So the stages of both places are read before
  anything is written, and NOW moves on last.
* A refresh waits for a cycle in which nobody asks for anything, as long as it may be put off.
"""

from __future__ import annotations

from vdla.sim.compiled import inline
from vdla.sim.stream import Rows
from vdla.sim.timing.memory import (
    WROTE,
    burst_length,
    deliver_beat,
    read_may_begin,
    see_answer,
    take_read,
    time_answer,
)
from vdla.sim.timing.state import NEVER, RING, Machine

NOW, NEXT = 0, 1  # places
EMPTY, CHECK, CLOSE, OPEN, READY = range(5)  # stages of a request
NORMAL, CLOSING, REFRESHING = range(3)  # phases
CLOSED = 0  # the row of a bank that has none open
ACTED = 64  # beside the flags of memory.py: something moved within the controller
MOST_DUE = 8  # refreshes


@inline
def step_banks(m: Machine, write_waits: bool, now: int) -> int:
    """One cycle: a set of what moved at the port, of whose transfer bore an error, and ACTED."""
    did = see_answer(m, now) | _deliver(m, now)
    if now == m.controller.next_due:
        m.controller.next_due += m.settings.dram.refresh_interval
        m.controller.due = min(m.controller.due + 1, MOST_DUE)
    address_full, beat_full = m.controller.writes.address_full, m.controller.writes.beat_full
    stage, next_stage = m.controller.stage[NOW], m.controller.stage[NEXT]
    if now >= m.settings.dram.start_cycles:
        did |= _work(m, stage, next_stage, address_full, now)
    if next_stage == EMPTY and (stage == EMPTY or m.settings.dram.requests > 1):
        did |= _take_request(m, address_full, now)
    if write_waits:
        did |= _take_beat(m, address_full, beat_full)
    return did


@inline
def banks_wake(m: Machine, wake: int, now: int) -> int:
    """The next cycle in which the controller can act, when others can in ``wake``, or NEVER."""
    c, dram, reads = m.controller, m.settings.dram, m.memory.reads
    waits = c.stage[NOW] != EMPTY or c.stage[NEXT] != EMPTY or c.writes.address_full
    waits |= reads.head != reads.tail or c.coming.head != c.coming.tail
    waits |= m.memory.answers.head != m.memory.answers.tail or c.phase != NORMAL or c.due > 0
    if not waits:
        return NEVER if wake == NEVER else min(wake, c.next_due)
    wake = min(wake, c.next_due)
    if c.coming.head != c.coming.tail:
        wake = min(wake, c.coming.at[c.coming.head & (RING - 1)])
    if reads.head != reads.tail:
        wake = _sooner(wake, reads.ready[reads.head & (RING - 1)], now)
    wake = _sooner(wake, dram.start_cycles, now)
    wake = _sooner(wake, c.next_column_from, now)
    wake = _sooner(wake, c.read_from, now)
    wake = _sooner(wake, c.write_from, now)
    wake = _sooner(wake, c.other_row_from, now)
    for bank in range(dram.count):
        wake = _sooner(wake, c.column_from[bank], now)
        wake = _sooner(wake, c.precharge_from[bank], now)
        wake = _sooner(wake, c.activate_from[bank], now)
    return wake


@inline
def _sooner(wake: int, at: int, now: int) -> int:
    """The sooner one of two cycles, of which ``at`` counts only if it is still to come."""
    return min(wake, at) if at > now else wake


# The port ---------------------------------------------------------------------------------------


@inline
def _deliver(m: Machine, now: int) -> int:
    """Moves the beat that is due in this cycle to its reader."""
    slot = m.controller.coming.head & (RING - 1)
    some = m.controller.coming.head != m.controller.coming.tail
    if not (some and m.controller.coming.at[slot] <= now):
        return 0
    m.controller.coming.head += 1
    reader, last = m.controller.coming.reader[slot], m.controller.coming.last[slot]
    return deliver_beat(m, reader, m.controller.coming.address[slot], last != 0)


@inline
def _take_beat(m: Machine, address_full: bool, beat_full: bool) -> int:
    """Takes the address of a burst whose first beat waits, and the beat, into their registers, if
    these were not full when the cycle began."""
    did = 0
    opens = m.store.bursts.left == 0
    if opens and not address_full and not m.controller.writes.address_taken:
        m.controller.writes.address_full = m.controller.writes.address_taken = True
        m.controller.writes.address = m.store.bursts.address
        m.controller.writes.beats = burst_length(m)
        did = ACTED
    if not beat_full and (not opens or m.controller.writes.address_taken):
        m.controller.writes.beat_full = True
        m.controller.writes.address_taken = False
        did |= WROTE
    return did


@inline
def _take_request(m: Machine, address_full: bool, now: int) -> int:
    """Takes a read or a write into NEXT, in turn if both wait."""
    reads = read_may_begin(m, now)
    if not (reads or address_full):
        return 0
    writes = address_full and not (reads and m.controller.took_write)
    m.controller.took_write = writes
    m.controller.write[NEXT] = writes
    if writes:
        m.controller.writes.address_full = False
        m.controller.address[NEXT] = m.controller.writes.address
        m.controller.left[NEXT] = m.controller.writes.beats
    else:
        slot = m.memory.reads.head & (RING - 1)
        m.controller.reader[NEXT] = m.memory.reads.reader[slot]
        m.controller.address[NEXT] = m.memory.reads.address[slot]
        m.controller.left[NEXT] = m.memory.reads.beats[slot]
        take_read(m)
    _place(m, NEXT)
    m.controller.stage[NEXT] = CHECK
    return ACTED


@inline
def _place(m: Machine, place: int) -> None:
    """Works out the bank and the row of a request's next beat; rows count from 1 here."""
    row = m.controller.address[place] // m.settings.dram.row_bytes
    m.controller.bank[place] = row & (m.settings.dram.count - 1)
    m.controller.row[place] = row // m.settings.dram.count + 1


# Commands ---------------------------------------------------------------------------------------


@inline
def _work(m: Machine, stage: int, next_stage: int, address_full: bool, now: int) -> int:
    """A cycle's checks and its command; then NEXT goes on, or a refresh does."""
    phase = m.controller.phase
    did = 0
    if next_stage == CHECK:
        m.controller.stage[NEXT] = _checked_next(m, stage)
        did |= ACTED * (m.controller.stage[NEXT] != CHECK)
    if stage == CHECK:
        m.controller.stage[NOW] = _checked(m, NOW)
        did |= ACTED
    if stage == READY and _column_may_come(m, now):
        _move_beat(m, next_stage, now)
        did |= ACTED
    elif stage in (CLOSE, OPEN):
        did |= _command_row(m, NOW, stage, now)
    elif phase == NORMAL and next_stage in (CLOSE, OPEN):
        did |= _command_row(m, NEXT, next_stage, now)
    if phase != NORMAL:
        return did | _refresh(m, stage, next_stage, now)
    if next_stage != EMPTY and m.controller.stage[NOW] == EMPTY:
        _go_on(m)
        did |= ACTED
    idle = (
        stage == EMPTY and next_stage == EMPTY and not address_full and not read_may_begin(m, now)
    )
    if m.controller.due > (0 if idle else m.settings.dram.refreshes_put_off):
        m.controller.phase = CLOSING
        did |= ACTED
    return did


@inline
def _checked(m: Machine, place: int) -> int:
    """The stage of a request whose bank is looked at."""
    row = m.controller.open_row[m.controller.bank[place]]
    if row == CLOSED:
        return OPEN
    return READY if row == m.controller.row[place] else CLOSE


@inline
def _checked_next(m: Machine, stage: int) -> int:
    """The stage of NEXT whose bank is looked at, unless that is NOW's: then it waits."""
    if stage == EMPTY or m.controller.bank[NEXT] != m.controller.bank[NOW]:
        return _checked(m, NEXT)
    return READY if stage == READY and m.controller.row[NEXT] == m.controller.row[NOW] else CHECK


@inline
def _column_may_come(m: Machine, now: int) -> bool:
    """Whether NOW, which is READY, moves a beat in this cycle."""
    if now < max(m.controller.next_column_from, m.controller.column_from[m.controller.bank[NOW]]):
        return False
    if m.controller.write[NOW]:
        return bool(m.controller.writes.beat_full and now >= m.controller.write_from)
    return bool(now >= m.controller.read_from)


@inline
def _move_beat(m: Machine, next_stage: int, now: int) -> None:
    """A column command of NOW."""
    dram = m.settings.dram
    bank, last = m.controller.bank[NOW], m.controller.left[NOW] == 1
    recovery = dram.write_recovery if m.controller.write[NOW] else dram.read_recovery
    m.controller.next_column_from = now + m.settings.beat_cycles
    m.controller.precharge_from[bank] = max(m.controller.precharge_from[bank], now + recovery)
    if m.controller.write[NOW]:
        m.controller.writes.beat_full = False
        m.controller.read_from = now + dram.write_to_read
        if last:
            time_answer(m, now + dram.write_cycles)
    else:
        m.controller.write_from = now + dram.read_to_write
        slot = m.controller.coming.tail & (RING - 1)
        m.controller.coming.at[slot] = now + dram.read_cycles
        m.controller.coming.reader[slot] = m.controller.reader[NOW]
        m.controller.coming.address[slot] = m.controller.address[NOW]
        m.controller.coming.last[slot] = last
        m.controller.coming.tail += 1
    m.controller.address[NOW] += m.settings.port_bytes
    m.controller.left[NOW] -= 1
    if last:
        m.controller.stage[NOW] = EMPTY
    elif m.controller.address[NOW] & (dram.row_bytes - 1) == 0:
        _place(m, NOW)
        m.controller.stage[NOW] = CHECK
        if next_stage != EMPTY:
            m.controller.stage[NEXT] = CHECK


@inline
def _command_row(m: Machine, place: int, stage: int, now: int) -> int:
    """PRECHARGE or ACTIVATE for a request, if its bank may have it."""
    bank = m.controller.bank[place]
    if stage == CLOSE:
        if now < m.controller.precharge_from[bank]:
            return 0
        _close(m, bank, now)
        m.controller.stage[place] = OPEN
        return ACTED
    if now < max(m.controller.activate_from[bank], m.controller.other_row_from):
        return 0
    dram = m.settings.dram
    m.controller.open_row[bank] = m.controller.row[place]
    m.controller.column_from[bank] = now + dram.activate
    m.controller.precharge_from[bank] = max(m.controller.precharge_from[bank], now + dram.row_open)
    m.controller.activate_from[bank] = now + dram.row_cycle
    m.controller.other_row_from = now + dram.other_row
    m.controller.stage[place] = READY
    return ACTED


@inline
def _close(m: Machine, bank: int, now: int) -> None:
    m.controller.open_row[bank] = CLOSED
    m.controller.activate_from[bank] = max(
        m.controller.activate_from[bank], now + m.settings.dram.precharge
    )


@inline
def _go_on(m: Machine) -> None:
    """NEXT goes into NOW, as this cycle leaves it."""
    m.controller.stage[NOW] = m.controller.stage[NEXT]
    m.controller.write[NOW] = m.controller.write[NEXT]
    m.controller.reader[NOW] = m.controller.reader[NEXT]
    m.controller.address[NOW] = m.controller.address[NEXT]
    m.controller.left[NOW] = m.controller.left[NEXT]
    m.controller.bank[NOW] = m.controller.bank[NEXT]
    m.controller.row[NOW] = m.controller.row[NEXT]
    m.controller.stage[NEXT] = EMPTY


@inline
def _refresh(m: Machine, stage: int, next_stage: int, now: int) -> int:
    """A refresh that is on its way: closes every bank once NOW is empty, then refreshes."""
    count = m.settings.dram.count
    if m.controller.phase == CLOSING:
        if stage != EMPTY or _latest(m.controller.precharge_from, count) > now:
            return 0
        for bank in range(count):
            _close(m, bank, now)
        m.controller.phase = REFRESHING
        return ACTED
    if max(m.controller.other_row_from, _latest(m.controller.activate_from, count)) > now:
        return 0
    for bank in range(count):
        m.controller.activate_from[bank] = now + m.settings.dram.refresh_cycles
        m.controller.precharge_from[bank] = now + m.settings.dram.refresh_cycles
    m.controller.due -= 1
    m.controller.phase = NORMAL
    if next_stage != EMPTY:
        m.controller.stage[NEXT] = CHECK
    return ACTED


@inline
def _latest(waits: Rows, count: int) -> int:
    """The latest of the first ``count`` cycles."""
    latest = waits[0]
    for bank in range(1, count):
        latest = max(latest, waits[bank])
    return int(latest)
