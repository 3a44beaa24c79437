"""Fetch: prefetches the stream and dispatches one instruction a cycle, in order.

1. It requests the next burst whenever the buffer has room for ``burst_beats`` beats beyond what it
   holds and has requested. The buffer has this room beside any part of an instruction
   (``fetch_buffer_beats``), so fetch never waits for beats that it can't request.
2. An instruction whose beats have all arrived goes to its engine's queue, one a cycle, if there is
   room. Beats are collected in slots of one instruction, so it is read in one piece.
3. FINISH stays at the head until no queue is ``busy``; then the program has ended.
4. An illegal instruction at the head is a fault, and so are one whose ``dram_base`` lies between
   two beats, so that LOAD and STORE never see those bits, and a stream that FINISH doesn't end.
5. While ``idle``, fetch copies the program's address and length into its registers; while
   ``awake``, it requests bursts. ``awake`` is always the opposite of ``idle``. It is an input of
   its own because ``idle`` drives so many gates that a request made from it would come late.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from vdla.hw.bursts import (
    PAGES_BITS,
    beat_bits,
    burst_beats,
    is_outside,
    offset_bits,
    to_bytes,
)
from vdla.hw.count import Count
from vdla.hw.interfaces import Fault, fault, read_data, read_request
from vdla.hw.layout import instruction_bits, layout, scaled
from vdla.isa.config import Config
from vdla.isa.encoding import fetch_buffer_beats, instruction_beats
from vdla.isa.instructions import (
    DRAM_BITS,
    OPCODE_BITS,
    Finish,
    instruction_set,
)
from vdla.isa.registers import INDEX_BITS
from vdla.isa.ring import engines, numbered, ring_of
from vdla.support.numbers import ceil_div


class Fetch(Component):
    """Ports: where the stream lies; the DMA; ``put`` and ``room`` per engine, in the order of the
    engines' numbers, with the word; what fetch sees."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.per_instruction = instruction_beats(config)
        super().__init__(
            {
                "idle": In(1),
                "awake": In(1),
                "base": In(DRAM_BITS),
                "length": In(INDEX_BITS),
                "dram_pages": In(PAGES_BITS),
                "request": Out(read_request(config)),
                "data": In(read_data(config)),
                "word": Out(instruction_bits(config)),
                "index": Out(INDEX_BITS),
                "put": Out(len(engines(config))),
                "room": In(len(engines(config))),
                "busy": In(1),
                "dispatched": Out(1),
                "finished": Out(1),
                "fault": Out(fault()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Asks for bursts, collects their beats and dispatches; any of these may report a fault."""
        m = Module()
        config = self.config
        room = fetch_buffer_beats(config)
        slots = ceil_div(room, self.per_instruction)
        complete = Signal()
        dispatch = Signal()
        fails = Signal()  # the burst to be asked for lies out of bounds
        self._request(m, room, dispatch, fails)
        self._arrive(m, slots, complete, dispatch)
        illegal = self._dispatch(m, complete, dispatch)
        misaligned = self._misaligned(m)
        m.d.comb += [
            self.fault.valid.eq(fails | illegal | (complete & misaligned)),
            self.fault.cause.eq(Mux(fails | misaligned, Fault.ADDRESS, Fault.ILLEGAL)),
            self.fault.index.eq(self.index),
        ]
        return m

    def _request(self, m: Module, room: int, dispatch: Value, fails: Value) -> None:
        """Asks for bursts. What decides on the next one is known, in registers, when it is due."""
        config, request, per = self.config, self.request, self.per_instruction
        offset = offset_bits(config)
        place = Signal(beat_bits(config) + 1)  # the top bit: it has left the 32-bit space
        most = per * ((1 << INDEX_BITS) - 1)
        asked = Signal(range(most + 1))  # complement of the beats not yet requested: it counts up
        held = Signal(range(room + 1))  # beats requested and not yet dispatched
        more, fits, outside = (Signal(name=n) for n in ("more", "fits", "outside"))
        enough = room - config.burst_beats + 1  # held: there is no room for another burst
        wanted, sent = Signal(name="wanted"), Signal(name="sent")
        grown = Signal.like(held)
        m.d.comb += [
            wanted.eq(self.awake & more & fits),
            fails.eq(wanted & outside),
            request.valid.eq(wanted & ~outside),
            request.address.eq(to_bytes(config, place)),
            sent.eq(request.valid & request.ready),
            grown.eq(held + Mux(sent, request.beats, 0)),
        ]
        there, rest = Signal.like(place, name="there"), Signal.like(asked, name="rest")
        with m.If(self.idle):
            m.d.comb += [there.eq(self.base[offset:]), rest.eq(scaled(self.length, per))]
        with m.Else():
            m.d.comb += there.eq(place + request.beats)
            m.d.comb += rest.eq(~(asked + request.beats))
        with m.If(self.idle | sent):
            m.d.sync += [
                place.eq(there),
                outside.eq(is_outside(there, config, self.dram_pages) | self.base[:offset].any()),
                asked.eq(~rest),
                more.eq(rest != 0),
                request.beats.eq(burst_beats(config, there, rest)),
            ]
        m.d.sync += held.eq(grown - Mux(dispatch, per, 0))
        m.d.sync += fits.eq(Mux(dispatch, grown < enough + per, grown < enough))
        with m.If(self.idle):
            m.d.sync += [held.eq(0), fits.eq(1)]

    def _arrive(self, m: Module, slots: int, complete: Value, dispatch: Value) -> None:
        """Collects beats in slots, each beat in its column; shows the word in the oldest slot."""
        bits = 8 * self.config.port_bytes
        m.submodules.buffer = buffer = Memory(
            shape=instruction_bits(self.config), depth=slots, init=[]
        )
        write = buffer.write_port(granularity=bits)
        read = buffer.read_port(domain="comb")
        whole = Count(m, "whole", slots)  # instructions that have arrived and wait
        column = Signal(range(self.per_instruction))
        last = column == self.per_instruction - 1
        whole.move(self.data.valid & last, dispatch)
        m.d.comb += [
            complete.eq(whole.some),
            write.data.eq(self.data.data.replicate(self.per_instruction)),
            write.en.eq(Mux(self.data.valid, 1 << column, 0)),
            self.word.eq(read.data),
        ]
        with m.If(self.data.valid):
            m.d.sync += column.eq(Mux(last, 0, column + 1))
            with m.If(last):
                m.d.sync += write.addr.eq(Mux(write.addr == slots - 1, 0, write.addr + 1))
        with m.If(dispatch):
            m.d.sync += read.addr.eq(Mux(read.addr == slots - 1, 0, read.addr + 1))
        with m.If(self.idle):
            whole.clear()
            m.d.sync += [column.eq(0), write.addr.eq(0), read.addr.eq(0)]

    def _dispatch(self, m: Module, complete: Value, dispatch: Value) -> Value:
        """Gives the head to its engine; returns whether it is illegal."""
        is_last = Signal()
        after, later = (Signal(INDEX_BITS, name=n) for n in ("after", "later"))  # index + 1, + 2
        opcode = self.word[:OPCODE_BITS]
        m.d.comb += [self.dispatched.eq(is_last), later.eq(after + 1)]
        for role in ring_of(self.config).roles:
            mine = [cls.opcode for cls in role.executes if cls is not Finish]
            place = numbered(self.config).index(role.engine)
            m.d.comb += self.put[place].eq(
                complete & ~is_last & opcode.matches(*mine) & self.room[place]
            )
        m.d.comb += dispatch.eq(self.put.any())
        m.d.comb += self.finished.eq(complete & is_last & ~self.busy)
        with m.If(dispatch):
            m.d.sync += [self.index.eq(after), after.eq(later), is_last.eq(later == self.length)]
        with m.If(self.idle):
            m.d.sync += [
                self.index.eq(0),
                after.eq(1),
                is_last.eq(self.length == 1),
            ]
        illegal = Signal()
        ends = opcode == Finish.opcode
        m.d.comb += illegal.eq(complete & (self._malformed(m) | (ends ^ is_last)))
        return illegal

    def _misaligned(self, m: Module) -> Value:
        """Whether a field of the head is no multiple of what it should be one of."""
        bad = Signal()
        with m.Switch(self.word[:OPCODE_BITS]):
            for cls in instruction_set(self.config):
                fields = [f for f, _, _ in cls.layout(self.config)]
                units = [(f.name, f.multiple(self.config)) for f in fields]
                if any(unit > 1 for _, unit in units):
                    view = data.View(layout(cls, self.config), self.word[: cls.bits(self.config)])
                    low = (view[name][: exact_log2(unit)] for name, unit in units)
                    with m.Case(cls.opcode):
                        m.d.comb += bad.eq(Cat(*low).any())
        return bad

    def _malformed(self, m: Module) -> Value:
        """Whether the head has an opcode or an enumerated field that the ISA doesn't know."""
        bad = Signal()
        with m.Switch(self.word[:OPCODE_BITS]):
            for cls in instruction_set(self.config):
                with m.Case(cls.opcode):
                    view = data.View(layout(cls, self.config), self.word[: cls.bits(self.config)])
                    unknown = (
                        ~view[f.name].matches(*f.legal(self.config)) for f in cls.fields if f.names
                    )
                    m.d.comb += bad.eq(Cat(*unknown).any())
            with m.Default():
                m.d.comb += bad.eq(1)
        return bad
