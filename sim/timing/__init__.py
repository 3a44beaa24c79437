"""When everything happens: the cycle-stepped model of docs/timing.md, one unit per file."""

from vdla.sim.timing.machine import Clock
from vdla.sim.timing.registers import CAUSES

__all__ = ["CAUSES", "Clock"]
