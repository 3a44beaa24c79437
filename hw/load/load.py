"""LOAD: two sides, each with an instruction of its own, and a buffer of beats between them.

1. The request side (``request.py``) runs ahead; the write side (``write.py``) follows, and works on
   the instructions in order.
2. Beats are always taken: a burst is sent only if the read buffer has room for it (``credit.py``).
3. What lies outside DRAM is a fault of the request side, what lies beyond a buffer one of the write
   side; each side knows the number of its instruction.
"""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.bursts import PAGES_BITS
from vdla.hw.fifo import Fifo
from vdla.hw.interfaces import (
    Fault,
    activity,
    command,
    fault,
    read_data,
    read_request,
    table_write_port,
    write_port,
)
from vdla.hw.layout import beats, layout
from vdla.hw.load.memory_ports import DIRECT, MemoryPorts
from vdla.hw.load.request import Request, RequestPorts
from vdla.hw.load.tiles import Tiles
from vdla.hw.load.write import Writer, WriterPorts
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.options.tables import tables
from vdla.isa.options.vector import has_vector_engine
from vdla.isa.ring import ring_of


class Load(Component):
    """LOAD's two sides, its read buffer and its write ports; ``tab_taken``: COMPUTE reads TAB,
    ``writes_inp``: LOAD writes INP.

    ``computed`` is COMPUTE's port to ACC, ``vectored`` VECTOR's if there is one, and ``acc_taken``
    says that one of them writes: their ``enable`` is late. They pass here, where one LUT for each
    bit chooses between their data, an entry, and a widened one.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.layout = layout(isa.Load, config)
        writes = {
            name: Out(write_port(config.depth(name), 8 * config.entry(name), beats(config, name)))
            for name in DIRECT
        }
        if tables(config):
            writes |= {"tab": Out(table_write_port(config)), "tab_taken": In(1)}
        self.shares_inp = len(ring_of(config).writers("inp")) > 1
        if self.shares_inp:
            writes |= {"writes_inp": Out(1)}
        acc = write_port(config.depth("acc"), 8 * config.acc_entry)
        super().__init__(
            {
                "command": In(command(config)),
                "activity": Out(activity()),
                "request_fault": Out(fault()),
                "fault": Out(fault()),
                "request": Out(read_request(config)),
                "data": In(read_data(config)),
                **writes,
                "acc": Out(acc),
                "computed": In(acc),
                **({"vectored": In(acc)} if has_vector_engine(config) else {}),
                "acc_taken": In(1),
                "dram_pages": In(PAGES_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The side that requests bursts, the buffer of their beats, and the side that writes."""
        m = Module()
        self.head = data.View(self.layout, self.command.word[: isa.Load.bits(self.config)])
        consume = Signal()  # the write side takes a beat from the buffer
        request = self._request(m, consume)
        buffer = self._buffer(m, consume)
        self.tiles = tiles = Tiles(m, self.config, self.command, self.head)
        self.writer = writer = self._writer(m, consume, buffer, tiles)
        m.d.comb += [
            self.request_fault.valid.eq(request.fails),
            self.request_fault.cause.eq(Fault.ADDRESS),
            self.request_fault.index.eq(request.index),
            self.fault.valid.eq(writer.fails),
            self.fault.cause.eq(Fault.ADDRESS),
            self.fault.index.eq(tiles.tile.index),
        ]
        return m

    def _request(self, m: Module, consume: Signal) -> Request:
        ports = RequestPorts(
            self.command, self.head, self.request, self.data, consume, self.dram_pages
        )
        return Request(m, self.config, ports)

    def _buffer(self, m: Module, consume: Signal) -> Fifo:
        """The beats that have come and wait to be written."""
        bits = 8 * self.config.port_bytes
        m.submodules.buffer = fifo = Fifo(width=bits, depth=self.config.read_buffer_beats)
        m.d.comb += [
            fifo.w_en.eq(self.data.valid),
            fifo.w_data.eq(self.data.data),
            fifo.r_en.eq(consume),
        ]
        return fifo

    def _writer(self, m: Module, consume: Signal, buffer: Fifo, tiles: Tiles) -> Writer:
        direct = {name: getattr(self, name) for name in DIRECT}
        ports = WriterPorts(
            self.command,
            self.activity,
            beat=buffer.r_data,
            beat_waits=buffer.r_rdy,
            consume=consume,
            acc_taken=self.acc_taken,
            tab_taken=self.tab_taken if tables(self.config) else None,
            writes_inp=self.writes_inp if self.shares_inp else None,
            memories=MemoryPorts(
                direct,
                self.acc,
                (self.computed, *((self.vectored,) if has_vector_engine(self.config) else ())),
                self.tab if tables(self.config) else None,
            ),
        )
        return Writer(m, self.config, ports, tiles)
