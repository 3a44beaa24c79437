"""COMPUTE: GEMM, and ALU where that has no engine of its own (``pipeline.py``).

A GEMM never waits once it is in READ, so its long middle is passed over ("bulk") while nobody can
observe ACC's ports: while LOAD writes no ACC, and an engine of ALU has nothing in front.
Leaving it replays the last micro-ops, so that the state is the stepped one.
"""

from __future__ import annotations

from vdla.isa.instructions import Gemm
from vdla.isa.ring import Engine
from vdla.sim.compiled import inline
from vdla.sim.timing.constants import BEYOND, BUSY, DRAIN, TOKEN, WRITE_BACK
from vdla.sim.timing.engines import can_start, note_cause, start
from vdla.sim.timing.fault import stop
from vdla.sim.timing.nest import begin_nest, place, steps
from vdla.sim.timing.pipeline import (
    cause_of,
    enter,
    enter_looked,
    finish_one,
    forget,
    in_front,
    issue,
    operands_ready,
    read_from_f2,
    read_from_look,
    shift_ports,
    units_work,
)
from vdla.sim.timing.state import Machine, Pipeline, Tables

_ENGINE = int(Engine.COMPUTE)
_GEMM = Gemm.opcode

BULK_MARGIN = 16  # micro-ops at either end of a GEMM that are always stepped


@inline
def step_compute(m: Machine, t: Tables, port_taken: bool, now: int) -> bool:
    """One cycle; true when anything moved. ``port_taken``: STORE reads ACC.

    In bulk nothing counts as moved: until it ends, time alone passes.
    """
    if in_bulk(m):
        note_cause(m, _ENGINE, BUSY)
        return False
    p = m.compute
    moved = finish_one(m, t, p, _ENGINE, now)
    front = p.read.row >= 0
    if front and p.read.beyond:
        stop(m, BEYOND, p.read.row)
        return True
    works = units_work(m, t, p, port_taken, False, now)
    held = front and not works and not operands_ready(t, p, port_taken, False, now)
    cause = cause_of(m, t, p, _ENGINE, held)
    if not held and not works:
        moved |= in_front(t, p)
        _go_on(m, t, p, now)
        _consider_bulk(m, t, p, now)
    if p.nest.row < 0 and can_start(m, t, _ENGINE):
        begin_nest(m, t, p, start(m, t, _ENGINE, now))
        moved = True
        if cause == TOKEN:  # nothing was left to wait for
            cause = DRAIN
    note_cause(m, _ENGINE, cause)
    return moved


@inline
def _go_on(m: Machine, t: Tables, p: Pipeline, now: int) -> None:
    """Every micro-op goes on by a stage."""
    if t.variant.own_alu is not None:
        if p.read.row >= 0:
            enter_looked(t, p, now)
        read_from_look(t, p)
    else:
        if p.read.row >= 0:
            enter(t, p, now)
        read_from_f2(p)
    issue(m, t, p)


# Bulk -------------------------------------------------------------------------------------------


@inline
def in_bulk(m: Machine) -> bool:
    """Whether the middle of a GEMM is being passed over."""
    return bool(m.bulk.until > 0)


@inline
def alu_comes(m: Machine, t: Tables) -> bool:
    """Whether ALU has an engine of its own, with a micro-op in front of the back end."""
    return t.variant.own_alu is not None and in_front(t, m.alu)


@inline
def leave_bulk(m: Machine, t: Tables, now: int) -> None:
    """Restores the state of cycle ``now`` by replaying the last WRITE_BACK + 1 micro-ops."""
    p = m.compute
    back = WRITE_BACK + 1
    place(p, t, m.bulk.index + now - m.bulk.since - back)
    m.bulk.until = 0
    forget(p)
    for _ in range(_stages(t)):  # up to READ
        _go_on(m, t, p, now - back - 1)
    for then in range(now - back, now):
        _go_on(m, t, p, then)
        shift_ports(p)


@inline
def _stages(t: Tables) -> int:
    """Stages in front of the back end."""
    return 3 if t.variant.own_alu is None else 4


@inline
def _consider_bulk(m: Machine, t: Tables, p: Pipeline, now: int) -> None:
    """Starts to pass over a GEMM that is alone in the pipeline and has a long way to go."""
    row = p.nest.row
    if m.settings.stepped or (p.nest.index & 63) != BULK_MARGIN or p.nest.checked:
        return
    if row < 0 or t.rows[row, 0] != _GEMM or p.leaving.head != p.leaving.tail:
        return
    if alu_comes(m, t):
        return
    left = steps(t, row) - p.nest.index
    if p.read.row == row and p.f1.row == row and left > 3 * BULK_MARGIN:
        m.bulk.index = p.nest.index - _stages(t)
        m.bulk.since = now + 1
        m.bulk.until = now + 1 + left - BULK_MARGIN
