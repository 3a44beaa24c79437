"""Faults: what stops the machine. docs/timing.md, section 9, says when.

The first fault of a cycle counts, so units report in the order in which they step.
"""

from __future__ import annotations

from vdla.isa.config import PAGE_BYTES
from vdla.sim.stream import inline
from vdla.sim.timing.memory import Registers
from vdla.sim.timing.registers import BEYOND, FAULT, FAULT_ROW, PAGES, PORT


@inline
def stop(s: Registers, cause: int, row: int) -> None:
    """Reports a fault that belongs to an instruction."""
    if s[FAULT] == 0:
        s[FAULT] = cause
        s[FAULT_ROW] = row


@inline
def burst_faults(s: Registers, address: int, row: int) -> bool:
    """Whether the burst at ``address`` lies outside DRAM, or a stream's off a beat; reports it."""
    if address & (s[PORT] - 1) == 0 and address // PAGE_BYTES < s[PAGES]:
        return False
    stop(s, BEYOND, row)
    return True
