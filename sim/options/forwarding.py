"""Forwarding: a STORE to INP writes each beat in a cycle in which LOAD doesn't write INP.

It opens no burst. A beat beyond INP is a fault as soon as it is the next one, whether it may be
written or not.
"""

from __future__ import annotations

from vdla.isa.instructions import Mem, Store
from vdla.sim.memories import Memories
from vdla.sim.semantics import store_more
from vdla.sim.stream import Rows, column
from vdla.sim.timing.constants import BEYOND
from vdla.sim.timing.fault import stop
from vdla.sim.timing.state import Machine, Tables
from vdla.sim.timing.store import (
    goes_elsewhere,
    oldest_unsent,
    open_run,
    pass_beat,
    pass_elsewhere,
)
from vdla.sim.transfers import store_bytes

_MEMORY, _INP = column(Store, "memory"), int(Mem.INP)


@store_more.on(Mem.INP)
def store_inp(memory: int, row: Rows, of: Memories) -> None:
    """ACC → INP, a byte for each lane."""
    store_bytes(row, of.acc, of.inp_bytes)


@goes_elsewhere.add
def goes_to_inp(m: Machine, t: Tables) -> bool:
    """Whether the oldest unsent instruction writes INP."""
    return bool(t.rows[oldest_unsent(m, t), _MEMORY] == _INP)


@pass_elsewhere.add
def forward_beat(m: Machine, t: Tables, inp_taken: bool) -> None:
    """Writes a beat, unless LOAD takes the port, or it lies beyond the end."""
    open_run(m, t)
    if m.store.bursts.address >= m.settings.inp_bytes:
        stop(m, BEYOND, oldest_unsent(m, t))
    elif not inp_taken:
        pass_beat(m, t)
