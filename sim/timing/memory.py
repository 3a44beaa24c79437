"""The memory behind the port: the contract of docs/timing.md, section 2, one cycle at a time.

A read accepted in cycle t may move its first beat in cycle t + 1 + latency; reads are served in the
order they were accepted. One data bus moves one beat per ``beat_cycles`` cycles; when a read beat
and a write beat both wait, they alternate. A write burst whose last beat moves in cycle t is
answered in cycle t + 1 + latency. Beats from ``error_from`` up to ``error_to`` bear an error.

A memory with banks (``banks.py``) has queues of reads and answers as this one.
"""

from __future__ import annotations

from vdla.isa.config import PAGE_BYTES
from vdla.sim.compiled import inline
from vdla.sim.timing.state import RING, Machine, Tables

BY_FETCH, BY_LOAD = 0, 1  # readers
ANSWERED, DELIVERED, WROTE, BAD_FETCH, BAD_LOAD, BAD_ANSWER = 1, 2, 4, 8, 16, 32


@inline
def accept_read(m: Machine, reader: int, address: int, beats: int, now: int) -> None:
    """Takes one read burst from BY_FETCH or BY_LOAD."""
    slot = m.memory.reads.tail & (RING - 1)
    m.memory.reads.reader[slot] = reader
    m.memory.reads.beats[slot] = beats
    m.memory.reads.address[slot] = address
    m.memory.reads.ready[slot] = now + 1 + m.settings.latency
    if m.memory.reads.head == m.memory.reads.tail:
        m.memory.reads.left = beats
    m.memory.reads.tail += 1
    m.memory.open_reads[reader] += 1


@inline
def burst_beats(m: Machine, address: int, wanted: int) -> int:
    """Beats of the burst at ``address``: no more than a burst has, and within its 4 KiB page."""
    page = (PAGE_BYTES - (address & (PAGE_BYTES - 1))) // m.settings.port_bytes
    return int(min(wanted, m.settings.burst_beats, page))


@inline
def burst_length(m: Machine) -> int:
    """Beats of the burst that STORE's next beat opens."""
    return burst_beats(m, m.store.bursts.address, m.store.bursts.run_left)


@inline
def step_bus(m: Machine, write_waits: bool, now: int) -> int:
    """Moves at most one beat: a set of what moved, and of whose transfer bore an error."""
    did = see_answer(m, now)
    if now < m.memory.bus_free:
        return did
    slot = m.memory.reads.head & (RING - 1)
    if read_may_begin(m, now) and (not write_waits or m.memory.served_write):
        m.memory.bus_free = now + m.settings.beat_cycles
        m.memory.served_write = False
        return did | _deliver(m, slot)
    if write_waits:
        m.memory.bus_free = now + m.settings.beat_cycles
        m.memory.served_write = True
        did |= WROTE
    return did


@inline
def bears_error(m: Machine, address: int) -> bool:
    """Whether the memory answers the beat at ``address`` with an error."""
    return bool(m.settings.error_from <= address < m.settings.error_to)


@inline
def see_answer(m: Machine, now: int) -> int:
    """Answers a write burst, if one is due: ANSWERED, and BAD_ANSWER."""
    slot = m.memory.answers.head & (RING - 1)
    if m.memory.answers.head == m.memory.answers.timed or m.memory.answers.at[slot] > now:
        return 0
    m.memory.answers.head += 1
    return ANSWERED | (BAD_ANSWER if m.memory.answers.bad[slot] else 0)


@inline
def answer_later(m: Machine, t: Tables, bad: bool, now: int) -> None:
    """Schedules the answer to a write burst whose last beat moved now; a memory with banks makes
    out itself when it comes."""
    m.memory.answers.bad[m.memory.answers.tail & (RING - 1)] = bad
    m.memory.answers.tail += 1
    if t.variant.banks is None:
        time_answer(m, now + 1 + m.settings.latency)


@inline
def time_answer(m: Machine, at: int) -> None:
    """Says when the oldest burst whose answer has no cycle yet is answered."""
    m.memory.answers.at[m.memory.answers.timed & (RING - 1)] = at
    m.memory.answers.timed += 1


@inline
def read_may_begin(m: Machine, now: int) -> bool:
    """Whether the oldest read has come as far as the memory."""
    slot = m.memory.reads.head & (RING - 1)
    return bool(m.memory.reads.head != m.memory.reads.tail and m.memory.reads.ready[slot] <= now)


@inline
def take_read(m: Machine) -> None:
    """Takes the oldest read out of its queue, for a memory with banks."""
    m.memory.reads.head += 1


@inline
def deliver_beat(m: Machine, reader: int, address: int, last: bool) -> int:
    """Moves a beat to its reader: DELIVERED, and whether it bore an error."""
    m.memory.arrived[reader] += 1
    if last:
        m.memory.open_reads[reader] -= 1
    if not bears_error(m, address):
        return DELIVERED
    return DELIVERED | (BAD_LOAD if reader == BY_LOAD else BAD_FETCH)


@inline
def _deliver(m: Machine, slot: int) -> int:
    """Moves a beat of the read at the head."""
    reader, address = m.memory.reads.reader[slot], m.memory.reads.address[slot]
    m.memory.reads.address[slot] += m.settings.port_bytes
    m.memory.reads.left -= 1
    last = m.memory.reads.left == 0
    if last:
        m.memory.reads.head += 1
        m.memory.reads.left = m.memory.reads.beats[m.memory.reads.head & (RING - 1)]
    return deliver_beat(m, reader, address, last)
