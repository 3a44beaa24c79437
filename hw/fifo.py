"""A first-in first-out queue whose answers are registers.

1. An entry is written with ``w_en`` while ``w_rdy``, is shown from the next cycle on, and given up
   with ``r_en`` while ``r_rdy``; both may happen in one cycle.
2. A full queue has no ``w_rdy``, an empty one no ``r_rdy``.
3. A deep one lies in block RAM, which shows an entry a cycle after it is asked for: so it asks for
   the one that comes next. What is written in the same cycle goes past the RAM.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.count import Count

SHALLOW = 32  # entries that LUTs hold well: a RAM32M of a 7-series FPGA (UG474)


class Fifo(Component):
    """``depth`` entries of ``width`` bits."""

    def __init__(self, width: int, depth: int) -> None:
        self.width, self.depth = width, depth
        super().__init__(
            {
                "w_en": In(1),
                "w_rdy": Out(1),
                "w_data": In(width),
                "r_en": In(1),
                "r_rdy": Out(1),
                "r_data": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        level = Count(m, "level", self.depth)
        writes, reads = Signal(name="writes"), Signal(name="reads")
        m.submodules.storage = storage = Memory(shape=self.width, depth=self.depth, init=[])
        write = storage.write_port()
        produce, consume, following = (
            Signal(range(self.depth), name=n) for n in ("produce", "consume", "following")
        )
        m.d.comb += [
            writes.eq(self.w_en & self.w_rdy),
            reads.eq(self.r_en & self.r_rdy),
            write.en.eq(writes),
            write.addr.eq(produce),
            write.data.eq(self.w_data),
            following.eq(Mux(reads, self._after(consume), consume)),
            self.r_rdy.eq(level.some),
            self.w_rdy.eq(~level.full),
        ]
        with m.If(writes):
            m.d.sync += produce.eq(self._after(produce))
        m.d.sync += consume.eq(following)
        level.move(writes, reads)
        if self.depth > SHALLOW:
            read, passes = storage.read_port(domain="sync"), Signal()
            latest = Signal(self.width, reset_less=True)
            m.d.comb += [read.addr.eq(following), self.r_data.eq(Mux(passes, latest, read.data))]
            m.d.sync += [latest.eq(self.w_data), passes.eq(writes & (produce == following))]
        else:
            read = storage.read_port(domain="comb")
            m.d.comb += [read.addr.eq(consume), self.r_data.eq(read.data)]
        return m

    def _after(self, pointer: Value) -> Value:
        return Mux(pointer == self.depth - 1, 0, pointer + 1)
