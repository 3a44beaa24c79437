"""Fetch: prefetches the stream and dispatches one instruction a cycle, in order.

1. It requests the next burst whenever the buffer has room for ``burst_beats`` beats beyond what it
   holds and has requested.
2. An instruction whose beats have all arrived goes to its engine's queue, one a cycle, if there is
   room. Beats are collected in slots of one instruction, so it is read in one piece.
3. FINISH stays at the head until no queue is ``busy``; then the program has ended.
4. An illegal instruction at the head is a fault, and so is a stream that FINISH doesn't end.
5. While ``idle``, fetch takes over where the program lies.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.bursts import PAGE_BITS, burst_beats, is_outside
from vdla.hw.interfaces import Fault, fault, read_data, read_request
from vdla.hw.layout import instruction_bits, layout, scaled
from vdla.isa.config import Config
from vdla.isa.instructions import (
    DRAM_BITS,
    INSTRUCTIONS,
    OPCODE_BITS,
    Engine,
    Finish,
    instruction_bytes,
)
from vdla.isa.registers import INDEX_BITS

FETCH_INSTRUCTIONS = 16  # instructions the buffer holds


class Fetch(Component):
    """Ports: where the stream lies; the DMA; ``put`` per engine with its word; what fetch sees."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.per_instruction = instruction_bytes(config) // config.port_bytes
        super().__init__(
            {
                "idle": In(1),
                "base": In(DRAM_BITS),
                "length": In(INDEX_BITS),
                "dram_pages": In(DRAM_BITS - PAGE_BITS + 1),
                "request": Out(read_request(config)),
                "data": In(read_data(config)),
                "word": Out(instruction_bits(config)),
                "index": Out(INDEX_BITS),
                "put": Out(len(Engine)),
                "room": In(len(Engine)),
                "busy": In(1),
                "dispatched": Out(1),
                "finished": Out(1),
                "fault": Out(fault()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        room = max(FETCH_INSTRUCTIONS * self.per_instruction, config.burst_beats)
        slots = -(-room // self.per_instruction)
        complete = Signal()
        dispatch = Signal()
        fails = Signal()  # the burst to be asked for lies out of bounds
        self._request(m, room, dispatch, fails)
        self._arrive(m, room, slots, complete, dispatch)
        illegal = self._dispatch(m, complete, dispatch)
        m.d.comb += [
            self.fault.valid.eq(fails | illegal),
            self.fault.cause.eq(Mux(fails, Fault.ADDRESS, Fault.ILLEGAL)),
            self.fault.index.eq(self.index),
        ]
        return m

    def _request(self, m: Module, room: int, dispatch: Value, fails: Value) -> None:
        config, request = self.config, self.request
        address = Signal(DRAM_BITS + 1)  # the top bit: it has left the 32-bit space
        left = Signal(range(self.per_instruction * ((1 << INDEX_BITS) - 1) + 1))
        held = Signal(range(room + 1))  # beats requested and not yet dispatched
        beats = burst_beats(m, config, address[:DRAM_BITS], left)
        wanted = Signal()
        sent = Signal.like(request.beats)
        enough = room - config.burst_beats + 1  # held: there is no room for another burst
        outside = Signal()  # whether ``address`` is: known with it
        m.d.comb += [
            wanted.eq(~self.idle & (left != 0) & (held < enough)),
            fails.eq(wanted & outside),
            request.valid.eq(wanted & ~outside),
            request.address.eq(address),
            request.beats.eq(beats),
        ]
        with m.If(request.valid & request.ready):
            there = (address + scaled(beats, config.port_bytes))[: DRAM_BITS + 1]
            m.d.comb += sent.eq(beats)
            m.d.sync += [address.eq(there), outside.eq(is_outside(there, config, self.dram_pages))]
        m.d.sync += left.eq(left - sent)
        m.d.sync += held.eq(held + sent - Mux(dispatch, self.per_instruction, 0))
        with m.If(self.idle):
            m.d.sync += address.eq(self.base)
            m.d.sync += outside.eq(is_outside(self.base, config, self.dram_pages))
            m.d.sync += left.eq(scaled(self.length, self.per_instruction))
            m.d.sync += held.eq(0)

    def _arrive(
        self, m: Module, room: int, slots: int, complete: Value, dispatch: Value
    ) -> None:
        """Collects beats in slots, each beat in its column; shows the word in the oldest slot."""
        bits = 8 * self.config.port_bytes
        m.submodules.buffer = buffer = Memory(
            shape=instruction_bits(self.config), depth=slots, init=[]
        )
        write = buffer.write_port(granularity=bits)
        read = buffer.read_port(domain="comb")
        arrived = Signal(range(room + 1))  # beats arrived and not yet dispatched
        column = Signal(range(self.per_instruction))
        last = column == self.per_instruction - 1
        m.d.comb += [
            complete.eq(arrived >= self.per_instruction),
            write.data.eq(self.data.data.replicate(self.per_instruction)),
            write.en.eq(Mux(self.data.valid, 1 << column, 0)),
            self.word.eq(read.data),
        ]
        m.d.sync += arrived.eq(
            arrived + self.data.valid - Mux(dispatch, self.per_instruction, 0)
        )
        with m.If(self.data.valid):
            m.d.sync += column.eq(Mux(last, 0, column + 1))
            with m.If(last):
                m.d.sync += write.addr.eq(Mux(write.addr == slots - 1, 0, write.addr + 1))
        with m.If(dispatch):
            m.d.sync += read.addr.eq(Mux(read.addr == slots - 1, 0, read.addr + 1))
        with m.If(self.idle):
            m.d.sync += [arrived.eq(0), column.eq(0), write.addr.eq(0), read.addr.eq(0)]

    def _dispatch(self, m: Module, complete: Value, dispatch: Value) -> Value:
        """Gives the head to its engine; returns whether it is illegal."""
        is_last = Signal()
        opcode = self.word[:OPCODE_BITS]
        m.d.comb += is_last.eq(self.index == self.length - 1)
        m.d.comb += self.dispatched.eq(is_last)
        for engine in Engine:
            mine = [c.opcode for c in INSTRUCTIONS if c.engine == engine and c != Finish]
            m.d.comb += self.put[engine].eq(
                complete & ~is_last & opcode.matches(*mine) & self.room[engine]
            )
        m.d.comb += dispatch.eq(self.put.any())
        m.d.comb += self.finished.eq(complete & is_last & ~self.busy)
        m.d.sync += self.index.eq(self.index + dispatch)
        with m.If(self.idle):
            m.d.sync += self.index.eq(0)
        illegal = Signal()
        ends = opcode == Finish.opcode
        m.d.comb += illegal.eq(complete & (self._malformed(m) | (ends ^ is_last)))
        return illegal

    def _malformed(self, m: Module) -> Value:
        """Whether the head has an opcode or an enumerated field that the ISA doesn't know."""
        bad = Signal()
        with m.Switch(self.word[:OPCODE_BITS]):
            for cls in INSTRUCTIONS:
                with m.Case(cls.opcode):
                    view = data.View(layout(cls, self.config), self.word[: cls.bits(self.config)])
                    unknown = (~view[f.name].matches(*f.legal) for f in cls.fields if f.legal)
                    m.d.comb += bad.eq(Cat(*unknown).any())
            with m.Default():
                m.d.comb += bad.eq(1)
        return bad
