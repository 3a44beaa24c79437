"""An engine of micro-ops: one a cycle, in order, across instruction boundaries.

    issue → F1 → F2 → READ ──6──→ accumulator read → combine → write (READ + 9)

* READ reads INP and WGT, or ACC for an ALU operand that is multiplied or shifted: the *early* read.
  The accumulator that a GEMM adds to, or an ADD, MIN, MAX works on, is read *late* and forwarded,
  so a chain of micro-ops on one accumulator never waits.
* What is computed bit by bit, or in groups of lanes, is, while the micro-op stands in READ.
* READ waits (and holds issue) while an early operand is still to be written, or while the x of an
  early operation would meet a late read at ACC's first read port, or while STORE takes the second
  one from its y.
* Back-to-back micro-ops that accumulate into one entry write it once, at the end of the chain.
* An instruction finishes when its last micro-op writes. One without micro-ops passes as a bubble.
* A micro-op that goes beyond a buffer is a fault once it stands in READ, whether held or not.

Where ALU has an engine of its own, COMPUTE has GEMM alone and nothing to wait for. There a stage
between F2 and READ, LOOK, knows the next micro-op: a write that is left out takes no port, nor does
a late read of what the micro-op a cycle before writes.

Options may do more where a micro-op enters the back end (``enter_more``), and each cycle after
(``shift_more``).
"""

from __future__ import annotations

from vdla.isa.instructions import Alu, AluOp, Gemm, Init
from vdla.isa.operations import X, bits_of
from vdla.sim.compiled import inline
from vdla.sim.compiled.seams import seam
from vdla.sim.nest import is_empty
from vdla.sim.stream import column
from vdla.sim.timing.constants import (
    BANK,
    BUSY,
    DRAIN,
    LATE_READ,
    WRITE_BACK,
)
from vdla.sim.timing.engines import finish, idle_cause
from vdla.sim.timing.nest import (
    DST,
    SRC,
    advance,
    goes_beyond,
    iteration_base,
    micro_op,
    pass_empty,
)
from vdla.sim.timing.state import NEVER, NONE, RING, Machine, Pipeline, Tables

_GEMM = Gemm.opcode
_G_INIT, _INIT_ACC, _INIT_BIAS = column(Gemm, "init"), int(Init.ACC), int(Init.BIAS)
_A_OP, _A_USE_IMM, _A_INIT = column(Alu, "alu_op"), column(Alu, "use_imm"), column(Alu, "init")
# Sets of operations, a bit for each.
_EARLY = bits_of(op for op in AluOp if op.x is X.EARLY)
_NOT_LATE = bits_of(op for op in AluOp if op.x is not X.LATE)
_FROM_ACC = bits_of(op for op in AluOp if op.y_from_acc)


@inline
def cause_of(m: Machine, t: Tables, p: Pipeline, engine: int, held: bool) -> int:
    """Cause that the cycle goes to, if nothing starts."""
    if p.read.row >= 0:
        return BANK if held else BUSY
    draining = p.leaving.head != p.leaving.tail
    if p.nest.row >= 0 or _fetches(p) or _looks(t, p) or draining:
        return DRAIN
    return idle_cause(m, t, engine)


@inline
def in_front(t: Tables, p: Pipeline) -> bool:
    """Whether a micro-op is in the loop nest or in front of the back end."""
    return bool(p.nest.row >= 0 or _fetches(p) or _looks(t, p) or p.read.row >= 0)


@inline
def _fetches(p: Pipeline) -> bool:
    """Whether a micro-op is in F1 or F2."""
    return bool(p.f1.row >= 0 or p.f2.row >= 0)


@inline
def _looks(t: Tables, p: Pipeline) -> bool:
    """Whether a micro-op is in LOOK, where there is that stage."""
    return t.variant.own_alu is not None and p.look.row >= 0


@inline
def in_back(p: Pipeline) -> bool:
    """Whether an instruction's last micro-op is in the back end."""
    return bool(p.leaving.head != p.leaving.tail)


# The front end ----------------------------------------------------------------------------------


@inline
def issue(m: Machine, t: Tables, p: Pipeline) -> None:
    """Moves the loop nest's next micro-op into F1, or a bubble."""
    row = p.nest.row
    p.f1.row = row
    if row < 0:
        return
    p.f1.beyond = False
    p.f1.null = is_empty(t.rows[row])
    if p.f1.null:
        p.f1.last = True
        pass_empty(p)
        return
    u = micro_op(p, t)
    if goes_beyond(m, t, p):
        p.f1.beyond = True
        u = 0
    p.f1.first = t.uops[u, 0] != 0
    p.f1.dst = iteration_base(p, t, DST) + t.uops[u, 1]
    p.f1.src = iteration_base(p, t, SRC) + t.uops[u, 2]
    p.f1.last = advance(p, t)


@inline
def read_from_f2(p: Pipeline) -> None:
    """The micro-op in F2 moves into READ, and the one in F1 into F2."""
    p.read.row = p.f2.row
    p.read.dst = p.f2.dst
    p.read.src = p.f2.src
    p.read.first = p.f2.first
    p.read.last = p.f2.last
    p.read.null = p.f2.null
    p.read.beyond = p.f2.beyond
    _f2_from_f1(p)


@inline
def _f2_from_f1(p: Pipeline) -> None:
    p.f2.row = p.f1.row
    p.f2.dst = p.f1.dst
    p.f2.src = p.f1.src
    p.f2.first = p.f1.first
    p.f2.last = p.f1.last
    p.f2.null = p.f1.null
    p.f2.beyond = p.f1.beyond


@inline
def read_from_look(t: Tables, p: Pipeline) -> None:
    """The micro-op in LOOK, a GEMM's, moves into READ, the one in F2 into LOOK, that in F1 into
    F2."""
    p.read.row = p.look.row
    p.read.dst = p.look.dst
    p.read.first = p.look.first
    p.read.last = p.look.last
    p.read.null = p.look.null
    p.read.beyond = p.look.beyond
    p.read.chained = p.look.chained
    p.look.row = p.f2.row
    p.look.dst = p.f2.dst
    p.look.first = p.f2.first
    p.look.last = p.f2.last
    p.look.null = p.f2.null
    p.look.beyond = p.f2.beyond
    p.look.chained = False
    _f2_from_f1(p)
    follows = p.read.row >= 0 and not p.read.null and p.read.dst == p.look.dst
    if follows and p.look.row >= 0 and not p.look.null and not p.look.beyond:
        p.look.chained = not _starts(t, p.look.row, p.look.first)


@inline
def operands_ready(t: Tables, p: Pipeline, port_taken: bool, first_taken: bool, now: int) -> bool:
    """Whether the micro-op in READ may read its early operands this cycle, or has read them.
    ``port_taken``: STORE reads ACC, ``first_taken``: another engine does, at the first port."""
    row = p.read.row
    if p.read.null or t.rows[row, 0] == _GEMM or p.serial_until > 0:
        return True
    reads_y = t.rows[row, _A_USE_IMM] == 0 or (_FROM_ACC >> t.rows[row, _A_OP]) & 1 != 0
    if reads_y and (port_taken or t.visible[p.read.src] > now):
        return False
    if not reads_x_early(t, p):
        return True
    return bool(t.visible[p.read.dst] <= now and p.late_reads & 1 == 0 and not first_taken)


@inline
def units_work(
    m: Machine, t: Tables, p: Pipeline, port_taken: bool, first_taken: bool, now: int
) -> bool:
    """Whether units keep the micro-op in READ; they begin where its operands can be read."""
    if not m.settings.serial or not _is_serial(m, t, p):
        return False
    if p.serial_until > 0 or not operands_ready(t, p, port_taken, first_taken, now):
        return bool(now < p.serial_until)
    p.serial_until = now + m.settings.serial_cycles[t.rows[p.read.row, _A_OP]]
    return True


@inline
def _is_serial(m: Machine, t: Tables, p: Pipeline) -> bool:
    """Whether the micro-op in READ is one that units compute for several cycles."""
    row = p.read.row
    if row < 0 or p.read.null or t.rows[row, 0] == _GEMM:
        return False
    return bool(not starts(t, p) and m.settings.serial_cycles[t.rows[row, _A_OP]] > 0)


@inline
def wake_of(p: Pipeline, now: int) -> int:
    """The next cycle in which a pipeline moves by itself, when nothing else moves; or NEVER."""
    if in_back(p) or now <= p.last_read_at + WRITE_BACK:  # LOAD may wait for the write
        return now + 1
    return int(max(now + 1, p.serial_until)) if p.read.row >= 0 else NEVER


@inline
def reads_x_early(t: Tables, p: Pipeline) -> bool:
    """Whether the ALU micro-op in READ has an x that it reads now."""
    row = p.read.row
    return not (starts(t, p) or not (_EARLY >> t.rows[row, _A_OP]) & 1)


# The back end -----------------------------------------------------------------------------------


@inline
def enter(t: Tables, p: Pipeline, now: int) -> None:
    """The micro-op in READ enters the back end, which never stalls."""
    p.serial_until = 0
    if not p.read.null:
        dst = p.read.dst
        accumulates, late = late_reads(t, p)
        if late:
            p.late_reads |= 1 << LATE_READ
        enter_more(t, p)
        if accumulates and p.last_read_at == now - 1 and p.last_dst == dst:
            p.writes &= ~(1 << (WRITE_BACK - 1))
        p.writes |= 1 << WRITE_BACK
        p.last_dst = dst
        p.last_read_at = now
        t.visible[dst] = now + WRITE_BACK + 1
    _leave(p, now)


@inline
def enter_looked(t: Tables, p: Pipeline, now: int) -> None:
    """A GEMM's micro-op enters the back end, when the one behind it is known."""
    if not p.read.null:
        _, late = late_reads(t, p)
        if late and not p.read.chained:
            p.late_reads |= 1 << LATE_READ
        if p.look.row < 0 or not p.look.chained:
            p.writes |= 1 << WRITE_BACK
    _leave(p, now)


@inline
def _leave(p: Pipeline, now: int) -> None:
    """With its last micro-op past READ, it is known when an instruction finishes."""
    if p.read.last:
        p.leaving.at[p.leaving.tail & (RING - 1)] = now + WRITE_BACK
        p.leaving.tail += 1


@inline
def late_reads(t: Tables, p: Pipeline) -> tuple[bool, bool]:
    """Whether the micro-op in READ accumulates into its dst, and whether it reads ACC late."""
    row, first = p.read.row, p.read.first
    if t.rows[row, 0] == _GEMM:
        started = _starts(t, row, first)
        return not started, not started or t.rows[row, _G_INIT] == _INIT_BIAS
    started = first and t.rows[row, _A_INIT] != 0
    accumulates = not started and not (_NOT_LATE >> t.rows[row, _A_OP]) & 1
    return accumulates, accumulates


@inline
def _starts(t: Tables, row: int, first: bool) -> bool:
    """Whether a micro-op of a GEMM starts from something else than its accumulator."""
    return bool(first and t.rows[row, _G_INIT] != _INIT_ACC)


@inline
def starts(t: Tables, p: Pipeline) -> bool:
    """Whether the micro-op in READ, an ALU's, gives y itself."""
    return bool(p.read.first and t.rows[p.read.row, _A_INIT] != 0)


@inline
def computes_acc(m: Machine, t: Tables) -> bool:
    """Whether an engine of micro-ops writes ACC in this cycle."""
    writes = m.compute.writes
    if t.variant.own_alu is not None:
        writes |= m.alu.writes
    return bool(writes & 1)


@inline
def shift_ports(p: Pipeline) -> None:
    """Brings all that the back end does a cycle nearer."""
    p.late_reads >>= 1
    p.writes >>= 1
    shift_more(p)


@seam("then")
def enter_more(t: Tables, p: Pipeline) -> None:
    """An option's work as the micro-op in READ, which isn't empty, enters the back end."""


@seam("then")
def shift_more(p: Pipeline) -> None:
    """Brings all that an option has under way in the back end a cycle nearer."""


@inline
def forget(p: Pipeline) -> None:
    """Empties the front end and the ports, before what is in them is worked out again."""
    p.f1.row = p.f2.row = p.look.row = p.read.row = NONE
    p.late_reads = p.writes = 0


@inline
def finish_one(m: Machine, t: Tables, p: Pipeline, engine: int, now: int) -> bool:
    """Finishes the instruction whose last micro-op writes in this cycle."""
    head = p.leaving.head
    if head == p.leaving.tail or p.leaving.at[head & (RING - 1)] != now:
        return False
    p.leaving.head += 1
    finish(m, t, engine, now)
    return True
