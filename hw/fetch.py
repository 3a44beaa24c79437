"""Fetch: prefetches the stream and dispatches one instruction a cycle, in order.

1. It requests the next burst whenever the buffer has room for ``burst_beats`` beats beyond what it
   holds and has requested. The buffer has this room beside any part of an instruction
   (``fetch_buffer_beats``), so fetch never waits for beats that it can't request.
2. Beats are collected in slots of one instruction, so it is read in one piece. One whose beats have
   all arrived goes into a register, the head, with what there is to know of it: for which engine it
   is, and what is wrong with it. From there it goes to its engine's queue, one a cycle, if there is
   room.
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

from vdla.hw.bursts import PAGES_BITS, Bursts, Run, is_outside, offset_bits, to_bytes
from vdla.hw.count import Count
from vdla.hw.interfaces import Fault, fault, read_data, read_request
from vdla.hw.layout import instruction_bits, is_at_least, layout, scaled, valid_register
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
        arrived, shows = Signal(), Signal()  # an instruction waits, and goes to the head
        dispatch = Signal()
        fails = Signal()  # the burst to be asked for lies out of bounds
        self._request(m, room, dispatch, fails)
        oldest = self._arrive(m, slots, arrived, shows)
        self.head = self._show(m, oldest, arrived, shows, dispatch)
        illegal = self._dispatch(m, dispatch)
        misaligned = self.head.valid & self.head.misaligned
        m.d.comb += [
            self.fault.valid.eq(fails | illegal | misaligned),
            self.fault.cause.eq(Mux(fails | self.head.misaligned, Fault.ADDRESS, Fault.ILLEGAL)),
            self.fault.index.eq(self.index),
        ]
        return m

    def _request(self, m: Module, room: int, dispatch: Value, fails: Value) -> None:
        """Asks for bursts of one run, the stream. What decides on the next one is known, in
        registers, when it is due."""
        config, request, per = self.config, self.request, self.per_instruction
        offset = offset_bits(config)
        most = per * ((1 << INDEX_BITS) - 1)
        more, fits, wanted, sent = (Signal(name=n) for n in ("more", "fits", "wanted", "sent"))

        def outside(place: Value) -> Value:
            return is_outside(place, config, self.dram_pages) | self.base[:offset].any()

        bursts = Bursts(m, config, most.bit_length(), outside)
        m.d.comb += [
            wanted.eq(self.awake & more & fits),
            fails.eq(wanted & bursts.outside),
            request.valid.eq(wanted & ~bursts.outside),
            request.address.eq(to_bytes(config, bursts.place)),
            request.beats.eq(bursts.beats),
            sent.eq(request.valid & request.ready),
        ]
        place, beats = self.base[offset:], Signal(most.bit_length(), name="stream")
        m.d.sync += beats.eq(scaled(self.length, per))  # it stays from START on
        bursts.go(self.idle | sent, self.idle, Run(place, beats, outside(place)))
        with m.If(self.idle):
            m.d.sync += more.eq(self.length != 0)
        with m.Elif(sent):
            m.d.sync += more.eq(~bursts.ends_run)
        self._hold(m, room, fits, (sent, request.beats, dispatch))

    def _hold(self, m: Module, room: int, fits: Signal, moves: tuple[Value, Value, Value]) -> None:
        """Counts beats requested and not yet dispatched. ``moves``: a burst is sent, of so many
        beats, and an instruction dispatched. These are late, so whether the next burst fits is
        ready for each of four cases."""
        sent, beats, dispatch = moves
        per, most = self.per_instruction, room - self.config.burst_beats  # for it to fit
        held = Signal(range(room + 1))
        grown = held + beats
        kept_fits, grown_fits = (
            ~Mux(dispatch, is_at_least(now, most + per + 1), is_at_least(now, most + 1))
            for now in (held, grown)
        )
        m.d.sync += [
            held.eq(Mux(sent, grown, held) - Mux(dispatch, per, 0)),
            fits.eq(Mux(sent, grown_fits, kept_fits)),
        ]
        with m.If(self.idle):
            m.d.sync += [held.eq(0), fits.eq(1)]

    def _arrive(self, m: Module, slots: int, arrived: Value, shows: Value) -> Value:
        """Collects beats in slots, each beat in its column; returns the word in the oldest slot."""
        bits = 8 * self.config.port_bytes
        m.submodules.buffer = buffer = Memory(
            shape=instruction_bits(self.config), depth=slots, init=[]
        )
        write = buffer.write_port(granularity=bits)
        read = buffer.read_port(domain="comb")
        whole = Count(m, "whole", slots)  # instructions that have arrived and wait
        column = Signal(range(self.per_instruction))
        last = column == self.per_instruction - 1
        whole.move(self.data.valid & last, shows)
        m.d.comb += [
            arrived.eq(whole.some),
            write.data.eq(self.data.data.replicate(self.per_instruction)),
            write.en.eq(Mux(self.data.valid, 1 << column, 0)),
        ]
        with m.If(self.data.valid):
            m.d.sync += column.eq(Mux(last, 0, column + 1))
            with m.If(last):
                m.d.sync += write.addr.eq(Mux(write.addr == slots - 1, 0, write.addr + 1))
        with m.If(shows):
            m.d.sync += read.addr.eq(Mux(read.addr == slots - 1, 0, read.addr + 1))
        with m.If(self.idle):
            whole.clear()
            m.d.sync += [column.eq(0), write.addr.eq(0), read.addr.eq(0)]
        return read.data

    def _show(
        self, m: Module, word: Value, arrived: Value, shows: Value, dispatch: Value
    ) -> data.View:
        """The head: an instruction, if it is ``valid``, and what there is to know of it."""
        roles = ring_of(self.config).roles
        marks = dict.fromkeys(("valid", "malformed", "misaligned", "ends"), 1)
        shape = data.StructLayout({**marks, "engine": len(roles), "word": len(word)})
        head = valid_register(shape, 1, "head")
        opcode, numbers = word[:OPCODE_BITS], numbered(self.config)
        m.d.comb += [shows.eq(arrived & (~head.valid | dispatch)), self.word.eq(head.word)]
        with m.If(~head.valid | dispatch):
            m.d.sync += [
                head.valid.eq(arrived),
                head.word.eq(word),
                head.malformed.eq(self._malformed(m, word)),
                head.misaligned.eq(self._misaligned(m, word)),
                head.ends.eq(opcode == Finish.opcode),
            ]
            for role in roles:
                mine = [cls.opcode for cls in role.executes if cls is not Finish]
                place = numbers.index(role.engine)
                m.d.sync += head.engine[place].eq(opcode.matches(*mine))
        with m.If(self.idle):
            m.d.sync += head.valid.eq(0)
        return head

    def _dispatch(self, m: Module, dispatch: Value) -> Value:
        """Gives the head to its engine; returns whether it is illegal."""
        head, is_last = self.head, Signal(name="is_last")
        after, later = (Signal(INDEX_BITS, name=n) for n in ("after", "later"))  # index + 1, + 2
        m.d.comb += [
            self.dispatched.eq(is_last),
            later.eq(after + 1),
            self.put.eq(Mux(head.valid & ~is_last, head.engine & self.room, 0)),
            dispatch.eq(self.put.any()),
            self.finished.eq(head.valid & is_last & ~self.busy),
        ]
        with m.If(dispatch):
            m.d.sync += [self.index.eq(after), after.eq(later), is_last.eq(later == self.length)]
        with m.If(self.idle):
            m.d.sync += [self.index.eq(0), after.eq(1), is_last.eq(self.length == 1)]
        illegal = Signal()
        m.d.comb += illegal.eq(head.valid & (head.malformed | (head.ends ^ is_last)))
        return illegal

    def _misaligned(self, m: Module, word: Value) -> Value:
        """Whether a field of an instruction is no multiple of what it should be one of."""
        bad = Signal(name="misaligned")
        with m.Switch(word[:OPCODE_BITS]):
            for cls in instruction_set(self.config):
                fields = [f for f, _, _ in cls.layout(self.config)]
                units = [(f.name, f.multiple(self.config)) for f in fields]
                if any(unit > 1 for _, unit in units):
                    view = data.View(layout(cls, self.config), word[: cls.bits(self.config)])
                    low = (view[name][: exact_log2(unit)] for name, unit in units)
                    with m.Case(cls.opcode):
                        m.d.comb += bad.eq(Cat(*low).any())
        return bad

    def _malformed(self, m: Module, word: Value) -> Value:
        """Whether an instruction has an opcode or an enumerated field that the ISA doesn't know."""
        bad = Signal(name="malformed")
        with m.Switch(word[:OPCODE_BITS]):
            for cls in instruction_set(self.config):
                with m.Case(cls.opcode):
                    view = data.View(layout(cls, self.config), word[: cls.bits(self.config)])
                    unknown = (
                        ~view[f.name].matches(*f.legal(self.config)) for f in cls.fields if f.names
                    )
                    m.d.comb += bad.eq(Cat(*unknown).any())
            with m.Default():
                m.d.comb += bad.eq(1)
        return bad
