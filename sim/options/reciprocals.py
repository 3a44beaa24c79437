"""Reciprocals: what SCALE, RECIPROCAL and RSQRT compute, and how long the units take."""

from __future__ import annotations

from vdla.isa.config import Config
from vdla.isa.options.reciprocals import RECIPROCAL, RSQRT, SCALE, reciprocal_groups
from vdla.sim.alu import operate
from vdla.sim.memories import Memories
from vdla.sim.requantize import reciprocal, requantize, rsqrt
from vdla.sim.stream import Rows
from vdla.sim.timing.state import Settings, sets_up

CYCLES = {RECIPROCAL: 32, RSQRT: 56}  # of the units, for a group of lanes: docs/timing.md §5.12


@operate.on(SCALE)
def scale(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    """rq(x, y)."""
    return requantize(x, y)


@operate.on(RECIPROCAL)
def reciprocal_of(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    """The scale word of 1 / y."""
    return reciprocal(y)


@operate.on(RSQRT)
def root_of(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    """The scale word of 1 / √y."""
    return rsqrt(y)


@sets_up
def set_up(settings: Settings, config: Config) -> None:
    """The units take the groups of lanes one after another."""
    for operation, cycles in CYCLES.items():
        settings.serial_cycles[operation] = cycles * reciprocal_groups(config)
