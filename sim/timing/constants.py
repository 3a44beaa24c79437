"""Numbers of the machine that no config changes: docs/timing.md has them in its rules."""

from __future__ import annotations

from vdla.isa.registers import Cause, Fault

LOADS_IN_FLIGHT = 8  # LOAD instructions started and not finished
STORES_IN_FLIGHT = 8  # STORE instructions started and not finished
WRITE_BUFFER_VECTORS = 4  # raw ACC vectors the write buffer holds

# Pipeline distances, in cycles: docs/timing.md, sections 5 and 6.
LATE_READ = 6  # from a micro-op's operand read to its accumulator read
WRITE_BACK = 9  # from a micro-op's operand read to its write
TILE = 2  # from a LOAD's start to the first cycle of its write side
STORE_PIPELINE = 9  # from an ACC read to its first step entering the write buffer

# Causes, in the order of the columns of a breakdown.
CAUSES = tuple(cause.name.lower() for cause in Cause)
BUSY, TOKEN, MEMORY, BANK, FETCH_WAIT, DRAIN = (int(cause) for cause in Cause)
ILLEGAL, BEYOND, BUS_ERROR = int(Fault.ILLEGAL), int(Fault.ADDRESS), int(Fault.BUS)
