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
from amaranth.lib.wiring import Component, In, Out, Signature

from vdla.hw.bursts import PAGES_BITS
from vdla.hw.fifo import Fifo
from vdla.hw.interfaces import (
    Fault,
    activity,
    command,
    fault,
    read_data,
    read_request,
    write_port,
)
from vdla.hw.layout import beats, layout
from vdla.hw.load.memories import direct, stepped
from vdla.hw.load.memory_ports import MemoryPorts
from vdla.hw.load.request import Request, RequestPorts
from vdla.hw.load.tiles import Tiles
from vdla.hw.load.write import Writer, WriterPorts
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.instructions import Mem
from vdla.isa.ring import Engine, ring_of


def results_port(engine: Engine) -> str:
    """Name of LOAD's port for what an engine writes to ACC: ``computed`` for what COMPUTE does."""
    return engine.name.lower().removesuffix("e") + "ed"


class Load(Component):
    """LOAD's two sides, its read buffer and its write ports; ``writes_inp``: LOAD writes INP.

    ``computed`` is COMPUTE's port to ACC, any other engine that writes ACC has one, too, and
    ``acc_taken`` says that one of them writes: their ``enable`` is late. They pass here, where one
    LUT for each bit chooses between their data, an entry, and a widened one. A memory of results
    has a port ``…_taken`` beside its own: it is read in this cycle.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.layout = layout(isa.Load, config)
        writes = {
            name: Out(write_port(config.depth(name), 8 * config.entry(name), beats(config, name)))
            for name in direct(config)
        }
        for name, memory in stepped(config).items():
            writes |= {name: Out(_results_write_port(config, memory)), f"{name}_taken": In(1)}
        self.computing = ring_of(config).writers("acc")[1:]  # LOAD is the first
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
                **{results_port(engine): In(acc) for engine in self.computing},
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
        config, steps = self.config, stepped(self.config)
        ports = WriterPorts(
            self.command,
            self.activity,
            beat=buffer.r_data,
            beat_waits=buffer.r_rdy,
            consume=consume,
            acc_taken=self.acc_taken,
            read={name: getattr(self, f"{name}_taken") for name in steps},
            writes_inp=self.writes_inp if self.shares_inp else None,
            memories=MemoryPorts(
                direct={name: getattr(self, name) for name in direct(config)},
                acc=self.acc,
                computed=[getattr(self, results_port(engine)) for engine in self.computing],
                stepped={name: getattr(self, name) for name in steps},
            ),
        )
        return Writer(m, config, ports, tiles)


def _results_write_port(config: Config, memory: Mem) -> Signature:
    """Port of a memory that takes one result at a time; not in a cycle in which it is read."""
    results = memory.results(config)
    return write_port(results * config.depth(memory.buffer), 8 * memory.entry(config) // results)
