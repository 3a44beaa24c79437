"""STORE's destinations on chip: beats may go into a memory, where an option says so, or to the bus.

1. A STORE that names a destination's memory writes narrow vectors, as one that names ACC8 does. Its
   ``dram_base`` is a place in the memory, in beats, and its strides are those of DRAM.
2. A walk has a flag for each destination: whether its beats go there. Else they go to the bus.
3. A beat for a destination is offered to it until it is taken. It opens no burst.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from amaranth import Module, Mux, Value
from amaranth.lib.wiring import Component

from vdla.hw.bursts import is_outside
from vdla.hw.hooks import PortHooks
from vdla.isa.config import Config
from vdla.isa.scratchpads import Mem


class DestinationHooks(PortHooks):
    """Seam of STORE: an option takes the beats of STOREs that name ``memory``; ``flag`` is the name
    of a walk's flag."""

    memory: ClassVar[Mem]
    flag: ClassVar[str]

    def begin(self, unit: Component) -> None:
        """Notes STORE, which has the ports."""
        self.unit = unit

    def is_beyond(self, place: Value) -> Value:
        """Whether a place, in beats, lies beyond the memory: a fault, and not offered."""
        raise NotImplementedError

    def write(self, m: Module, place: Value, beat: Value, offered: Value) -> Value:
        """Takes the ``beat`` for ``place`` if it is ``offered``; returns whether it does."""
        raise NotImplementedError


Chosen = Mapping[DestinationHooks, Value]  # destinations, each whether beats go there


def is_outside_target(config: Config, place: Value, dram_pages: Value, chosen: Chosen) -> Value:
    """Whether a beat at ``place`` lies outside DRAM, or beyond the destination that is chosen."""
    outside = is_outside(place, config, dram_pages)
    for destination, flag in chosen.items():
        outside = Mux(flag, destination.is_beyond(place), outside)
    return outside
