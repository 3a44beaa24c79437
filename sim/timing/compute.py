"""COMPUTE: GEMM and ALU micro-ops, one a cycle, in order, across instruction boundaries.

    issue → F1 → READ ──5──→ accumulator read → combine → write (READ + 7)

* READ reads INP and WGT, or ACC for an ALU operand that is multiplied or shifted: the *early* read.
  The accumulator that a GEMM adds to, or an ADD, MIN, MAX works on, is read *late* and forwarded,
  so a chain of micro-ops on one accumulator never waits.
* TABLE reads TAB four cycles after READ, which LOAD's writes wait for.
* READ waits (and holds issue) while an early operand is still to be written, or while the x of an
  early operation would meet a late read at ACC's first read port, or while STORE takes the second
  one from its y.
* Back-to-back micro-ops that accumulate into one entry write it once, at the end of the chain.
* An instruction finishes when its last micro-op writes. One without micro-ops passes as a bubble.
* A micro-op that goes beyond a buffer is a fault once it stands in READ, whether held or not.

A GEMM never waits once it is in READ, so its long middle is passed over ("bulk") while nobody can
observe ACC's ports; leaving it replays the last micro-ops, so that the state is the stepped one.
"""

from __future__ import annotations

from vdla.isa.instructions import ALWAYS_ACC_SRC, NO_X, Alu, AluOp, Gemm, Init
from vdla.isa.ring import Engine
from vdla.sim.compiled import inline
from vdla.sim.stream import column
from vdla.sim.timing.constants import (
    BANK,
    BEYOND,
    BUSY,
    DRAIN,
    LATE_READ,
    TABLE_READ,
    TOKEN,
    WRITE_BACK,
)
from vdla.sim.timing.engines import can_start, finish, idle_cause, note_cause, start
from vdla.sim.timing.fault import stop
from vdla.sim.timing.nest import (
    DST,
    SRC,
    advance,
    begin_nest,
    goes_beyond,
    iteration_base,
    micro_op,
    pass_empty,
    place,
    steps,
)
from vdla.sim.timing.state import RING, Machine, Tables

_ENGINE = int(Engine.COMPUTE)
_GEMM = Gemm.opcode
_G_INIT, _INIT_ACC, _INIT_BIAS = column(Gemm, "init"), int(Init.ACC), int(Init.BIAS)
_A_OP, _A_USE_IMM, _A_INIT = column(Alu, "alu_op"), column(Alu, "use_imm"), column(Alu, "init")
_TABLE = int(AluOp.TABLE)
# Sets of operations, a bit for each.
_EARLY = sum(1 << op for op in (AluOp.SHR, AluOp.MUL, AluOp.WADD, AluOp.RQ))
_NOT_LATE = _EARLY | sum(1 << op for op in NO_X)
_FROM_ACC = sum(1 << op for op in ALWAYS_ACC_SRC)

BULK_MARGIN = 12  # micro-ops at either end of a GEMM that are always stepped


@inline
def step_compute(m: Machine, t: Tables, port_taken: bool, now: int) -> bool:
    """One cycle; true when anything moved. ``port_taken``: STORE reads ACC.

    In bulk nothing counts as moved: until it ends, time alone passes.
    """
    if in_bulk(m):
        note_cause(m, _ENGINE, BUSY)
        return False
    moved = _finish_one(m, t, now)
    front = m.compute.read.row >= 0
    if front and m.compute.read.beyond:
        stop(m, BEYOND, m.compute.read.row)
        return True
    held = front and not _operands_ready(m, t, port_taken, now)
    cause = _cause(m, front, held)
    if front and not held:
        _read(m, t, now)
        moved = True
    if not held:
        moved = moved or m.nest.row >= 0 or m.compute.f1.row >= 0
        _shift_front(m)
        _issue(m, t)
        _consider_bulk(m, t, now)
    if m.nest.row < 0 and can_start(m, t, _ENGINE):
        begin_nest(m, t, start(m, t, _ENGINE, now))
        moved = True
        if cause == TOKEN:  # nothing was left to wait for
            cause = DRAIN
    note_cause(m, _ENGINE, cause)
    _shift_ports(m)
    return moved


@inline
def _cause(m: Machine, front: bool, held: bool) -> int:
    """What the cycle goes to, if nothing starts."""
    if front:
        return BANK if held else BUSY
    draining = m.compute.leaving.head != m.compute.leaving.tail
    if m.nest.row >= 0 or m.compute.f1.row >= 0 or draining:
        return DRAIN
    return idle_cause(m, _ENGINE)


# The pipeline -----------------------------------------------------------------------------------


@inline
def _issue(m: Machine, t: Tables) -> None:
    """Moves the loop nest's next micro-op into F1, or a bubble."""
    row = m.nest.row
    m.compute.f1.row = row
    if row < 0:
        return
    m.compute.f1.beyond = False
    m.compute.f1.null = steps(t, row) == 0
    if m.compute.f1.null:
        m.compute.f1.last = True
        pass_empty(m)
        return
    u = micro_op(m, t)
    if goes_beyond(m, t):
        m.compute.f1.beyond = True
        u = 0
    m.compute.f1.first = t.uops[u, 0] != 0
    m.compute.f1.dst = iteration_base(m, t, DST) + t.uops[u, 1]
    m.compute.f1.src = iteration_base(m, t, SRC) + t.uops[u, 2]
    m.compute.f1.last = advance(m, t)


@inline
def _shift_front(m: Machine) -> None:
    """The micro-op in F1 moves into READ."""
    m.compute.read.row = m.compute.f1.row
    m.compute.read.dst = m.compute.f1.dst
    m.compute.read.src = m.compute.f1.src
    m.compute.read.first = m.compute.f1.first
    m.compute.read.last = m.compute.f1.last
    m.compute.read.null = m.compute.f1.null
    m.compute.read.beyond = m.compute.f1.beyond


@inline
def _operands_ready(m: Machine, t: Tables, port_taken: bool, now: int) -> bool:
    """Whether the micro-op in READ may read its early operands this cycle."""
    row = m.compute.read.row
    if m.compute.read.null or t.rows[row, 0] == _GEMM:
        return True
    reads_y = t.rows[row, _A_USE_IMM] == 0 or (_FROM_ACC >> t.rows[row, _A_OP]) & 1 != 0
    if reads_y and (port_taken or t.visible[m.compute.read.src] > now):
        return False
    starts = m.compute.read.first and t.rows[row, _A_INIT] != 0
    if starts or not (_EARLY >> t.rows[row, _A_OP]) & 1:
        return True
    return bool(t.visible[m.compute.read.dst] <= now and m.compute.late_reads & 1 == 0)


@inline
def _read(m: Machine, t: Tables, now: int) -> None:
    """The micro-op in READ enters the back end, which never stalls."""
    if not m.compute.read.null:
        dst = m.compute.read.dst
        accumulates, late = _late_reads(m, t, m.compute.read.row)
        if late:
            m.compute.late_reads |= 1 << LATE_READ
        if _looks_up(m, t, m.compute.read.row):
            m.compute.table_reads |= 1 << TABLE_READ
        if accumulates and m.compute.last_read_at == now - 1 and m.compute.last_dst == dst:
            m.compute.writes &= ~(1 << (WRITE_BACK - 1))
        m.compute.writes |= 1 << WRITE_BACK
        m.compute.last_dst = dst
        m.compute.last_read_at = now
        t.visible[dst] = now + WRITE_BACK + 1
    if m.compute.read.last:
        m.compute.leaving.at[m.compute.leaving.tail & (RING - 1)] = now + WRITE_BACK
        m.compute.leaving.tail += 1


@inline
def _late_reads(m: Machine, t: Tables, row: int) -> tuple[bool, bool]:
    """Whether the micro-op accumulates into its dst, and whether it reads ACC late at all."""
    first = m.compute.read.first
    if t.rows[row, 0] == _GEMM:
        started = first and t.rows[row, _G_INIT] != _INIT_ACC
        return not started, not started or t.rows[row, _G_INIT] == _INIT_BIAS
    started = first and t.rows[row, _A_INIT] != 0
    accumulates = not started and not (_NOT_LATE >> t.rows[row, _A_OP]) & 1
    return accumulates, accumulates


@inline
def _looks_up(m: Machine, t: Tables, row: int) -> bool:
    """Whether the micro-op in READ reads TAB."""
    if t.rows[row, 0] == _GEMM or t.rows[row, _A_OP] != _TABLE:
        return False
    return bool(not m.compute.read.first or t.rows[row, _A_INIT] == 0)


@inline
def _shift_ports(m: Machine) -> None:
    """What the back end does to ACC and TAB comes a cycle nearer."""
    m.compute.late_reads >>= 1
    m.compute.table_reads >>= 1
    m.compute.writes >>= 1


@inline
def _finish_one(m: Machine, t: Tables, now: int) -> bool:
    """Finishes the instruction whose last micro-op writes in this cycle."""
    head = m.compute.leaving.head
    if head == m.compute.leaving.tail or m.compute.leaving.at[head & (RING - 1)] != now:
        return False
    m.compute.leaving.head += 1
    finish(m, t, _ENGINE, now)
    return True


# Bulk -------------------------------------------------------------------------------------------


@inline
def in_bulk(m: Machine) -> bool:
    """Whether the middle of a GEMM is being passed over."""
    return bool(m.compute.bulk.until > 0)


@inline
def leave_bulk(m: Machine, t: Tables, now: int) -> None:
    """Restores the state of cycle ``now`` by replaying the last WRITE_BACK + 1 micro-ops."""
    m.compute.bulk.until = 0
    m.compute.late_reads = m.compute.writes = 0
    back = WRITE_BACK + 1
    place(m, t, m.compute.bulk.index + now - m.compute.bulk.since - back)
    for then in range(now - back, now):
        _issue(m, t)
        _shift_front(m)
        _read(m, t, then)
        _shift_ports(m)
    _issue(m, t)
    _shift_front(m)
    _issue(m, t)


@inline
def _consider_bulk(m: Machine, t: Tables, now: int) -> None:
    """Starts to pass over a GEMM that is alone in the pipeline and has a long way to go."""
    row = m.nest.row
    if m.settings.stepped or (m.nest.index & 63) != BULK_MARGIN or m.nest.checked:
        return
    if row < 0 or t.rows[row, 0] != _GEMM or m.compute.leaving.head != m.compute.leaving.tail:
        return
    left = steps(t, row) - m.nest.index
    if m.compute.read.row == row and m.compute.f1.row == row and left > 3 * BULK_MARGIN:
        m.compute.bulk.index = m.nest.index - 2
        m.compute.bulk.since = now + 1
        m.compute.bulk.until = now + 1 + left - BULK_MARGIN
