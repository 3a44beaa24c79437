"""Faults: what stops the machine. docs/timing.md, section 9, says when.

The first fault of a cycle counts, so units report in the order in which they step.
"""

from __future__ import annotations

from vdla.isa.config import PAGE_BYTES
from vdla.sim.compiled import inline
from vdla.sim.timing.constants import BEYOND
from vdla.sim.timing.state import Machine


@inline
def stop(m: Machine, cause: int, row: int) -> None:
    """Reports a fault that belongs to an instruction."""
    if m.fault.cause == 0:
        m.fault.cause = cause
        m.fault.row = row


@inline
def stopped(m: Machine) -> bool:
    """Whether a fault was reported."""
    return m.fault.cause != 0


@inline
def burst_faults(m: Machine, address: int, row: int) -> bool:
    """Whether the burst at ``address`` lies outside DRAM, or a stream's off a beat; reports it."""
    aligned = address & (m.settings.port_bytes - 1) == 0
    if aligned and address // PAGE_BYTES < m.settings.dram_pages:
        return False
    stop(m, BEYOND, row)
    return True
