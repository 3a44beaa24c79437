"""COMPUTE: GEMM and ALU micro-ops, one a cycle, in order, across instruction boundaries.

    issue → F1 → READ ──5──→ accumulator read → combine → write (READ + 7)

* READ reads INP and WGT, or ACC for an ALU operand that is multiplied or shifted: the *early* read.
  The accumulator that a GEMM adds to, or an ADD, MIN, MAX works on, is read *late* and forwarded,
  so a chain of micro-ops on one accumulator never waits.
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

from vdla.isa.instructions import Alu, AluOp, Engine, Gemm, Init, Mem
from vdla.sim.stream import Rows, column, inline
from vdla.sim.timing.faults import stop
from vdla.sim.timing.memory import Registers
from vdla.sim.timing.registers import (
    BANK,
    BEYOND,
    BULK,
    BUSY,
    C_BULK_AT,
    C_BULK_END,
    C_BULK_FROM,
    C_CHECKED,
    C_F1,
    C_I0,
    C_I1,
    C_I2,
    C_INDEX,
    C_LAST_DST,
    C_LAST_READ_AT,
    C_LATE_MASK,
    C_READ,
    C_RETIRE_HEAD,
    C_RETIRE_TAIL,
    C_ROW,
    C_U,
    C_WRITE_MASK,
    CAUSE,
    DRAIN,
    LATE_READ,
    Q_RETIRE_AT,
    Q_RETIRE_ROW,
    RETIRED,
    RING,
    TOKEN,
    U_BEYOND,
    U_DST,
    U_FIELDS,
    U_FIRST,
    U_LAST,
    U_MOST,
    U_NULL,
    U_ROW,
    U_SRC,
    UOP_DEPTH,
    WRITE_BACK,
)
from vdla.sim.timing.tokens import can_start, idle_cause, push, start

_ENGINE = int(Engine.COMPUTE)
_UOP, _COUNT = column(Gemm, "uop_begin"), column(Gemm, "uop_count")
_E0, _E1, _E2 = (column(Gemm, f"extent_{i}") for i in range(3))
_D, _SRC = column(Gemm, "dst_base"), column(Gemm, "src_base")
_G_INIT = column(Gemm, "init")
_W, _B = column(Gemm, "wgt_base"), column(Gemm, "bias_base")
_A_OP, _A_USE_IMM, _A_INIT = column(Alu, "alu_op"), column(Alu, "use_imm"), column(Alu, "init")
_GEMM, _ALU = Gemm.opcode, Alu.opcode
_INIT_ACC, _INIT_BIAS = int(Init.ACC), int(Init.BIAS)
_INP, _WGT, _ACC = int(Mem.INP), int(Mem.WGT), int(Mem.ACC)
_WADD = int(AluOp.WADD)
_EARLY = sum(1 << op for op in (AluOp.SHR, AluOp.MUL, AluOp.WADD, AluOp.RQ))


BULK_MARGIN = 12  # micro-ops at either end of a GEMM that are always stepped


@inline
def in_bulk(s: Registers) -> bool:
    """Whether the middle of a GEMM is being passed over."""
    return bool(s[C_BULK_END] > 0)


@inline
def step_compute(
    s: Registers,
    q: Registers,
    rows: Rows,
    order: Rows,
    uops: Rows,
    depths: Rows,
    visible: Rows,
    now: int,
    port_taken: bool,
    begun: Rows,
    ended: Rows,
) -> bool:
    """One cycle; true when anything moved. ``visible[a]`` is when early reads see entry a;
    ``depths`` are the entries of each memory; ``port_taken``: STORE reads ACC.

    In bulk nothing counts as moved: until it ends, time alone passes.
    """
    if in_bulk(s):
        if now < s[C_BULK_END]:
            s[CAUSE + _ENGINE] = BUSY
            return False
        leave_bulk(s, q, rows, uops, depths, visible, now)
    moved = _retire(s, q, rows, now, ended)
    front = s[C_READ + U_ROW] >= 0
    if front and s[C_READ + U_BEYOND]:
        stop(s, BEYOND, s[C_READ + U_ROW])
        return True
    stalled = front and not _operands_ready(s, rows, visible, now, port_taken)
    if stalled:
        s[CAUSE + _ENGINE] = BANK
    elif front:
        s[CAUSE + _ENGINE] = BUSY
        _read(s, q, rows, visible, now)
        moved = True
    elif s[C_ROW] >= 0 or s[C_F1 + U_ROW] >= 0 or s[C_RETIRE_HEAD] != s[C_RETIRE_TAIL]:
        s[CAUSE + _ENGINE] = DRAIN
    else:
        s[CAUSE + _ENGINE] = idle_cause(s, _ENGINE)
    if not stalled:
        moved = moved or s[C_ROW] >= 0 or s[C_F1 + U_ROW] >= 0
        _shift_front(s)
        _issue(s, rows, uops, depths)
        if (s[C_INDEX] & 63) == BULK_MARGIN and s[BULK] and not s[C_CHECKED]:
            _enter_bulk(s, rows, now)
    if s[C_ROW] < 0 and can_start(s, rows, order, _ENGINE):
        s[C_ROW] = start(s, rows, order, _ENGINE, now, begun)
        if s[CAUSE + _ENGINE] == TOKEN:  # nothing was left to wait for
            s[CAUSE + _ENGINE] = DRAIN
        s[C_CHECKED] = _may_leave(s, rows, s[C_ROW], depths)
        _place(s, rows, 0)
        moved = True
    s[C_LATE_MASK] >>= 1
    s[C_WRITE_MASK] >>= 1
    return moved


@inline
def leave_bulk(
    s: Registers, q: Registers, rows: Rows, uops: Rows, depths: Rows, visible: Rows, now: int
) -> None:
    """Restores the registers of cycle ``now`` by replaying the last WRITE_BACK + 1 micro-ops."""
    s[C_BULK_END] = 0
    s[C_LATE_MASK] = s[C_WRITE_MASK] = 0
    back = WRITE_BACK + 1
    _place(s, rows, s[C_BULK_AT] + now - s[C_BULK_FROM] - back)
    for then in range(now - back, now):
        _issue(s, rows, uops, depths)
        _shift_front(s)
        _read(s, q, rows, visible, then)
        s[C_LATE_MASK] >>= 1
        s[C_WRITE_MASK] >>= 1
    _issue(s, rows, uops, depths)
    _shift_front(s)
    _issue(s, rows, uops, depths)


@inline
def _enter_bulk(s: Registers, rows: Rows, now: int) -> None:
    """Starts to pass over a GEMM that is alone in the pipeline and has a long way to go."""
    row = s[C_ROW]
    if row < 0 or rows[row, 0] != _GEMM or s[C_RETIRE_HEAD] != s[C_RETIRE_TAIL]:
        return
    left = _steps(rows, row) - s[C_INDEX]
    if s[C_READ + U_ROW] == row and s[C_F1 + U_ROW] == row and left > 3 * BULK_MARGIN:
        s[C_BULK_AT] = s[C_INDEX] - 2
        s[C_BULK_FROM] = now + 1
        s[C_BULK_END] = now + 1 + left - BULK_MARGIN


@inline
def _place(s: Registers, rows: Rows, index: int) -> None:
    """Sets the loop nest to its ``index``-th micro-op."""
    row = s[C_ROW]
    s[C_INDEX] = index
    s[C_U] = index % max(rows[row, _COUNT], 1)
    index //= max(rows[row, _COUNT], 1)
    s[C_I2] = index % max(rows[row, _E2], 1)
    index //= max(rows[row, _E2], 1)
    s[C_I1] = index % max(rows[row, _E1], 1)
    s[C_I0] = index // max(rows[row, _E1], 1)


@inline
def _shift_front(s: Registers) -> None:
    for field in range(U_FIELDS):
        s[C_READ + field] = s[C_F1 + field]


@inline
def _steps(rows: Rows, row: int) -> int:
    return int(rows[row, _E0] * rows[row, _E1] * rows[row, _E2] * rows[row, _COUNT])


@inline
def _retire(s: Registers, q: Registers, rows: Rows, now: int, ended: Rows) -> bool:
    slot = s[C_RETIRE_HEAD] & (RING - 1)
    if s[C_RETIRE_HEAD] == s[C_RETIRE_TAIL] or q[Q_RETIRE_AT, slot] != now:
        return False
    row = q[Q_RETIRE_ROW, slot]
    s[C_RETIRE_HEAD] += 1
    s[RETIRED + _ENGINE] += 1
    ended[row] = now
    push(s, rows, row, _ENGINE)
    return True


@inline
def _operands_ready(s: Registers, rows: Rows, visible: Rows, now: int, port_taken: bool) -> bool:
    """Whether the micro-op in READ may read its early operands this cycle."""
    row = s[C_READ + U_ROW]
    if s[C_READ + U_NULL] or rows[row, 0] == _GEMM:
        return True
    reads_y = rows[row, _A_USE_IMM] == 0 or rows[row, _A_OP] == _WADD
    if reads_y and (port_taken or visible[s[C_READ + U_SRC]] > now):
        return False
    starts = s[C_READ + U_FIRST] and rows[row, _A_INIT]
    if starts or not (_EARLY >> rows[row, _A_OP]) & 1:
        return True
    return bool(visible[s[C_READ + U_DST]] <= now and s[C_LATE_MASK] & 1 == 0)


@inline
def _read(s: Registers, q: Registers, rows: Rows, visible: Rows, now: int) -> None:
    """The micro-op in READ enters the back end, which never stalls."""
    row = s[C_READ + U_ROW]
    if not s[C_READ + U_NULL]:
        dst = s[C_READ + U_DST]
        accumulates, late = _late_reads(s, rows, row)
        if late:
            s[C_LATE_MASK] |= 1 << LATE_READ
        if accumulates and s[C_LAST_READ_AT] == now - 1 and s[C_LAST_DST] == dst:
            s[C_WRITE_MASK] &= ~(1 << (WRITE_BACK - 1))
        s[C_WRITE_MASK] |= 1 << WRITE_BACK
        s[C_LAST_DST], s[C_LAST_READ_AT] = dst, now
        visible[dst] = now + WRITE_BACK + 1
    if s[C_READ + U_LAST]:
        slot = s[C_RETIRE_TAIL] & (RING - 1)
        q[Q_RETIRE_AT, slot] = now + WRITE_BACK
        q[Q_RETIRE_ROW, slot] = row
        s[C_RETIRE_TAIL] += 1


@inline
def _late_reads(s: Registers, rows: Rows, row: int) -> tuple[bool, bool]:
    """Whether the micro-op accumulates into its dst, and whether it reads ACC late at all."""
    first = s[C_READ + U_FIRST] != 0
    if rows[row, 0] == _GEMM:
        started = first and rows[row, _G_INIT] != _INIT_ACC
        return not started, not started or rows[row, _G_INIT] == _INIT_BIAS
    started = first and rows[row, _A_INIT] != 0
    accumulates = not started and not (_EARLY >> rows[row, _A_OP]) & 1
    return accumulates, accumulates


@inline
def note_uops(s: Registers, uops: Rows, first: int, end: int) -> None:
    """Keeps the greatest fields of the micro-ops that a LOAD wrote."""
    for u in range(first, end):
        for field in range(4):
            s[U_MOST + field] = max(s[U_MOST + field], uops[u, field])


@inline
def _reach(rows: Rows, row: int, base: int) -> int:
    """The greatest index that a base and its three loop steps add up to."""
    reach = rows[row, base]
    for loop in range(3):
        reach += max(rows[row, _E0 + loop] - 1, 0) * rows[row, base + 1 + loop]
    return int(reach)


@inline
def _may_leave(s: Registers, rows: Rows, row: int, depths: Rows) -> bool:
    """Whether an instruction might go beyond a buffer, so that its micro-ops need a look each."""
    dst, src = _reach(rows, row, _D) + s[U_MOST + 1], _reach(rows, row, _SRC) + s[U_MOST + 2]
    if rows[row, _UOP] + rows[row, _COUNT] > s[UOP_DEPTH] or dst >= depths[_ACC]:
        return True
    if rows[row, 0] == _ALU:
        return bool(src >= depths[_ACC])
    wgt, bias = _reach(rows, row, _W) + s[U_MOST + 3], _reach(rows, row, _B)
    return bool(src >= depths[_INP] or wgt >= depths[_WGT] or bias >= depths[_ACC])


@inline
def _index(s: Registers, rows: Rows, row: int, base: int) -> int:
    """A base with its loop steps at the present iteration."""
    return int(
        rows[row, base]
        + s[C_I0] * rows[row, base + 1]
        + s[C_I1] * rows[row, base + 2]
        + s[C_I2] * rows[row, base + 3]
    )


@inline
def _goes_beyond(s: Registers, rows: Rows, row: int, uops: Rows, u: int, depths: Rows) -> bool:
    """Whether micro-op ``u``, or anything it reads or writes, lies beyond its buffer."""
    if u >= s[UOP_DEPTH] or _index(s, rows, row, _D) + uops[u, 1] >= depths[_ACC]:
        return True
    src = _index(s, rows, row, _SRC) + uops[u, 2]
    if rows[row, 0] == _ALU:
        reads_y = rows[row, _A_USE_IMM] == 0 or rows[row, _A_OP] == _WADD
        return bool(reads_y and src >= depths[_ACC])
    if src >= depths[_INP] or _index(s, rows, row, _W) + uops[u, 3] >= depths[_WGT]:
        return True
    biased = uops[u, 0] != 0 and rows[row, _G_INIT] == _INIT_BIAS
    return bool(biased and _index(s, rows, row, _B) >= depths[_ACC])


@inline
def _issue(s: Registers, rows: Rows, uops: Rows, depths: Rows) -> None:
    """Moves the loop nest's next micro-op into F1, or a bubble."""
    row = s[C_ROW]
    s[C_F1 + U_ROW] = row
    if row < 0:
        return
    s[C_F1 + U_BEYOND] = 0
    s[C_F1 + U_NULL] = _steps(rows, row) == 0
    if s[C_F1 + U_NULL]:
        s[C_F1 + U_LAST] = 1
        s[C_ROW] = -1
        return
    u = rows[row, _UOP] + s[C_U]
    if s[C_CHECKED] and _goes_beyond(s, rows, row, uops, u, depths):
        s[C_F1 + U_BEYOND] = 1
        u = 0
    s[C_F1 + U_FIRST] = uops[u, 0]
    s[C_F1 + U_DST] = _index(s, rows, row, _D) + uops[u, 1]
    s[C_F1 + U_SRC] = _index(s, rows, row, _SRC) + uops[u, 2]
    s[C_INDEX] += 1
    s[C_F1 + U_LAST] = _advance(s, rows, row)
    if s[C_F1 + U_LAST]:
        s[C_ROW] = -1


@inline
def _advance(s: Registers, rows: Rows, row: int) -> bool:
    """Steps the loop nest; true after the last micro-op."""
    s[C_U] += 1
    if s[C_U] < rows[row, _COUNT]:
        return False
    s[C_U] = 0
    s[C_I2] += 1
    if s[C_I2] < rows[row, _E2]:
        return False
    s[C_I2] = 0
    s[C_I1] += 1
    if s[C_I1] < rows[row, _E1]:
        return False
    s[C_I1] = 0
    s[C_I0] += 1
    return bool(s[C_I0] >= rows[row, _E0])
