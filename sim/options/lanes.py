"""Lanes: with fewer multipliers than lanes READ keeps a micro-op for a cycle per group."""

from __future__ import annotations

from vdla.isa.config import Config
from vdla.isa.instructions import operations
from vdla.isa.operations import X
from vdla.isa.options.lanes import alu_groups
from vdla.sim.timing.state import Settings, sets_up


@sets_up
def set_up(settings: Settings, config: Config) -> None:
    """In the last of its cycles a micro-op may pass: docs/timing.md §5.13."""
    for operation in operations(config):
        if operation.x is X.EARLY:
            settings.serial_cycles[operation] = alu_groups(config) - 1
