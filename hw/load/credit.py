"""Credit: how much LOAD may ask memory for, so that it has room for each beat that comes.

1. ``reads_in_flight`` bursts may be under way: from the cycle in which one is sent to its last
   beat.
2. A burst takes room in the read buffer for all its beats when it is sent. The room comes back beat
   by beat, as the write side takes them out.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Mux, Signal, Value

from vdla.hw.count import Count
from vdla.isa.config import Config


@dataclass(frozen=True)
class Traffic:
    """Events that a credit counts in a cycle."""

    sent: Value  # a burst is sent
    length: Value  # beats of the burst that is sent, or would be
    ends: Value  # the last beat of a burst comes
    consume: Value  # a beat leaves the read buffer


class Credit:
    """``allows`` is high while a burst of ``traffic.length`` beats may be sent."""

    def __init__(self, m: Module, config: Config, traffic: Traffic) -> None:
        bursts = Count(m, "bursts", config.reads_in_flight)
        bursts.move(traffic.sent, traffic.ends)
        most = config.read_buffer_beats
        room = Signal(range(most + 1), init=most)  # for beats that nobody has asked for
        m.d.sync += room.eq(room - Mux(traffic.sent, traffic.length, 0) + traffic.consume)
        self.allows: Value = ~bursts.full & (traffic.length <= room)
