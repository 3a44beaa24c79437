"""SDR SDRAM: chips by their datasheets, and the controller of docs/timing.md, section 12."""

from vdla.boards.soc.sdram.chip import AS4C16M16SA, EM638325, Chip, pins
from vdla.boards.soc.sdram.controller import Controller
from vdla.boards.soc.sdram.half_rate import FAST, HalfRate
from vdla.boards.soc.sdram.numbers import REFRESHES_PUT_OFF, banks, memory
from vdla.boards.soc.sdram.pads import ONE_CLOCK, Pads

__all__ = [
    "AS4C16M16SA",
    "EM638325",
    "FAST",
    "ONE_CLOCK",
    "REFRESHES_PUT_OFF",
    "Chip",
    "Controller",
    "HalfRate",
    "Pads",
    "banks",
    "memory",
    "pins",
]
