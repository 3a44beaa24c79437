"""When everything happens: the cycle-stepped model of docs/timing.md, one unit per file."""

from vdla.sim.timing.constants import CAUSES
from vdla.sim.timing.machine import Clock

__all__ = ["CAUSES", "Clock"]
