"""The whole machine, cycle by cycle: docs/timing.md is the specification.

Each unit steps once a cycle in the order fetch, LOAD, COMPUTE, STORE, bus, and sees what the others
left behind in the cycle before; engines that options add step behind COMPUTE (``behind_compute``)
or behind STORE (``behind_store``). Cycles in which nothing can change are skipped, never
estimated.
"""

from __future__ import annotations

import numpy as np

from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.identity import Identity
from vdla.isa.instructions import Finish
from vdla.isa.registers import Fault
from vdla.isa.ring import Engine
from vdla.sim.compiled import compiled, inline, prepare
from vdla.sim.compiled.seams import seam
from vdla.sim.stream import Bytes, Rows, Stream
from vdla.sim.timing.banks import banks_wake, step_banks
from vdla.sim.timing.compute import alu_comes, in_bulk, leave_bulk, step_compute
from vdla.sim.timing.constants import BUS_ERROR
from vdla.sim.timing.engines import commit_issues, count_causes, end_program, show_issued
from vdla.sim.timing.fault import stop, stopped
from vdla.sim.timing.fetch import FINISHED, MISALIGNED, REQUESTED, UNKNOWN, WAITED, step_fetch
from vdla.sim.timing.load import step_load, writes_acc, writes_inp
from vdla.sim.timing.memory import BAD_ANSWER, BAD_FETCH, BAD_LOAD, WROTE, step_bus
from vdla.sim.timing.nest import take_over_uops
from vdla.sim.timing.pipeline import shift_ports, wake_of
from vdla.sim.timing.state import NEVER, RING, Machine, Tables, reset
from vdla.sim.timing.store import (
    open_burst,
    pass_elsewhere,
    reads_acc,
    send_beat,
    step_store,
    waits_for_elsewhere,
    write_waits,
)
from vdla.sim.timing.tokens import commit_tokens

_LOAD, _STORE = int(Engine.LOAD), int(Engine.STORE)


class Clock:
    """Runs a stream and keeps what the run leaves behind.

    ``start`` and ``finish`` hold the cycle in which each instruction starts and finishes (-1 when
    it never did), ``causes`` the cycles of each engine per cause, ``cycles`` the total, or -1 when
    the machine stood still, ``state`` everything that ``state.py`` names. ``fault`` says what
    stopped the program, ``fault_row`` at which instruction.

    ``stepped`` passes over no cycle, which is slower and changes nothing; ``until`` stops there.
    ``identity`` is what the program is for, ``errors`` the byte addresses (from, to) that bear bus
    errors.
    """

    def __init__(
        self,
        stream: Stream,
        dram: Bytes,
        *,
        stepped: bool = False,
        until: int | None = None,
        identity: Identity | None = None,
        errors: tuple[int, int] = (0, 0),
    ) -> None:
        self.state, tables = reset(stream, dram)
        self.state.settings.stepped = stepped
        if until is not None:
            self.state.settings.until = until
        self.state.settings.error_from, self.state.settings.error_to = errors
        self.state.fault.cause = _refusal(stream, identity)
        self.cycles = int(_run(self.state, tables._replace(rows=_marked_rows(stream))))
        self.start, self.finish = tables.start, tables.finish
        self.causes = self.state.engines.causes
        self.fault = Fault(int(self.state.fault.cause))
        self.fault_row = int(self.state.fault.row)
        if self.fault:  # nothing of its cycle counts
            for events in (self.start, self.finish):
                events[events == self.cycles - 1] = -1


def warm_up(config: Config) -> None:
    """Has the loop ready that counts the cycles of programs of a config."""
    prepare(_run, *reset(Stream.of(config, [Finish()]), np.zeros(PAGE_BYTES, np.uint8)))


def _marked_rows(stream: Stream) -> Rows:
    """The program's rows; where an instruction can't be dispatched, its opcode says why."""
    if (stream.legal & stream.aligned).all():
        return stream.rows
    rows = stream.rows.copy()
    rows[~stream.legal, 0] = UNKNOWN
    rows[~stream.aligned, 0] = MISALIGNED
    return rows


def _refusal(stream: Stream, identity: Identity | None) -> Fault:
    """Fault for which the machine doesn't begin with a program at all."""
    own = Identity.of(stream.config)
    wanted = own if identity is None else identity
    if wanted.isa != own.isa:
        return Fault.PROGRAM_ISA
    if wanted.config != own.config:
        return Fault.PROGRAM_CONFIG
    return Fault.NONE if stream.instructions else Fault.ILLEGAL


@compiled("simulator")
def _run(m: Machine, t: Tables) -> int:
    """Runs to the end, a fault, a deadlock or ``until``; the cycles it took, -1 for a deadlock.

    A cycle is no helper of its own: helpers are optimized before they are inlined, and with one so
    large the loop was a twentieth slower.
    """
    now, on_chip = 0, m.settings.stores_on_chip
    if stopped(m):
        return 1
    while now < m.settings.until:
        elsewhere, port_taken = on_chip and waits_for_elsewhere(m, t), reads_acc(m, t, now)
        writes = not elsewhere and write_waits(m, t)
        inp_taken = (elsewhere or wants_inp(m, t)) and writes_inp(m, t, now)
        if in_bulk(m) and (now >= m.bulk.until or writes_acc(m, t) or alu_comes(m, t)):
            leave_bulk(m, t, now)
        head = m.fetch.dispatched
        loaded, stored = m.engines.finished[_LOAD], m.engines.finished[_STORE]
        fetch = step_fetch(m, t, now)
        if fetch & FINISHED:
            end_program(m, t, now)
            count_causes(m, t, 1)
            return now + 1
        moved = fetch != WAITED
        moved |= step_load(m, t, fetch & REQUESTED == 0, now)
        if m.engines.finished[_LOAD] != loaded and not stopped(m):
            take_over_uops(m, t, t.order[_LOAD, loaded])
        moved |= step_compute(m, t, port_taken, now)
        moved |= behind_compute(m, t, port_taken, now)
        if not in_bulk(m):
            shift_ports(m.compute)
        moved |= step_store(m, t, now) or elsewhere
        if writes:
            open_burst(m, t)
        elif elsewhere:
            pass_elsewhere(m, t, inp_taken)
        moved |= behind_store(m, t, inp_taken or elsewhere, now)
        bus = step_bus(m, writes, now) if t.variant.banks is None else step_banks(m, writes, now)
        if bus & WROTE:
            send_beat(m, t, now)
        if bus & (BAD_FETCH | BAD_LOAD | BAD_ANSWER):
            _note_errors(m, bus, head, t.order[_LOAD, loaded], t.order[_STORE, stored])
        if stopped(m):
            return now + 1
        commit_tokens(m, t)
        moved |= show_issued(m, t)
        commit_issues(m, t)
        step = 1 if moved or bus != 0 else _idle_cycles(m, t, now)
        if step == NEVER:
            return -1
        count_causes(m, t, step)
        now += step
    return now


@seam("|")
def behind_compute(m: Machine, t: Tables, port_taken: bool, now: int) -> bool:
    """A cycle of an option's engine; true when anything moved. ``port_taken``: STORE reads ACC."""
    return False


@seam("|")
def behind_store(m: Machine, t: Tables, inp_taken: bool, now: int) -> bool:
    """A cycle of an option's engine; true when anything moved. ``inp_taken``: INP is written."""
    return False


@seam("or")
def wants_inp(m: Machine, t: Tables) -> bool:
    """Whether an option's engine might write INP in this cycle."""
    return False


@inline
def _note_errors(m: Machine, bus: int, head: int, load: int, store: int) -> None:
    """Turns a transfer that bore an error into a fault of its oldest instruction."""
    if bus & BAD_FETCH:
        stop(m, BUS_ERROR, head)
    if bus & BAD_LOAD:
        stop(m, BUS_ERROR, load)
    if bus & BAD_ANSWER:
        stop(m, BUS_ERROR, store)


@inline
def _idle_cycles(m: Machine, t: Tables, now: int) -> int:
    """In how many cycles something can move again, when nothing did in this one; or NEVER."""
    wake = _wake(m, t, now)
    if wake == NEVER:
        return NEVER
    return 1 if m.settings.stepped else max(wake - now, 1)


@inline
def _wake(m: Machine, t: Tables, now: int) -> int:
    """The next cycle in which something that waits for time alone can move."""
    wake = NEVER
    reads, answers = m.memory.reads, m.memory.answers
    reader, requantizer = m.store.reader, m.store.requantizer
    if t.variant.banks is None and reads.head != reads.tail:
        wake = min(wake, max(reads.ready[reads.head & (RING - 1)], m.memory.bus_free))
    if answers.head != answers.timed:
        wake = min(wake, answers.at[answers.head & (RING - 1)])
    if not in_bulk(m):
        wake = min(wake, wake_of(m.compute, now))
    if t.variant.own_alu is not None:
        wake = min(wake, wake_of(m.alu, now))
    if requantizer.head != requantizer.tail:
        wake = min(wake, requantizer.at[requantizer.head & (RING - 1)])
    if reader.row >= 0 and reader.next_read > now:
        wake = min(wake, reader.next_read)
    if m.memory.bus_free > now:
        wake = min(wake, m.memory.bus_free)
    if in_bulk(m):
        wake = min(wake, m.bulk.until)
    if t.variant.banks is not None:
        wake = banks_wake(m, wake, now)
    return int(wake)
