"""The port of a board's memory: bursts of beats, one after the other.

1. A request is taken when ``valid`` and ``ready``: ``count`` beats (1 or more) from beat ``at`` on.
   Its ``tag`` comes back with its data. Until it is taken, a user may show another one.
2. The next request may be taken while the beats of the one before it move. They move in the order
   of the requests, so whatever is read later sees what was written.
3. A write takes its beats one by one when ``write_valid`` and ``write_ready``; ``write_tag`` is its
   own. ``done`` pulses when the last is taken.
4. Read data comes with ``read_valid``, in the order of the requests, and must be taken; ``last``
   marks a request's last beat.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out, Signature

COUNT_BITS = 9  # beats of a request: AXI's longest burst, or a frame of the serial link


def port(address_bits: int, beat_bits: int, tag_bits: int) -> Signature:
    """Signature of a memory's port, as the port's user sees it."""
    return Signature(
        {
            "valid": Out(1),
            "ready": In(1),
            "write": Out(1),
            "at": Out(address_bits),
            "count": Out(COUNT_BITS),
            "tag": Out(tag_bits),
            "write_valid": Out(1),
            "write_ready": In(1),
            "write_tag": In(tag_bits),
            "write_data": Out(beat_bits),
            "done": In(1),
            "read_valid": In(1),
            "read_data": In(beat_bits),
            "read_tag": In(tag_bits),
            "read_last": In(1),
        }
    )


class Shared(Component):
    """One memory for two users, in turn, request by request, when both want it."""

    def __init__(self, address_bits: int, beat_bits: int, tag_bits: int) -> None:
        self.user = port(address_bits, beat_bits, tag_bits)
        memory = port(address_bits, beat_bits, tag_bits + 1)
        super().__init__({"first": In(self.user), "second": In(self.user), "memory": Out(memory)})

    def elaborate(self, platform: object) -> Module:
        """Chooses whose request is next; answers go back by the tag, which says whose they are."""
        m = Module()
        memory, users = self.memory, (self.first, self.second)
        latest, chosen, writer = Signal(), Signal(), Signal()  # writer: whose beat is taken
        m.d.comb += chosen.eq(Mux(self.first.valid & self.second.valid, ~latest, self.second.valid))
        with m.If(memory.valid & memory.ready):
            m.d.sync += latest.eq(chosen)
        for name in ("valid", "write", "at", "count"):
            values = [getattr(user, name) for user in users]
            m.d.comb += getattr(memory, name).eq(Mux(chosen, values[1], values[0]))
        tags = [user.tag for user in users]
        bits = len(tags[0])
        m.d.comb += [
            writer.eq(memory.write_tag[bits]),
            memory.tag[:bits].eq(Mux(chosen, tags[1], tags[0])),
            memory.tag[bits].eq(chosen),
            memory.write_valid.eq(Mux(writer, users[1].write_valid, users[0].write_valid)),
            memory.write_data.eq(Mux(writer, users[1].write_data, users[0].write_data)),
        ]
        for number, user in enumerate(users):
            mine = memory.read_tag[bits] == number
            m.d.comb += [
                user.ready.eq(memory.ready & (chosen == number)),
                user.write_ready.eq(memory.write_ready & (writer == number)),
                user.write_tag.eq(memory.write_tag[:bits]),
                user.done.eq(memory.done & (writer == number)),
                user.read_valid.eq(memory.read_valid & mine),
                user.read_data.eq(memory.read_data),
                user.read_tag.eq(memory.read_tag[:bits]),
                user.read_last.eq(memory.read_last),
            ]
        return m
