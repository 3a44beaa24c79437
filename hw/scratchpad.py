"""A scratchpad: one write port, one or two read ports, block RAM.

1. A read shows its data in the cycle after ``enable``, and keeps it until the next.
2. A write is seen by reads of later cycles. Nobody uses what a read of its address gives in its own
   cycle: block RAM may give anything then.
3. Contents outlive the core's reset, as they do in block RAM.
"""

from __future__ import annotations

from typing import Any

from amaranth import Module
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In

from vdla.hw.interfaces import read_port, write_port


class Scratchpad(Component):
    """``depth`` entries of ``width`` bits; ``write`` names the columns that it changes."""

    def __init__(self, depth: int, width: int, columns: int, reads: int) -> None:
        self.depth, self.width, self.columns, self.reads = depth, width, columns, reads
        ports = {f"read_{i}": In(read_port(depth, width)) for i in range(reads)}
        super().__init__({"write": In(write_port(depth, width, columns)), **ports})

    def elaborate(self, platform: object) -> Module:
        """One memory with a write port of ``columns`` parts, and ``reads`` read ports."""
        m = Module()
        m.submodules.mem = memory = Memory(shape=self.width, depth=self.depth, init=[])
        write = memory.write_port(granularity=self.width // self.columns)
        m.d.comb += [
            write.en.eq(self.write.enable),
            write.addr.eq(self.write.address),
            write.data.eq(self.write.data),
        ]
        for i in range(self.reads):
            outer: Any = getattr(self, f"read_{i}")
            inner = memory.read_port()
            m.d.comb += [
                inner.en.eq(outer.enable),
                inner.addr.eq(outer.address),
                outer.data.eq(inner.data),
            ]
        return m
