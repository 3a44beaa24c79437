"""The core's AXI4 port on a board's memory.

1. Reads and writes take turns when both wait; a write waits until its first beat does, so that it
   never holds up reads for data that isn't there.
2. The core takes every beat and every answer at once (RREADY and BREADY are high), so neither is
   kept here. Strobes are not looked at: the core writes whole beats.
3. A burst that begins beyond the memory moves nothing: its beats and its answer bear DECERR.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib.enum import Enum
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.soc.memory import port
from vdla.hw.interfaces import axi4
from vdla.isa.config import Config

OKAY, DECERR = 0b00, 0b11


class State(Enum, shape=2):
    """What the port is at."""

    READY = 0
    WRITING = 1
    NOTHING_READ = 2  # beats of a burst beyond the memory
    NOTHING_WRITTEN = 3


class AxiMemory(Component):
    """``bus`` from the core, ``memory`` with the read's ID as tag."""

    def __init__(self, config: Config, at_bits: int) -> None:
        self.shift = (config.port_bytes - 1).bit_length()
        self.at_bits = at_bits
        super().__init__(
            {"bus": In(axi4(config)), "memory": Out(port(at_bits, 8 * config.port_bytes, 1))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, memory = self.bus, self.memory
        state, latest_write = Signal(State), Signal()
        left, reader = Signal(8), Signal.like(bus.arid)
        wants_write = bus.awvalid & bus.wvalid
        shown, shown_write = Signal(), Signal()  # a request that waits stays as it is
        is_write = Signal()
        m.d.comb += is_write.eq(
            Mux(shown, shown_write, wants_write & (~bus.arvalid | ~latest_write))
        )
        address = Mux(is_write, bus.awaddr, bus.araddr)
        count = Mux(is_write, bus.awlen, bus.arlen) + 1
        wanted = Mux(is_write, wants_write, bus.arvalid)
        inside = (address >> (self.shift + self.at_bits)) == 0
        taken = Signal()
        m.d.comb += [
            memory.valid.eq((state == State.READY) & wanted & inside),
            memory.write.eq(is_write),
            memory.at.eq(address >> self.shift),
            memory.count.eq(count),
            memory.tag.eq(bus.arid),
            memory.write_valid.eq((state == State.WRITING) & bus.wvalid),
            memory.write_data.eq(bus.wdata),
            taken.eq((state == State.READY) & wanted & (memory.ready | ~inside)),
            bus.awready.eq(taken & is_write),
            bus.arready.eq(taken & ~is_write),
            bus.wready.eq(
                ((state == State.WRITING) & memory.write_ready) | (state == State.NOTHING_WRITTEN)
            ),
        ]
        m.d.sync += [
            shown.eq(memory.valid & ~memory.ready),
            shown_write.eq(is_write),
            bus.bvalid.eq(0),
        ]
        with m.If(taken):
            m.d.sync += [latest_write.eq(is_write), left.eq(bus.arlen), reader.eq(bus.arid)]
        with m.Switch(state):
            with m.Case(State.READY), m.If(taken):
                with m.If(is_write):
                    m.d.sync += state.eq(Mux(inside, State.WRITING, State.NOTHING_WRITTEN))
                with m.Elif(~inside):
                    m.d.sync += state.eq(State.NOTHING_READ)
            with m.Case(State.WRITING), m.If(memory.done):
                m.d.sync += [state.eq(State.READY), bus.bvalid.eq(1), bus.bresp.eq(OKAY)]
            with m.Case(State.NOTHING_WRITTEN), m.If(bus.wvalid & bus.wlast):
                m.d.sync += [state.eq(State.READY), bus.bvalid.eq(1), bus.bresp.eq(DECERR)]
            with m.Case(State.NOTHING_READ), m.If(~memory.read_valid):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.d.sync += state.eq(State.READY)
        nothing = (state == State.NOTHING_READ) & ~memory.read_valid
        m.d.comb += [
            bus.rvalid.eq(memory.read_valid | nothing),
            bus.rdata.eq(memory.read_data),
            bus.rid.eq(Mux(nothing, reader, memory.read_tag)),
            bus.rlast.eq(Mux(nothing, left == 0, memory.read_last)),
            bus.rresp.eq(Mux(nothing, DECERR, OKAY)),
        ]
        return m


