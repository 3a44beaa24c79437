"""A first-in first-out queue whose answers are registers.

1. An entry is written with ``w_en`` while ``w_rdy``, is shown from the next cycle on, and given up
   with ``r_en`` while ``r_rdy``; both may happen in one cycle.
2. A full queue has no ``w_rdy``, an empty one no ``r_rdy``.
3. A deep one lies in block RAM, which shows an entry late, and a cycle after it is asked for. So
   the first entry is kept in a register, the RAM shows the second, and is asked for the one that
   will be. What is written meanwhile goes past the RAM.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

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
        """A memory, where to write and to read in it, and whether it has some or is full."""
        m = Module()
        some, full = Signal(name="some"), Signal(name="full")
        writes, reads = Signal(name="writes"), Signal(name="reads")
        m.submodules.storage = storage = Memory(shape=self.width, depth=self.depth, init=[])
        write = storage.write_port()
        produce, consume, after_produce = (
            Signal(range(self.depth), name=n) for n in ("produce", "consume", "after_produce")
        )
        after_consume = Signal(range(self.depth), name="after_consume", init=1 % self.depth)
        m.d.comb += [
            writes.eq(self.w_en & self.w_rdy),
            reads.eq(self.r_en & self.r_rdy),
            write.en.eq(writes),
            write.addr.eq(produce),
            write.data.eq(self.w_data),
            after_produce.eq(self._after(produce)),
            self.r_rdy.eq(some),
            self.w_rdy.eq(~full),
        ]
        with m.If(writes):
            m.d.sync += produce.eq(after_produce)
        with m.If(reads):
            m.d.sync += [consume.eq(after_consume), after_consume.eq(self._after(after_consume))]
        with m.If(writes & ~reads):
            m.d.sync += [some.eq(1), full.eq(after_produce == consume)]
        with m.If(reads & ~writes):
            m.d.sync += [some.eq(after_consume != produce), full.eq(0)]

        if self.depth <= SHALLOW:
            read = storage.read_port(domain="comb")
            m.d.comb += [read.addr.eq(consume), self.r_data.eq(read.data)]
            return m
        read, passes = storage.read_port(domain="sync"), Signal(name="passes")
        first, latest = (Signal(self.width, name=n, reset_less=True) for n in ("first", "latest"))
        second = Signal(self.width, name="second")
        m.d.comb += [
            second.eq(Mux(passes, latest, read.data)),
            read.addr.eq(Mux(reads, self._after(after_consume), after_consume)),
            self.r_data.eq(first),
        ]
        m.d.sync += [latest.eq(self.w_data), passes.eq(writes & (produce == read.addr))]
        with m.If(reads | ~some):
            comes_first = ~some | (after_consume == produce)  # what is written now, if anything
            m.d.sync += first.eq(Mux(comes_first, self.w_data, second))
        return m

    def _after(self, pointer: Value) -> Value:
        return Mux(pointer == self.depth - 1, 0, pointer + 1)
