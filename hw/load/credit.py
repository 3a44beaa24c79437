"""Credit: how much LOAD may ask memory for, so that it has room for each beat that comes.

1. ``reads_in_flight`` bursts may be under way: from the cycle in which one is sent to its last
   beat.
2. A burst takes room in the read buffer for all its beats when it is sent. The room comes back beat
   by beat, as the write side takes them out.
3. One is sent while there is room for the longest: so it is known, in a register, before its length
   is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Mux, Signal, Value, signed

from vdla.hw.count import Count
from vdla.hw.layout import is_at_least
from vdla.isa.config import Config


@dataclass(frozen=True)
class Traffic:
    """Events that a credit counts in a cycle."""

    sent: Value  # a burst is sent
    length: Value  # beats of the next burst
    ends: Value  # the last beat of a burst comes
    consume: Value  # a beat leaves the read buffer


class Credit:
    """``allows`` is high while a burst may be sent."""

    def __init__(self, m: Module, config: Config, traffic: Traffic) -> None:
        bursts = Count(m, "bursts", config.reads_in_flight)
        bursts.move(traffic.sent, traffic.ends)
        most, longest = config.read_buffer_beats, config.burst_beats
        room = Signal(range(most + 1), init=most)  # for beats that nobody has asked for
        fits = Signal(name="fits", init=1)
        less = Signal(signed(len(room) + 1), name="less")
        m.d.comb += less.eq(room - traffic.length)
        # What happens is late: whether the next burst fits is ready for each of four cases.
        kept_fits, less_fits = (
            Mux(traffic.consume, is_at_least(left, longest - 1), is_at_least(left, longest))
            for left in (room, less)
        )
        m.d.sync += [
            room.eq(Mux(traffic.sent, less, room) + traffic.consume),
            fits.eq(Mux(traffic.sent, less_fits, kept_fits)),
        ]
        self.allows: Value = ~bursts.full & fits
