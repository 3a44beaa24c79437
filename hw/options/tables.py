"""Tables of functions: TAB, whose results TABLE looks up for every lane of the ALU at once.

    operands → → → → indices → results in y's place → combine
       0               6             7                  8       stage

1. A lane reads an index of its own, so what it reads from is its own, too: a block RAM has two
   ports, and all tables lie in it for two lanes. All of these RAMs hold the same.
2. LOAD writes through the second port of each. Nothing is read in a cycle in which it writes: LOAD
   waits where COMPUTE reads.
3. Reads and contents are those of a scratchpad (``scratchpad.py``).
4. ALU shows y's low bits while y waits, the indices of TABLE. What comes of TAB a cycle later goes
   on in y's place where the operation is TABLE.
5. A TABLE whose number TAB hasn't is beyond a buffer, unless the micro-op starts a reduction: that
   one looks nothing up.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Member, Out, Signature, connect

from vdla.hw.alu import SHOWN, Alu, AluHooks
from vdla.hw.compute.seams import MicroOpHooks
from vdla.hw.core.memories import MemoryHooks
from vdla.hw.core.units import Units
from vdla.hw.interfaces import read_port, write_port
from vdla.hw.layout import is_operation, lanes
from vdla.hw.requantize import delayed
from vdla.isa import instructions as isa
from vdla.isa.config import Config
from vdla.isa.options.tables import (
    OPTIONS,
    RESULT_BYTES,
    TABLE,
    TABLE_BITS,
    TABLE_RESULTS,
    tables,
)

LANES = 2  # that read from one block RAM
TABLE_READ = 6  # stage of the read of TAB
LOOKED_UP = 4  # cycles from the operands to the indices of TABLE; the results come a cycle later
INDEX_BITS = 8
OPTION = OPTIONS[0]


def table_write_port(config: Config) -> Signature:
    """From LOAD to TAB: writes one result; not in a cycle in which it is read."""
    return write_port(tables(config) * TABLE_RESULTS, 8 * RESULT_BYTES)


def table_read_port(config: Config) -> Signature:
    """From COMPUTE to TAB: a result for each lane, in the cycle after ``enable``, by its index."""
    index = (tables(config) * TABLE_RESULTS - 1).bit_length()
    results = lanes(8 * RESULT_BYTES, config.block_out)
    indices = lanes(index, config.block_out, is_signed=False)
    return Signature({"enable": Out(1), "index": Out(indices), "data": In(results)})


class TableMemory(MemoryHooks):
    """TAB between LOAD and whoever executes ALU."""

    option = OPTION

    def connect(self, m: Module, units: Units) -> None:
        """Connects TAB: LOAD writes it where ALU doesn't read it."""
        load, alu = units.load, units.alu
        m.submodules.tab = tab = TablePads(self.config)
        connect(m, load.tab, tab.write)
        connect(m, alu.tab, tab.read)
        m.d.comb += load.tab_taken.eq(alu.tab.enable)


class TableMicroOps(MicroOpHooks):
    """TABLE in the stages of ALU's engine, which has the port ``tab``."""

    option, instruction = OPTION, isa.Alu

    def ports(self) -> dict[str, Member]:
        """The read port of TAB."""
        return {"tab": Out(table_read_port(self.config))}

    def beyond(self, f2: data.View, first: Value) -> tuple[Value, ...]:
        """Whether the micro-op looks up a table that TAB hasn't."""
        number = f2.operation.imm[:TABLE_BITS].as_unsigned()
        looks_up = is_operation(f2.operation.op, TABLE)
        return (looks_up & ~first & (number >= tables(self.config)),)

    def feed(self, m: Module, unit: Alu, stages: Sequence[data.View]) -> None:
        """TABLE's read. LOAD's write waits for ``enable``, so that is a register."""
        tab = self.unit.tab
        before, now = stages[TABLE_READ - 1], stages[TABLE_READ]
        enable, looked_up = Signal(name="looks_up"), Signal(name="looked_up", reset_less=True)
        looks_up = is_operation(before.operation.op, TABLE)
        is_table = self.unit.micro_ops.is_alu(before.operation) & looks_up
        m.d.sync += enable.eq(before.writes & ~before.first & is_table)
        m.d.sync += looked_up.eq(enable)
        m.d.comb += [
            tab.enable.eq(enable),
            unit.results.eq(tab.data),
            unit.looked_up.eq(looked_up),
        ]
        for lane in range(self.config.block_out):
            m.d.comb += tab.index[lane].eq(Cat(unit.indices[lane], now.operation.imm))


class TableAlu(AluHooks):
    """``indices`` are y's low bits LOOKED_UP cycles after y; a cycle after them come ``results``,
    which count where ``looked_up`` is high."""

    option = OPTION

    def ports(self) -> dict[str, Member]:
        """Indices and results of all lanes."""
        indices = lanes(INDEX_BITS, self.config.block_out, is_signed=False)
        results = lanes(8 * RESULT_BYTES, self.config.block_out)
        return {"indices": Out(indices), "results": In(results), "looked_up": In(1)}

    def look(self, m: Module, alu: Alu, y: Value) -> None:
        """Shows the indices."""
        low = Cat(y.word_select(n, 32)[:INDEX_BITS] for n in range(self.config.block_out))
        m.d.comb += alu.indices.eq(delayed(m, low, LOOKED_UP - SHOWN, "index"))

    def in_place_of_y(self, alu: Alu, lane: int, y: Value) -> Value:
        """The result of TABLE."""
        return Mux(alu.looked_up, alu.results[lane], y)


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
