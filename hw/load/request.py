"""LOAD's request side: asks memory for the beats of one instruction after the other.

    start → run → burst → request
      s     s+1    s+2

1. An instruction starts when no run of another is on offer. Its runs are offered one after the
   other (``hw/runs.py``).
2. A run is taken when no burst is left of the one before, and cut into bursts (``hw/bursts.py``):
   one a cycle, across runs and, where they have more than one run, across instructions.
3. A burst is sent only if there is credit for it (``credit.py``), and an instruction starts only if
   fewer than IN_FLIGHT have started and not finished.
4. An instruction without entries is given up in the cycle after its start.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.bursts import Bursts, Run, is_outside, offset_bits, to_bytes
from vdla.hw.count import Count
from vdla.hw.interfaces import Port
from vdla.hw.load.credit import Credit, Traffic
from vdla.hw.load.memories import beats_of, longest_run
from vdla.hw.load.tiles import IN_FLIGHT
from vdla.hw.runs import Runs, Walk
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
    """``index`` is the number of the instruction whose burst is next, ``fails``: that burst lies
    outside DRAM.
    """

    def __init__(self, m: Module, config: Config, ports: RequestPorts) -> None:
        self.m, self.config, self.ports = m, config, ports
        # ``active``: an instruction has runs to offer, or is ``empty``; ``asks``: a burst is next.
        self.active, self.empty, self.asks, self.sent = (
            Signal(name=n) for n in ("active", "empty", "asks", "sent")
        )
        self.index = Signal(INDEX_BITS, reset_less=True)
        self.runs = Runs(m, config, self._walk())
        bits = longest_run(config).bit_length()
        self.bursts = Bursts(m, config, bits, self._is_outside)
        self._send()
        self._start()
        self._go_on()

    def _walk(self) -> Walk:
        """The walk of the instruction at the queue's head: a row of entries may be one run."""
        head, config = self.ports.head, self.config
        dense = head.x_stride == 1

        def scale(entries: Value) -> Value:
            return beats_of(config, head.memory, entries)

        return Walk(
            base=head.dram_base[offset_bits(config) :],
            beats=scale(Mux(dense, head.x_size, 1)),
            sizes=(Mux(dense, 1, head.x_size), head.y_size, head.z_size),
            strides=(scale(head.x_stride), scale(head.y_stride), scale(head.z_stride)),
        )

    def _is_outside(self, place: Value) -> Value:
        return is_outside(place, self.config, self.ports.dram_pages)

    def _send(self) -> None:
        """Shows the next burst, if there is credit for it."""
        request, arrives, bursts = self.ports.request, self.ports.data, self.bursts
        traffic = Traffic(self.sent, bursts.beats, arrives.valid & arrives.last, self.ports.consume)
        wanted = self.asks & Credit(self.m, self.config, traffic).allows
        self.fails: Value = wanted & bursts.outside & request.ready
        self.m.d.comb += [
            request.valid.eq(wanted & ~bursts.outside),
            request.address.eq(to_bytes(self.config, bursts.place)),
            request.beats.eq(bursts.beats),
            self.sent.eq(request.valid & request.ready),
        ]

    def _start(self) -> None:
        """Starts the next instruction where there is none."""
        m, command, head = self.m, self.ports.command, self.ports.head
        in_flight = Count(m, "in_flight", IN_FLIGHT)
        in_flight.move(command.start, command.finish)
        m.d.comb += command.start.eq(command.ready & ~in_flight.full & ~self.active)
        with m.If(command.start):
            m.d.sync += [
                self.active.eq(1),
                self.empty.eq((head.x_size == 0) | (head.y_size == 0) | (head.z_size == 0)),
            ]

    def _go_on(self) -> None:
        """Takes the run on offer behind the last burst of a run, and goes on to the next ones."""
        m, runs, bursts, command = self.m, self.runs, self.bursts, self.ports.command
        offers, free, taken = (Signal(name=n) for n in ("offers", "free", "taken"))
        started = Signal(INDEX_BITS, name="started", reset_less=True)  # number of the one at work
        m.d.comb += [
            offers.eq(self.active & ~self.empty),
            free.eq(~self.asks | (self.sent & bursts.ends_run)),
            taken.eq(offers & free),
        ]
        runs.go(taken | ~self.active, ~self.active)
        run = Run(runs.place, runs.beats, self._is_outside(runs.place))
        bursts.go(self.sent | ~self.asks, bursts.ends_run | ~self.asks, run)
        with m.If(free):
            m.d.sync += [self.asks.eq(offers), self.index.eq(started)]
        with m.If(~self.active):
            m.d.sync += started.eq(command.index)
        with m.Elif(self.empty | (taken & runs.last)):
            m.d.sync += self.active.eq(0)
