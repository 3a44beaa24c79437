"""The core's AXI4 port on a board's memory: docs/timing.md, 12.1 to 12.3.

1. Reads wait in a queue that holds all the core may have open. A write's address and its beats are
   taken into a register each, so READY depends on nothing that the core shows in the same cycle.
   The core takes every beat and every answer at once (RREADY and BREADY are high), so neither is
   kept here. Strobes are not looked at: it writes whole beats.
2. Reads and writes take turns when both wait; a program's first is a read. A write asks for the
   memory as soon as its address is here: the core shows that with its first beat.
3. A burst that begins beyond the memory moves nothing: its beats and its answer bear DECERR, after
   the beats of the reads before it, or the answers of the writes. What comes behind it waits.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.soc.memory import port
from vdla.hw.count import Count
from vdla.hw.dma import most_reads
from vdla.hw.fifo import Fifo
from vdla.hw.interfaces import axi4
from vdla.isa.config import Config

OKAY, DECERR = 0b00, 0b11


class AxiMemory(Component):
    """``bus`` from the core, ``memory`` with the read's ID as tag; ``begins`` in a program's first
    cycle."""

    def __init__(self, config: Config, at_bits: int) -> None:
        self.config = config
        self.shift = (config.port_bytes - 1).bit_length()
        self.at_bits = at_bits
        super().__init__(
            {
                "bus": In(axi4(config)),
                "memory": Out(port(at_bits, 8 * config.port_bytes, 1)),
                "begins": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Passes a burst on as one request; beats beyond the memory it answers itself."""
        m = Module()
        memory = self.memory
        self.read_taken, self.write_taken = Signal(), Signal()
        read, reads = self._reads(m)
        write, writes = self._writes(m)
        latest, turn = Signal(init=1), Signal()  # whether the latest request wrote, the next does
        m.d.comb += turn.eq(writes & (~reads | ~latest))
        taken = memory.valid & memory.ready
        m.d.comb += [
            memory.valid.eq(reads | writes),
            memory.write.eq(turn),
            memory.at.eq(Mux(turn, write.at, read.at)),
            memory.count.eq(Mux(turn, write.len, read.len) + 1),
            memory.tag.eq(read.id),
            self.read_taken.eq(taken & ~turn),
            self.write_taken.eq(taken & turn),
        ]
        with m.If(self.begins):
            m.d.sync += latest.eq(1)
        with m.Elif(taken):
            m.d.sync += latest.eq(turn)
        return m

    def _burst(self, address: Value, length: Value, identity: Value) -> tuple[data.Layout, Value]:
        """A burst as it is kept: ``beyond`` the memory, or from beat ``at`` of it on."""
        end = self.shift + self.at_bits
        fields = {
            "at": address[self.shift : end],
            "len": length[: (self.config.burst_beats - 1).bit_length()],
            "id": identity,
            "beyond": address[end:].any(),
        }
        layout = data.StructLayout({name: len(value) for name, value in fields.items()})
        return layout, Cat(*fields.values())

    def _reads(self, m: Module) -> tuple[data.View, Value]:
        """The oldest read that waits, and whether the memory is to take it."""
        bus, memory = self.bus, self.memory
        layout, burst = self._burst(bus.araddr, bus.arlen, bus.arid)
        most = most_reads(self.config)
        m.submodules.reads = reads = Fifo(width=layout.size, depth=most)
        oldest = data.View(layout, reads.r_data)
        open_reads = Count(m, "open_reads", most)
        open_reads.move(self.read_taken, memory.read_valid & memory.read_last)
        beat, nothing = Signal.like(oldest.len), Signal()  # of a burst beyond the memory
        ends = beat == oldest.len
        m.d.comb += [
            bus.arready.eq(reads.w_rdy),
            reads.w_en.eq(bus.arvalid),
            reads.w_data.eq(burst),
            reads.r_en.eq(self.read_taken | (nothing & ends)),
            nothing.eq(reads.r_rdy & oldest.beyond & ~open_reads.some),
            bus.rvalid.eq(memory.read_valid | nothing),
            bus.rdata.eq(memory.read_data),
            bus.rid.eq(Mux(nothing, oldest.id, memory.read_tag)),
            bus.rlast.eq(Mux(nothing, ends, memory.read_last)),
            bus.rresp.eq(Mux(nothing, DECERR, OKAY)),
        ]
        with m.If(nothing):
            m.d.sync += beat.eq(Mux(ends, 0, beat + 1))
        return oldest, reads.r_rdy & ~oldest.beyond

    def _writes(self, m: Module) -> tuple[data.View, Value]:
        """The write whose address waits, and whether the memory is to take it."""
        bus, memory = self.bus, self.memory
        layout, burst = self._burst(bus.awaddr, bus.awlen, bus.awid)
        waits, held = Signal(), Signal(layout)
        full, beat, last = Signal(), Signal.like(bus.wdata), Signal()
        open_writes = Signal(range(3))  # two, at most, are at work
        m.d.sync += open_writes.eq(open_writes + self.write_taken - memory.done)
        nothing = waits & held.beyond & (open_writes == 0) & full
        m.d.comb += [
            bus.awready.eq(~waits),
            bus.wready.eq(~full),
            memory.write_valid.eq(full),
            memory.write_data.eq(beat),
        ]
        with m.If(bus.awvalid & ~waits):
            m.d.sync += [waits.eq(1), held.eq(burst)]
        with m.Elif(self.write_taken | (nothing & last)):
            m.d.sync += waits.eq(0)
        with m.If(bus.wvalid & ~full):
            m.d.sync += [full.eq(1), beat.eq(bus.wdata), last.eq(bus.wlast)]
        with m.Elif(memory.write_ready | nothing):
            m.d.sync += full.eq(0)
        m.d.sync += [
            bus.bvalid.eq(memory.done | (nothing & last)),
            bus.bresp.eq(Mux(memory.done, OKAY, DECERR)),
        ]
        return held, waits & ~held.beyond
