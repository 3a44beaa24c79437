"""When everything happens: the cycle-stepped model of docs/timing.md, one unit per file."""

from vdla.sim.timing.constants import CAUSES
from vdla.sim.timing.machine import Clock, warm_up

__all__ = ["CAUSES", "Clock", "warm_up"]
