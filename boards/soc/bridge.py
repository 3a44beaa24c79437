"""The serial link's end on the board: ``runtime/board/link.py`` has its frames and its rules.

    receive → act, word by word or beat by beat → send

1. One request at a time. A write's words are kept until the checksum has held, a read's until they
   are sent: both in the same buffer, so the memory and the registers never see half a frame.
2. The tag of the latest request that was acted upon is remembered, with its status: the same write
   again is answered and not done.
3. Registers are reached over AXI4-Lite, one word after the other; the first that answers with an
   error ends the request. Memory is reached in requests of BURST beats.
"""

from __future__ import annotations

from amaranth import Array, C, Cat, Module, Mux, Signal, Value
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.enum import Enum
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.soc.memory import port
from vdla.hw.interfaces import axi_lite
from vdla.runtime.board.link import (
    CHECKSUM,
    MOST_WORDS,
    QUIET,
    REPLY_HEADER,
    REPLY_SYNC,
    REQUEST_HEADER,
    REQUEST_SYNC,
    WORD,
    Op,
    Status,
)

BURST = 16  # beats of a request to memory


class State(Enum, shape=4):
    """State of the bridge."""

    HEADER = 0
    WORDS = 1
    CHECKSUM = 2
    JUDGE = 3
    REGISTER = 4  # one word: asked for
    ANSWER = 5  # and answered
    MEMORY = 6  # a burst is asked for
    BEATS = 7  # and moves
    REPLY = 8
    REPLY_WORDS = 9
    REPLY_CHECKSUM = 10


class Bridge(Component):
    """``data`` and ``valid`` from the receiver; ``out_*`` to the transmitter."""

    def __init__(self, clock_hz: float, port_bytes: int, at_bits: int, register_bits: int) -> None:
        self.quiet = int(QUIET * clock_hz)
        self.per_beat = port_bytes // WORD  # words
        if port_bytes % WORD:
            raise ValueError(f"port_bytes: expected a multiple of {WORD}, found {port_bytes}")
        self.at_bits, self.register_bits = at_bits, register_bits
        super().__init__(
            {
                "data": In(8),
                "valid": In(1),
                "out_data": Out(8),
                "out_valid": Out(1),
                "out_ready": In(1),
                "registers": Out(axi_lite(register_bits)),
                "memory": Out(port(at_bits, 8 * port_bytes, 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A buffer of words, a checksum, and a state for each part of a request and its answer."""
        m = Module()
        self.state = Signal(State)
        self.tag, self.op, self.last = Signal(8), Signal(8), Signal(8)  # last: count - 1
        self.address, self.status = Signal(32), Signal(8)
        self.done, self.done_tag, self.done_status = Signal(), Signal(8), Signal(8)
        self.byte, self.at = Signal(range(REQUEST_HEADER)), Signal(range(MOST_WORDS))
        self.word = Signal(8 * WORD)
        self.counted, self.starts = Signal(), Signal()  # what the byte shown is to the checksum
        self._buffer(m)
        m.submodules.crc = self.crc = CRC32_ISO_HDLC(8).create()
        self._ports(m)
        with m.Switch(self.state):
            self._receive(m)
            self._act_on_registers(m)
            self._act_on_memory(m)
            self._send(m)
        self._shown(m)
        self._forget(m)
        return m

    def _buffer(self, m: Module) -> None:
        m.submodules.words = words = Memory(shape=8 * WORD, depth=MOST_WORDS, init=[])
        self.put, self.get = words.write_port(), words.read_port()
        # Read ahead: what ``at`` will be after this cycle is read in it.
        self.next_at = Signal.like(self.at)
        m.d.comb += [self.next_at.eq(self.at), self.get.addr.eq(self.next_at), self.get.en.eq(1)]
        m.d.sync += self.at.eq(self.next_at)

    def _ports(self, m: Module) -> None:
        """Inputs of registers and memory, shown whenever these are asked for something."""
        bus, memory = self.registers, self.memory
        self.beat = Signal(range(MOST_WORDS + 1))  # of the frame: the next to ask memory for
        register = Signal(self.register_bits)
        shift = (self.per_beat - 1).bit_length()
        m.d.comb += [
            register.eq(self.address + (self.at << 2)),
            bus.araddr.eq(register),
            bus.awaddr.eq(register),
            bus.wdata.eq(self.get.data),
            bus.wstrb.eq(~0),
            memory.write.eq(self._is_write()),
            memory.at.eq((self.address >> (2 + shift)) + self.beat),
        ]

    def _is_write(self) -> Value:
        return self.op[0]

    def _is_memory(self) -> Value:
        return self.op[1]

    # Receiving ---------------------------------------------------------------------------------

    def _receive(self, m: Module) -> None:
        assert (Op.WRITE_REGISTERS, Op.READ_MEMORY, Op.WRITE_MEMORY) == (1, 2, 3)
        with m.Case(State.HEADER), m.If(self.valid):
            with m.If((self.byte != 0) | (self.data == REQUEST_SYNC)):
                self._checked(m, self.data, start=self.byte == 0)
                m.d.sync += self.byte.eq(self.byte + 1)
            with m.Switch(self.byte):
                for number, register in ((1, self.tag), (2, self.op), (3, self.last)):
                    with m.Case(number):
                        m.d.sync += register.eq(self.data)
                for number in range(4):
                    with m.Case(4 + number):
                        m.d.sync += self.address.word_select(number, 8).eq(self.data)
            with m.If(self.byte == REQUEST_HEADER - 1):
                m.d.comb += self.next_at.eq(0)
                m.d.sync += [
                    self.byte.eq(0),
                    self.state.eq(Mux(self._is_write(), State.WORDS, State.CHECKSUM)),
                ]
        with m.Case(State.WORDS), m.If(self.valid):
            self._checked(m, self.data)
            ends = self._shift_in(m)
            m.d.comb += [
                self.put.addr.eq(self.at),
                self.put.data.eq(Cat(self.word[8:], self.data)),
                self.put.en.eq(ends),
            ]
            with m.If(ends):
                m.d.comb += self.next_at.eq(self.at + 1)
                with m.If(self.at == self.last):
                    m.d.sync += self.state.eq(State.CHECKSUM)
        with m.Case(State.CHECKSUM), m.If(self.valid):
            self._checked(m, self.data)
            with m.If(self._shift_in(m)):
                m.d.sync += self.state.eq(State.JUDGE)
        with m.Case(State.JUDGE):
            self._judge(m)

    def _shift_in(self, m: Module) -> Value:
        """Takes a byte into ``word``; whether it completes it."""
        m.d.sync += [self.word.eq(Cat(self.word[8:], self.data)), self.byte.eq(self.byte + 1)]
        ends = self.byte == WORD - 1
        with m.If(ends):
            m.d.sync += self.byte.eq(0)
        return ends

    def _checked(self, m: Module, data: Value, start: Value | int = 0) -> None:
        m.d.comb += [self.crc.data.eq(data), self.crc.valid.eq(1), self.crc.start.eq(start)]

    def _judge(self, m: Module) -> None:
        """Whether to act, and if not, what to say."""
        aligned = self.address[:2] == 0
        beats = (self.per_beat - 1).bit_length()
        whole = (self.address[2 : 2 + beats] == 0) & ((self.last + 1)[:beats] == 0)
        bits = Mux(self._is_memory(), self.at_bits + 2 + beats, self.register_bits)
        inside = (self.address >> bits) == 0
        again = self._is_write() & self.done & (self.tag == self.done_tag)
        m.d.comb += self.next_at.eq(0)
        m.d.sync += [self.byte.eq(0), self.state.eq(State.REPLY)]
        with m.If(~self.crc.match_detected):
            m.d.sync += self.status.eq(Status.BAD_CHECKSUM)
        with m.Elif(self.op >= len(Op)):
            self._finish(m, Status.BAD_OP)
        with m.Elif(again):
            m.d.sync += self.status.eq(self.done_status)
        with m.Elif(~aligned | (self._is_memory() & ~whole) | ~inside):
            self._finish(m, Status.BAD_ADDRESS)
        with m.Else():
            self._finish(m, Status.OK)
            m.d.sync += self.state.eq(Mux(self._is_memory(), State.MEMORY, State.REGISTER))

    def _finish(self, m: Module, status: Value | int) -> None:
        m.d.sync += [
            self.status.eq(status),
            self.done.eq(1),
            self.done_status.eq(status),
            self.done_tag.eq(self.tag),
        ]

    # Acting ------------------------------------------------------------------------------------

    def _act_on_registers(self, m: Module) -> None:
        bus, write = self.registers, self._is_write()
        addressed, written = Signal(), Signal()  # a write's address and its data were taken
        with m.Case(State.REGISTER):
            m.d.comb += [
                bus.arvalid.eq(~write),
                bus.awvalid.eq(write & ~addressed),
                bus.wvalid.eq(write & ~written),
            ]
            m.d.sync += [
                addressed.eq(addressed | (bus.awvalid & bus.awready)),
                written.eq(written | (bus.wvalid & bus.wready)),
            ]
            wrote = (addressed | bus.awready) & (written | bus.wready)
            with m.If(Mux(write, wrote, bus.arready)):
                m.d.sync += [addressed.eq(0), written.eq(0), self.state.eq(State.ANSWER)]
        with m.Case(State.ANSWER):
            m.d.comb += [
                bus.rready.eq(1),
                bus.bready.eq(1),
                self.put.addr.eq(self.at),
                self.put.data.eq(bus.rdata),
                self.put.en.eq(bus.rvalid),
            ]
            with m.If(Mux(write, bus.bvalid, bus.rvalid)):
                refused = Mux(write, bus.bresp, bus.rresp) != 0
                with m.If(refused):
                    self._finish(m, Status.BAD_ADDRESS)
                with m.If(refused | (self.at == self.last)):
                    m.d.comb += self.next_at.eq(0)
                    m.d.sync += self.state.eq(State.REPLY)
                with m.Else():
                    m.d.comb += self.next_at.eq(self.at + 1)
                    m.d.sync += self.state.eq(State.REGISTER)

    def _act_on_memory(self, m: Module) -> None:
        memory, per_beat, beat = self.memory, self.per_beat, self.beat
        total = (self.last >> (per_beat - 1).bit_length()) + 1
        left = total - beat
        count = Mux(left > BURST, BURST, left)
        burst_left = Signal(range(BURST + 1))
        part, half = Signal(range(per_beat)), Signal(8 * WORD * per_beat)
        with m.Case(State.MEMORY):
            m.d.comb += [memory.valid.eq(1), memory.count.eq(count)]
            with m.If(memory.ready):
                m.d.sync += [
                    beat.eq(beat + count),
                    burst_left.eq(count),
                    part.eq(0),
                    self.state.eq(State.BEATS),
                ]
        with m.Case(State.BEATS):
            ends = Signal()  # a beat has moved
            with m.If(self._is_write()):
                whole = Cat(half[8 * WORD :], self.get.data)
                with m.If(part != per_beat - 1):  # gathers words into a beat
                    m.d.comb += self.next_at.eq(self.at + 1)
                    m.d.sync += [part.eq(part + 1), half.eq(whole)]
                with m.Else():
                    m.d.comb += [memory.write_valid.eq(1), memory.write_data.eq(whole)]
                    m.d.comb += ends.eq(memory.write_ready)
                    with m.If(ends):
                        m.d.comb += self.next_at.eq(self.at + 1)
                        m.d.sync += part.eq(0)
            with m.Else():
                self._keep_beat(m, part, half, ends)
            with m.If(ends):
                m.d.sync += burst_left.eq(burst_left - 1)
                with m.If(burst_left == 1):
                    with m.If(beat == total):
                        m.d.comb += self.next_at.eq(0)
                        m.d.sync += [beat.eq(0), self.state.eq(State.REPLY)]
                    with m.Else():
                        m.d.sync += self.state.eq(State.MEMORY)

    def _keep_beat(self, m: Module, part: Signal, half: Signal, ends: Signal) -> None:
        """Puts a beat's words into the buffer; beats come at most every ``per_beat`` cycles."""
        memory, bits = self.memory, 8 * WORD
        more = Signal(range(self.per_beat))
        word = Mux(memory.read_valid, memory.read_data[:bits], half[:bits])
        m.d.comb += [
            self.put.addr.eq(self.at),
            self.put.data.eq(word),
            self.put.en.eq(memory.read_valid | (more != 0)),
        ]
        with m.If(self.put.en):
            m.d.comb += self.next_at.eq(self.at + 1)
        with m.If(memory.read_valid):
            m.d.sync += [half.eq(memory.read_data >> bits), more.eq(self.per_beat - 1)]
        with m.Elif(more != 0):
            m.d.sync += [half.eq(half >> bits), more.eq(more - 1)]
        m.d.comb += ends.eq(Mux(memory.read_valid, self.per_beat == 1, more == 1))

    # Sending -----------------------------------------------------------------------------------

    def _send(self, m: Module) -> None:
        header = Cat(C(REPLY_SYNC, 8), self.tag, self.status, self.last)
        with m.Case(State.REPLY):
            carries = ~self._is_write() & (self.status == Status.OK)
            with m.If(self._sends(m, header, start=self.byte == 0)):
                m.d.sync += self.state.eq(Mux(carries, State.REPLY_WORDS, State.REPLY_CHECKSUM))
        with m.Case(State.REPLY_WORDS), m.If(self._sends(m, self.get.data)):
            m.d.comb += self.next_at.eq(self.at + 1)
            with m.If(self.at == self.last):
                m.d.sync += self.state.eq(State.REPLY_CHECKSUM)
        with m.Case(State.REPLY_CHECKSUM), m.If(self._sends(m, self.crc.crc, counted=0)):
            m.d.sync += self.state.eq(State.HEADER)

    def _sends(self, m: Module, four: Value, start: Value | int = 0, counted: int = 1) -> Value:
        """Shows four bytes, the lowest first; whether it is the last one's turn."""
        assert REPLY_HEADER == CHECKSUM == WORD == 4
        byte = Array(four[8 * i : 8 * i + 8] for i in range(WORD))[self.byte[:2]]
        goes = ~self.out_valid
        with m.If(goes):
            m.d.sync += [
                self.out_data.eq(byte),
                self.out_valid.eq(1),
                self.counted.eq(counted),
                self.starts.eq(start),
                self.byte.eq(self.byte[:2] + 1),
            ]
        with m.If(goes & (self.byte == 3)):
            m.d.sync += self.byte.eq(0)
        return goes & (self.byte == 3)

    def _shown(self, m: Module) -> None:
        """A byte shown counts for the checksum when it is taken, and only then comes the next."""
        with m.If(self.out_valid & self.out_ready):
            m.d.sync += self.out_valid.eq(0)
            with m.If(self.counted):
                self._checked(m, self.out_data, self.starts)

    # Silence -----------------------------------------------------------------------------------

    def _forget(self, m: Module) -> None:
        """A frame whose rest doesn't come is given up."""
        begun = (self.state == State.HEADER) & (self.byte != 0)
        receiving = begun | (self.state == State.WORDS) | (self.state == State.CHECKSUM)
        clocks = Signal(range(self.quiet + 1))
        m.d.sync += clocks.eq(Mux(receiving & ~self.valid, clocks + 1, 0))
        with m.If(clocks == self.quiet):
            m.d.sync += [self.state.eq(State.HEADER), self.byte.eq(0)]
