"""DMA: the units' bursts on one AXI4 port.

1. Reads: fetch goes before LOAD, one burst a cycle. What the bus has been shown stays until the bus
   takes it, even if fetch asks in the meantime. The ID tells the beats' reader.
2. Writes: the address goes with the first beat; whichever of the two the bus takes first waits for
   the other, and the beat counts as taken when both are.
3. Readers have room for what they asked for, so read beats and answers are always taken.
4. After ``stop`` no new read is shown to the bus (STORE itself opens no new burst). ``quiet`` is
   high when no burst is open or unanswered.
5. Burst addresses count from DRAM_BASE, which is a whole number of pages.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.bursts import PAGE_BITS
from vdla.hw.count import Count
from vdla.hw.interfaces import axi4, read_data, read_request, write_request
from vdla.hw.layout import add_selected
from vdla.isa.config import Config
from vdla.isa.encoding import fetch_buffer_beats
from vdla.isa.instructions import DRAM_BITS

FETCH_ID, LOAD_ID = 0, 1
INCREMENTING = 1  # AxBURST: Arm IHI 0022, table A3-3
NORMAL_BUFFERABLE = 0b0011  # AxCACHE: normal, not cached, bufferable; table A4-5


def most_reads(config: Config) -> int:
    """Read bursts under way at most: LOAD's, and fetch's, whose buffer limits them."""
    return config.reads_in_flight + fetch_buffer_beats(config)


class Dma(Component):
    """``read_error`` pulses with a bad beat (its reader in ``error_load``), ``write_error`` with a
    bad answer."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.most_reads = most_reads(config)
        self.most_writes = config.writes_in_flight  # write bursts under way: STORE's
        super().__init__(
            {
                "axi": Out(axi4(config)),
                "fetch": In(read_request(config)),
                "load": In(read_request(config)),
                "store": In(write_request(config)),
                "fetch_data": Out(read_data(config)),
                "load_data": Out(read_data(config)),
                "dram_base": In(DRAM_BITS - PAGE_BITS),
                "stop": In(1),
                "quiet": Out(1),
                "read_error": Out(1),
                "error_load": Out(1),
                "write_error": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The bus's constant signals and its two directions; ``quiet`` while neither has work."""
        m = Module()
        axi = self.axi
        for prefix in ("aw", "ar"):
            m.d.comb += [
                getattr(axi, f"{prefix}size").eq((self.config.port_bytes - 1).bit_length()),
                getattr(axi, f"{prefix}burst").eq(INCREMENTING),
                getattr(axi, f"{prefix}cache").eq(NORMAL_BUFFERABLE),
            ]
        reads = self._read(m)
        writes = self._write(m)
        m.d.comb += self.quiet.eq(~(reads | writes))
        return m

    def _read(self, m: Module) -> Signal:
        axi, fetch, load = self.axi, self.fetch, self.load
        shown = Signal()
        shown_load = Signal()
        by_load = Signal()
        m.d.comb += [
            by_load.eq(Mux(shown, shown_load, ~fetch.valid)),
            axi.arvalid.eq(shown | ((fetch.valid | load.valid) & ~self.stop)),
            axi.arid.eq(by_load),
            axi.araddr.eq(self._bus_address(Mux(by_load, load.address, fetch.address))),
            axi.arlen.eq(Mux(by_load, load.beats, fetch.beats) - 1),
            fetch.ready.eq(axi.arready & ~by_load & (shown | ~self.stop)),
            load.ready.eq(axi.arready & by_load & (shown | ~self.stop)),
        ]
        m.d.sync += [shown.eq(axi.arvalid & ~axi.arready), shown_load.eq(by_load)]

        for port, identity in ((self.fetch_data, FETCH_ID), (self.load_data, LOAD_ID)):
            m.d.comb += [
                port.valid.eq(axi.rvalid & (axi.rid == identity)),
                port.last.eq(axi.rlast),
                port.data.eq(axi.rdata),
            ]
        m.d.comb += [
            axi.rready.eq(1),
            self.read_error.eq(axi.rvalid & axi.rresp[1]),
            self.error_load.eq(axi.rid == LOAD_ID),
        ]
        unfinished = Count(m, "unfinished", self.most_reads)
        unfinished.move(axi.arvalid & axi.arready, axi.rvalid & axi.rlast)
        return shown | unfinished.some

    def _write(self, m: Module) -> Signal:
        axi, store = self.axi, self.store
        address_done = Signal()
        beat_done = Signal()
        address_taken = address_done | axi.awready  # or would be, if it were shown
        beat_taken = beat_done | axi.wready
        m.d.comb += [
            axi.awvalid.eq(store.valid & store.first & ~address_done),
            axi.awaddr.eq(self._bus_address(store.address)),
            axi.awlen.eq(store.beats - 1),
            axi.wvalid.eq(store.valid & ~beat_done),
            axi.wdata.eq(store.data),
            axi.wstrb.eq(~0),
            axi.wlast.eq(store.last),
            axi.bready.eq(1),
            store.ready.eq((address_taken | ~store.first) & beat_taken),
            store.answered.eq(axi.bvalid),
            self.write_error.eq(axi.bvalid & axi.bresp[1]),
        ]
        with m.If(store.valid & store.ready):
            m.d.sync += [address_done.eq(0), beat_done.eq(0)]
        with m.Elif(store.valid):
            m.d.sync += [address_done.eq(address_taken & store.first), beat_done.eq(beat_taken)]

        taken = store.valid & store.ready
        unanswered = Count(m, "unanswered", self.most_writes)  # from their first beat on
        unanswered.move(taken & store.first, axi.bvalid)
        return store.valid | unanswered.some

    def _bus_address(self, address: Signal) -> Cat:
        page = add_selected(self.dram_base, address[PAGE_BITS:])
        return Cat(address[:PAGE_BITS], page[: len(self.dram_base)])
