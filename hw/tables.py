"""TAB: the tables of functions, for every lane of the ALU at once.

1. A lane reads an index of its own, so what it reads from is its own, too: a block RAM has two
   ports, and all tables lie in it for two lanes. All of these RAMs hold the same.
2. LOAD writes through the second port of each. Nothing is read in a cycle in which it writes: LOAD
   waits where COMPUTE reads.
3. Reads and contents are those of a scratchpad (``scratchpad.py``).
"""

from __future__ import annotations

from amaranth import Module, Mux
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In

from vdla.hw.interfaces import read_port, table_read_port, table_write_port, write_port
from vdla.isa.config import Config
from vdla.isa.options.tables import RESULT_BYTES, TABLE_RESULTS, tables

LANES = 2  # that read from one block RAM


class Pair(Component):
    """The tables for two lanes, ``depth`` results of ``width`` bits."""

    def __init__(self, depth: int, width: int) -> None:
        self.depth, self.width = depth, width
        reads = {f"read_{i}": In(read_port(depth, width)) for i in range(LANES)}
        super().__init__({"write": In(write_port(depth, width)), **reads})

    def elaborate(self, platform: object) -> Module:
        """One memory of two ports; the write port has the address of the second read port."""
        m = Module()
        m.submodules.mem = memory = Memory(shape=self.width, depth=self.depth, init=[])
        first, second, write = memory.read_port(), memory.read_port(), memory.write_port()
        address = Mux(self.write.enable, self.write.address, self.read_1.address)
        m.d.comb += [
            first.en.eq(self.read_0.enable),
            first.addr.eq(self.read_0.address),
            self.read_0.data.eq(first.data),
            second.en.eq(self.read_1.enable),
            second.addr.eq(address),
            self.read_1.data.eq(second.data),
            write.en.eq(self.write.enable),
            write.addr.eq(address),
            write.data.eq(self.write.data),
        ]
        return m


class TablePads(Component):
    """A RAM for each two lanes: ``write`` fills all of them, ``read`` has an index per lane."""

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {"write": In(table_write_port(config)), "read": In(table_read_port(config))}
        )

    def elaborate(self, platform: object) -> Module:
        """The RAMs, and which lane reads which."""
        m = Module()
        depth = tables(self.config) * TABLE_RESULTS
        for number in range(self.config.block_out // LANES):
            m.submodules[f"pair_{number}"] = pair = Pair(depth, 8 * RESULT_BYTES)
            m.d.comb += [
                pair.write.enable.eq(self.write.enable),
                pair.write.address.eq(self.write.address),
                pair.write.data.eq(self.write.data),
            ]
            for side in range(LANES):
                port, lane = getattr(pair, f"read_{side}"), LANES * number + side
                m.d.comb += [
                    port.enable.eq(self.read.enable),
                    port.address.eq(self.read.index[lane]),
                    self.read.data[lane].eq(port.data),
                ]
        return m
