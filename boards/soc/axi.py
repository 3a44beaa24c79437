"""The core's AXI4 port on a board's memory.

1. Addresses and write beats are taken into a register each, so READY depends on nothing that the
   core shows in the same cycle. The core takes every beat and every answer at once (RREADY and
   BREADY are high), so neither is kept here. Strobes are not looked at: it writes whole beats.
2. Reads and writes take turns when both wait; a write waits until its first beat does, so that it
   never holds up reads for data that isn't there.
3. A burst that begins beyond the memory moves nothing: its beats and its answer bear DECERR, after
   the beats of the reads before it.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value
from amaranth.lib.enum import Enum
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.soc.memory import port
from vdla.hw.interfaces import axi4
from vdla.isa.config import Config

OKAY, DECERR = 0b00, 0b11
MOST_READS = 15  # that a memory can have taken and not answered


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
        """Passes a burst on as one request; beats beyond the memory it answers itself."""
        m = Module()
        self.state = Signal(State)
        self.done_read, self.done_write, self.done_beat = Signal(), Signal(), Signal()
        bus = self.bus
        read, (read_at, read_len, read_id) = self._taken(
            m, "ar", (bus.araddr, bus.arlen, bus.arid), self.done_read
        )
        write, (write_at, write_len) = self._taken(
            m, "aw", (bus.awaddr, bus.awlen), self.done_write
        )
        beat, (data, last) = self._taken(m, "w", (bus.wdata, bus.wlast), self.done_beat)
        writes = self._choose(m, read, write & beat)
        address, count = Mux(writes, write_at, read_at), Mux(writes, write_len, read_len) + 1
        inside = (address >> (self.shift + self.at_bits)) == 0
        wanted = (self.state == State.READY) & Mux(writes, write & beat, read)
        memory = self.memory
        taken = wanted & (memory.ready | ~inside)
        m.d.comb += [
            memory.valid.eq(wanted & inside),
            memory.write.eq(writes),
            memory.at.eq(address >> self.shift),
            memory.count.eq(count),
            memory.tag.eq(read_id),
            memory.write_valid.eq((self.state == State.WRITING) & beat),
            memory.write_data.eq(data),
            self.done_read.eq(taken & ~writes),
            self.done_write.eq(taken & writes),
            self.done_beat.eq(
                ((self.state == State.WRITING) & memory.write_ready)
                | (self.state == State.NOTHING_WRITTEN)
            ),
        ]
        self._answer(m, taken, writes, inside, read_len, read_id, beat & last)
        return m

    def _taken(
        self, m: Module, channel: str, fields: tuple[Value, ...], done: Value
    ) -> tuple[Value, list[Value]]:
        """A channel's register: whether it holds something, and what, until ``done``."""
        full = Signal(name=f"{channel}_full")
        held = [Signal.like(field, name=f"{channel}_{i}") for i, field in enumerate(fields)]
        valid, ready = (getattr(self.bus, f"{channel}{name}") for name in ("valid", "ready"))
        m.d.comb += ready.eq(~full)
        with m.If(ready & valid):
            m.d.sync += full.eq(1)
            m.d.sync += [mine.eq(field) for mine, field in zip(held, fields, strict=True)]
        with m.Elif(done):
            m.d.sync += full.eq(0)
        return full, held

    def _choose(self, m: Module, read: Value, write: Value) -> Value:
        """Whether the next request writes; one that waits to be taken stays."""
        latest, shown, shown_write = Signal(), Signal(), Signal()
        writes = Mux(shown, shown_write, write & (~read | ~latest))
        m.d.sync += [
            shown.eq(self.memory.valid & ~self.memory.ready),
            shown_write.eq(writes),
        ]
        with m.If(self.done_read | self.done_write):
            m.d.sync += latest.eq(writes)
        return writes

    def _answer(
        self,
        m: Module,
        taken: Value,
        writes: Value,
        inside: Value,
        read_len: Value,
        read_id: Value,
        last_beat: Value,
    ) -> None:
        """Beats and answers, real ones or those of a burst beyond the memory."""
        bus, memory, state = self.bus, self.memory, self.state
        left, reader = Signal.like(read_len), Signal.like(read_id)
        before = Signal(range(MOST_READS + 1))  # reads whose beats come first
        begun, ends = Signal(), memory.read_valid & memory.read_last
        nothing = (state == State.NOTHING_READ) & (before == 0)
        # No request comes right after another, so it is early enough to count it a cycle later.
        m.d.sync += [begun.eq(taken & ~writes & inside), before.eq(before + begun - ends)]
        m.d.sync += bus.bvalid.eq(0)
        with m.Switch(state):
            with m.Case(State.READY), m.If(taken):
                m.d.sync += [left.eq(read_len), reader.eq(read_id)]
                with m.If(writes):
                    m.d.sync += state.eq(Mux(inside, State.WRITING, State.NOTHING_WRITTEN))
                with m.Elif(~inside):
                    m.d.sync += state.eq(State.NOTHING_READ)
            with m.Case(State.WRITING), m.If(memory.done):
                m.d.sync += [state.eq(State.READY), bus.bvalid.eq(1), bus.bresp.eq(OKAY)]
            with m.Case(State.NOTHING_WRITTEN), m.If(last_beat):
                m.d.sync += [state.eq(State.READY), bus.bvalid.eq(1), bus.bresp.eq(DECERR)]
            with m.Case(State.NOTHING_READ), m.If(nothing):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.d.sync += state.eq(State.READY)
        m.d.comb += [
            bus.rvalid.eq(memory.read_valid | nothing),
            bus.rdata.eq(memory.read_data),
            bus.rid.eq(Mux(nothing, reader, memory.read_tag)),
            bus.rlast.eq(Mux(nothing, left == 0, memory.read_last)),
            bus.rresp.eq(Mux(nothing, DECERR, OKAY)),
        ]
