"""LOAD's request side: asks memory for the beats of one instruction after the other.

1. It takes the next instruction when it is free or sends its last burst; one cycle later it sends
   the first burst of that one.
2. Runs go in the order z, y, x: a run is a row of entries that lie together, else one entry. Runs
   are cut into bursts that end with their page.
3. It sends a burst only if there is credit for it (``credit.py``), and starts an instruction only
   if fewer than IN_FLIGHT have started and not finished.
4. What decides on a burst is worked out a cycle before, into registers: its length, whether it ends
   its run, whether it lies outside DRAM.
5. Places in DRAM only grow, and never wrap: the top bit says that the 32-bit space was left.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.bursts import beat_bits, cut, is_outside, offset_bits, to_bytes
from vdla.hw.count import Count
from vdla.hw.interfaces import Port
from vdla.hw.layout import add_sticky
from vdla.hw.load.credit import Credit, Traffic
from vdla.hw.load.memories import beats_of, longest_run
from vdla.hw.load.tiles import IN_FLIGHT
from vdla.hw.loops import Loop, Nest
from vdla.isa.config import Config
from vdla.isa.registers import INDEX_BITS


@dataclass(frozen=True)
class RequestPorts:
    """Ports that the request side is connected to. It drives ``request`` and ``command.start``."""

    command: Port  # interfaces.command: the next instruction
    head: data.View  # that instruction's fields
    request: Port  # interfaces.read_request: the bursts
    data: Port  # interfaces.read_data: the beats that come
    consume: Signal  # the write side takes a beat out of the read buffer
    dram_pages: Value  # where DRAM ends


class Request:
    """``index`` is the number of the instruction at work, ``fails`` that its next burst lies
    outside DRAM.
    """

    def __init__(self, m: Module, config: Config, ports: RequestPorts) -> None:
        self.m, self.config, self.ports = m, config, ports
        self.now = Signal(ports.head.shape(), reset_less=True)  # the instruction at work
        self.index = Signal(INDEX_BITS, reset_less=True)
        self.place = Signal(beat_bits(config) + 1, reset_less=True)  # the beat it asks for next
        self.run = Signal(range(longest_run(config) + 1), reset_less=True)  # beats of a run
        # Complement of the beats left of the run: it counts up.
        self.asked = Signal.like(self.run, name="asked")
        self.length = Signal(range(config.burst_beats + 1))  # of the next burst: ready in advance
        self.active, self.empty, self.sent, self.ends_run, self.last_run = (
            Signal(name=n) for n in ("active", "empty", "sent", "ends_run", "last_run")
        )
        self.outside = Signal()  # whether ``place`` is: known with it, too
        unused = ~self.active | self.empty
        # What comes next is the next instruction; and it comes now.
        self.begins = unused | (self.ends_run & self.last_run)
        self.moves = unused | self.sent
        self._connect()

    def _connect(self) -> None:
        ports, arrives = self.ports, self.ports.data
        ends = arrives.valid & arrives.last
        traffic = Traffic(self.sent, self.length, ends, ports.consume)
        credit = Credit(self.m, self.config, traffic)
        wanted = self.active & ~self.empty & credit.allows
        self.fails: Value = wanted & self.outside & ports.request.ready
        may_start = ports.command.ready & self._may_start()
        self._send(wanted, may_start)
        self._go_on()
        self._begin(may_start)

    def _may_start(self) -> Value:
        command = self.ports.command
        in_flight = Count(self.m, "in_flight", IN_FLIGHT)
        in_flight.move(command.start, command.finish)
        return ~in_flight.full

    def _send(self, wanted: Value, may_start: Value) -> None:
        """Shows the burst at ``place``; starts the next instruction with the last of them."""
        request, command = self.ports.request, self.ports.command
        self.m.d.comb += [
            request.valid.eq(wanted & ~self.outside),
            request.address.eq(to_bytes(self.config, self.place)),
            request.beats.eq(self.length),
            self.sent.eq(request.valid & request.ready),
            command.start.eq(may_start & self.begins & self.moves),
        ]

    def _go_on(self) -> None:
        """Fills the registers for the burst after this one."""
        m, config = self.m, self.config
        place, rest = self._following()
        length, ends_run = cut(config, place, rest)
        with m.If(self.moves):
            m.d.sync += [
                self.place.eq(place),
                self.outside.eq(is_outside(place, config, self.ports.dram_pages)),
                self.asked.eq(~rest),
                self.length.eq(length),
                self.ends_run.eq(ends_run),
            ]

    def _following(self) -> tuple[Value, Value]:
        """Place at which the burst after this one begins, and the beats left in its run then."""
        m, head = self.m, self.ports.head
        next_run, is_last = self._walk()
        entries = Mux(head.x_stride == 1, head.x_size, 1)
        first_run = beats_of(self.config, head.memory, entries)
        place, rest = Signal.like(self.place), Signal.like(self.run)
        m.d.comb += self.last_run.eq(is_last)
        with m.If(self.begins):
            first = head.dram_base[offset_bits(self.config) :]
            m.d.comb += [place.eq(first), rest.eq(first_run)]
            m.d.sync += [self.now.eq(head), self.run.eq(first_run)]
        with m.Elif(self.ends_run):
            m.d.comb += [place.eq(next_run), rest.eq(self.run)]
        with m.Else():
            m.d.comb += place.eq(add_sticky(self.place, self.length))
            m.d.comb += rest.eq(~(self.asked + self.length))
        return place, rest

    def _walk(self) -> tuple[Value, Value]:
        """Goes to the next run, x before y before z: where it is, and whether this is the last."""
        m, head, now = self.m, self.ports.head, self.now
        bits = beat_bits(self.config) + 1
        bases = [Signal(bits, name=f"base_{a}", reset_less=True) for a in "xyz"]
        loops = [Loop(m, f"runs_{a}", size) for a, size in zip("xyz", _runs(now), strict=True)]
        first = head.dram_base[offset_bits(self.config) :], _runs(head)
        strides = [now[f"{a}_stride"] for a in "xyz"]

        def scale(stride: Value) -> Value:
            return beats_of(self.config, now.memory, stride)

        nest = Nest(loops, bases, strides, scale)
        following = nest.advance(m, self.moves, self.begins, first, self.ends_run)
        x, y, z = loops
        return following, x.end & y.end & z.end

    def _begin(self, may_start: Value) -> None:
        """Takes over what the next instruction says of itself, or that there is none."""
        m, head = self.m, self.ports.head
        with m.If(self.moves & self.begins):
            m.d.sync += [
                self.active.eq(may_start),
                self.index.eq(self.ports.command.index),
                self.empty.eq((head.x_size == 0) | (head.y_size == 0) | (head.z_size == 0)),
            ]


def _runs(instruction: data.View) -> tuple[Value, Value, Value]:
    """Runs of a row, rows, planes: a row of entries that lie together is one run."""
    x = Mux(instruction.x_stride == 1, 1, instruction.x_size)
    return x, instruction.y_size, instruction.z_size
