"""VECTOR: ALU beside COMPUTE's GEMM (``pipeline.py``), where the config has a vector engine.

GEMM never waits for it. READ holds a micro-op where ACC's ports would be wanted twice: its early x
and a late read at the first read port in this cycle, its late read and GEMM's six cycles on, its
write and GEMM's nine cycles on. GEMM's micro-op in READ has a place there in the same cycles.
"""

from __future__ import annotations

from vdla.isa.options.vector import VECTOR
from vdla.sim.compiled import inline
from vdla.sim.timing.constants import BEYOND, DRAIN, LATE_READ, TOKEN, WRITE_BACK
from vdla.sim.timing.engines import can_start, note_cause, start
from vdla.sim.timing.fault import stop
from vdla.sim.timing.machine import behind_compute
from vdla.sim.timing.nest import begin_nest
from vdla.sim.timing.pipeline import (
    cause_of,
    enter,
    finish_one,
    in_front,
    issue,
    late_reads,
    operands_ready,
    read_from_f2,
    shift_ports,
    units_work,
)
from vdla.sim.timing.state import Machine, Tables

_ENGINE = int(VECTOR)


@behind_compute.add
def step(m: Machine, t: Tables, port_taken: bool, now: int) -> bool:
    """One cycle of VECTOR, if there is one; true when anything moved."""
    if t.variant.own_alu is None:
        return False
    moved = _go_on(m, t, port_taken, now)
    shift_ports(m.alu)
    return moved


@inline
def _go_on(m: Machine, t: Tables, port_taken: bool, now: int) -> bool:
    """A cycle of the pipeline; ``port_taken``: STORE reads ACC."""
    p = m.alu
    moved = finish_one(m, t, p, _ENGINE, now)
    front = p.read.row >= 0
    if front and p.read.beyond:
        stop(m, BEYOND, p.read.row)
        return True
    first_taken = m.compute.late_reads & 1 != 0
    works = units_work(m, t, p, port_taken, first_taken, now)
    held = front and not works
    ready = operands_ready(t, p, port_taken, first_taken, now)
    held = held and not (ready and _ports_free(m, t))
    cause = cause_of(m, t, p, _ENGINE, held)
    if not held and not works:
        moved |= in_front(t, p)
        if front:
            enter(t, p, now)
        read_from_f2(p)
        issue(m, t, p)
    if p.nest.row < 0 and can_start(m, t, _ENGINE):
        begin_nest(m, t, p, start(m, t, _ENGINE, now))
        moved = True
        if cause == TOKEN:  # nothing was left to wait for
            cause = DRAIN
    note_cause(m, _ENGINE, cause)
    return moved


@inline
def _ports_free(m: Machine, t: Tables) -> bool:
    """Whether GEMM leaves the micro-op in READ the ports of ACC that it needs later."""
    if m.alu.read.null:
        return True
    if m.compute.writes >> WRITE_BACK & 1:
        return False
    _, late = late_reads(t, m.alu)
    return not (late and m.compute.late_reads >> LATE_READ & 1)
