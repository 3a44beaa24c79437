"""The whole machine, cycle by cycle: docs/timing.md is the specification.

Each unit steps once a cycle in the order fetch, LOAD, COMPUTE, STORE, bus, and sees what the others
left behind in the cycle before. Cycles in which nothing can change are skipped, never estimated.
"""

from __future__ import annotations

import numpy as np

from vdla.isa.config import PAGE_BYTES
from vdla.isa.identity import Identity
from vdla.isa.instructions import Engine, Load, Mem
from vdla.isa.registers import Fault
from vdla.sim.semantics import load_rows
from vdla.sim.stream import Bytes, Rows, Stream, column, decode_uops, inline, jit_lean, uop_layout
from vdla.sim.timing.compute import (
    in_bulk,
    leave_bulk,
    note_uops,
    step_compute,
)
from vdla.sim.timing.faults import stop
from vdla.sim.timing.fetch import (
    FINISHED,
    MISALIGNED,
    REQUESTED,
    UNKNOWN,
    WAITED,
    step_fetch,
)
from vdla.sim.timing.load import step_load, writes_acc
from vdla.sim.timing.memory import BAD_ANSWER, BAD_FETCH, BAD_LOAD, WROTE, Registers, step_bus
from vdla.sim.timing.registers import (
    ACC_BEATS,
    BEATS_PER_INSTRUCTION,
    BULK,
    BUS_ERROR,
    BUS_FREE,
    C_BULK_END,
    C_F1,
    C_LAST_DST,
    C_LAST_READ_AT,
    C_READ,
    C_RETIRE_HEAD,
    C_RETIRE_TAIL,
    C_ROW,
    CAUSE,
    CAUSES,
    DRAIN,
    ERROR_FROM,
    ERROR_TO,
    F_ADDRESS,
    F_DISPATCHED,
    F_LEFT,
    F_TOTAL,
    FAULT,
    FAULT_ROW,
    FREE,
    FREE_NEXT,
    ISSUED,
    ISSUED_NEXT,
    L_A_ROW,
    PAGES,
    Q_EMIT_AT,
    Q_READ_READY,
    Q_RESPONSE_AT,
    READ_HEAD,
    READ_TAIL,
    REGISTERS,
    RESPONSE_HEAD,
    RESPONSE_TAIL,
    RETIRED,
    RING,
    RINGS,
    SKIP,
    ST_CREDIT,
    ST_EMIT_HEAD,
    ST_EMIT_TAIL,
    ST_R_NEXT,
    ST_R_ROW,
    STOP,
    TOKENS,
    U_ROW,
    WRITE_BUFFER_VECTORS,
    parameters,
)
from vdla.sim.timing.store import open_burst, reads_acc, send_beat, step_store, write_waits
from vdla.sim.timing.tokens import commit

_LOAD, _STORE = int(Engine.LOAD), int(Engine.STORE)
_L_MEMORY, _L_SRAM = column(Load, "memory"), column(Load, "sram_base")
_UOP, _ACC = int(Mem.UOP), int(Mem.ACC)
NEVER = np.iinfo(np.int64).max


class Clock:
    """Runs a stream and keeps what the run leaves behind.

    ``begun`` and ``ended`` hold the cycle in which each instruction starts and finishes (-1 when it
    never did), ``causes`` the cycles of each engine per cause, ``cycles`` the total, or -1 when the
    machine stood still, ``registers`` everything that ``registers.py`` names. ``fault`` says what
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
        config = stream.config
        n = len(stream.instructions)
        self.begun = np.full(n, -1, np.int64)
        self.ended = np.full(n, -1, np.int64)
        self.causes = np.zeros((3, len(CAUSES)), np.int64)
        s, order = _reset(stream)
        rows = stream.rows
        if not (stream.legal & stream.aligned).all():
            rows = rows.copy()
            rows[~stream.legal, 0] = UNKNOWN
            rows[~stream.aligned, 0] = MISALIGNED
        if stepped:
            s[BULK] = s[SKIP] = 0
        if until is not None:
            s[STOP] = until
        s[PAGES] = -(-dram.size // PAGE_BYTES)
        s[[ERROR_FROM, ERROR_TO]] = errors
        own = Identity.of(config)
        wanted = own if identity is None else identity
        if wanted.isa != own.isa:
            s[FAULT] = Fault.PROGRAM_ISA
        elif wanted.config != own.config:
            s[FAULT] = Fault.PROGRAM_CONFIG
        elif n == 0:
            s[FAULT] = Fault.ILLEGAL
        self.registers = s
        memories = ("inp", "wgt", "acc", "acc8", "uop")
        beats = np.array([config.entry(m) // config.port_bytes for m in memories], np.int64)
        depths = np.array([config.depth(m) for m in memories], np.int64)
        uop_raw = np.zeros((config.depth("uop"), config.entry("uop")), np.uint8)
        uops = np.zeros((config.uop_depth, 4), np.int64)
        self.cycles = int(
            _run(
                s,
                np.zeros((RINGS, RING), np.int64),
                rows,
                order,
                beats,
                depths,
                dram,
                uop_raw,
                uops,
                uop_layout(config),
                np.zeros(config.depth("acc"), np.int64),
                self.begun,
                self.ended,
                self.causes,
            )
        )
        self.fault, self.fault_row = Fault(int(s[FAULT])), int(s[FAULT_ROW])
        if self.fault:  # nothing of its cycle counts
            for events in (self.begun, self.ended):
                events[events == self.cycles - 1] = -1


def _reset(stream: Stream) -> tuple[Registers, Rows]:
    """The registers after reset, and per engine its instructions in order."""
    s = np.zeros(REGISTERS, np.int64)
    for name, value in parameters(stream.config).items():
        s[name] = value
    s[F_ADDRESS] = stream.base
    s[F_TOTAL] = len(stream.instructions)
    s[F_LEFT] = s[F_TOTAL] * s[BEATS_PER_INSTRUCTION]
    s[FREE : FREE + 6] = s[FREE_NEXT : FREE_NEXT + 6] = s[TOKENS]
    s[[L_A_ROW, C_ROW, C_F1 + U_ROW, C_READ + U_ROW, C_LAST_DST, ST_R_ROW]] = -1
    s[C_LAST_READ_AT] = -2
    s[ST_CREDIT] = WRITE_BUFFER_VECTORS * s[ACC_BEATS]
    lists = [stream.engine(engine) for engine in Engine]
    order = np.zeros((3, max(map(len, lists)) + 1), np.int64)
    for row, indices in zip(order, lists, strict=True):
        row[: len(indices)] = indices
    return s, order


@jit_lean
def _run(
    s: Registers,
    q: Registers,
    rows: Rows,
    order: Rows,
    beats: Rows,
    depths: Rows,
    dram: Bytes,
    uop_raw: Bytes,
    uops: Rows,
    layout: Rows,
    visible: Rows,
    begun: Rows,
    ended: Rows,
    causes: Rows,
) -> int:
    now = 0
    if s[FAULT]:
        return 1
    while now < s[STOP]:
        writes = write_waits(s, rows, order)
        second_port = reads_acc(s, rows, now)
        if in_bulk(s) and writes_acc(s, rows, order):
            leave_bulk(s, q, rows, uops, depths, visible, now)
        head, loaded, stored = s[F_DISPATCHED], s[RETIRED + _LOAD], s[RETIRED + _STORE]
        fetch = step_fetch(s, q, rows, now)
        if fetch & FINISHED:
            begun[-1] = ended[-1] = now
            s[CAUSE : CAUSE + 3] = DRAIN
            _count(s, causes, 1)
            return now + 1
        moved = fetch != WAITED
        channel = fetch & REQUESTED == 0
        moved |= step_load(s, q, rows, order, beats, depths, now, channel, begun, ended)
        if s[RETIRED + _LOAD] != loaded and s[FAULT] == 0:
            _load_uops(s, rows[order[_LOAD, loaded]], dram, uop_raw, uops, layout)
        moved |= step_compute(
            s, q, rows, order, uops, depths, visible, now, second_port, begun, ended
        )
        moved |= step_store(s, q, rows, order, depths[_ACC], now, begun, ended)
        if writes:
            open_burst(s, rows, order)
        bus_before, answered = s[BUS_FREE], s[RESPONSE_HEAD]
        bus = step_bus(s, q, now, writes)
        if bus & WROTE:
            send_beat(s, q, rows, order, now)
        if bus & ~WROTE:
            _note_errors(s, bus, head, order[_LOAD, loaded], order[_STORE, stored])
        if s[FAULT]:
            return now + 1
        moved |= s[BUS_FREE] != bus_before or s[RESPONSE_HEAD] != answered
        commit(s)
        for engine in range(3):
            s[ISSUED + engine] = s[ISSUED_NEXT + engine]
        step = 1
        if not moved:
            wake = _wake(s, q, now)
            if wake == NEVER:
                return -1
            step = wake - now if s[SKIP] else 1
        _count(s, causes, step)
        now += step
    return now


@inline
def _count(s: Registers, causes: Rows, cycles: int) -> None:
    for engine in range(3):
        causes[engine, s[CAUSE + engine]] += cycles


@inline
def _note_errors(s: Registers, bus: int, head: int, load: int, store: int) -> None:
    """Turns a transfer that bore an error into a fault of its oldest instruction."""
    if bus & BAD_FETCH:
        stop(s, BUS_ERROR, head)
    if bus & BAD_LOAD:
        stop(s, BUS_ERROR, load)
    if bus & BAD_ANSWER:
        stop(s, BUS_ERROR, store)


@inline
def _load_uops(
    s: Registers, row: Rows, dram: Bytes, uop_raw: Bytes, uops: Rows, layout: Rows
) -> None:
    """Micro-ops steer the loop nests, so the clock keeps its own copy of them."""
    if row[_L_MEMORY] == _UOP:
        n = load_rows(row, dram, uop_raw, 0)
        first = row[_L_SRAM]
        raw = uop_raw[first : first + n].reshape(-1)
        decode_uops(raw, layout, uops, first * layout[4, 1])
        note_uops(s, uops, first * layout[4, 1], (first + n) * layout[4, 1])


@inline
def _wake(s: Registers, q: Registers, now: int) -> int:
    """The next cycle in which something that waits for time alone can move."""
    wake = NEVER
    if s[READ_HEAD] != s[READ_TAIL]:
        wake = min(wake, max(q[Q_READ_READY, s[READ_HEAD] & (RING - 1)], s[BUS_FREE]))
    if s[RESPONSE_HEAD] != s[RESPONSE_TAIL]:
        wake = min(wake, q[Q_RESPONSE_AT, s[RESPONSE_HEAD] & (RING - 1)])
    stalled = s[C_READ + U_ROW] >= 0 and not in_bulk(s)
    if stalled or s[C_RETIRE_HEAD] != s[C_RETIRE_TAIL]:
        wake = min(wake, now + 1)
    if s[ST_EMIT_HEAD] != s[ST_EMIT_TAIL]:
        wake = min(wake, q[Q_EMIT_AT, s[ST_EMIT_HEAD] & (RING - 1)])
    if s[ST_R_ROW] >= 0 and s[ST_R_NEXT] > now:
        wake = min(wake, s[ST_R_NEXT])
    if s[BUS_FREE] > now:
        wake = min(wake, s[BUS_FREE])
    if in_bulk(s):
        wake = min(wake, s[C_BULK_END])
    return max(wake, now + 1) if wake != NEVER else NEVER
