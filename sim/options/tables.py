"""Tables: TAB in memory, what TABLE looks up, when it reads, and which writes wait for it.

* TABLE reads TAB four cycles after READ, which LOAD's writes wait for.
* Which results a TABLE reads depends on the data: to the checker it reads its whole table.
"""

from __future__ import annotations

import numpy as np

from vdla.isa.config import Config
from vdla.isa.instructions import Alu, Gemm, Load
from vdla.isa.options.tables import (
    TAB,
    TABLE,
    TABLE_BITS,
    TABLE_BYTES,
    TABLE_RESULTS,
    results_per_word,
    tables,
)
from vdla.sim.alu import alu_reads_beyond, operate, operates
from vdla.sim.checker.execution import nest_fits_more, report, touch, touch_more
from vdla.sim.checker.tables import BUFFERS, DRAM, INDEX_RANGE, READ, Tables
from vdla.sim.compiled import inline
from vdla.sim.memories import Int16, Memories, adds_memory
from vdla.sim.places import Places, run
from vdla.sim.random_programs import Generator, alu_more, load_shape_more
from vdla.sim.semantics import load_more
from vdla.sim.stream import Rows, column
from vdla.sim.timing import state
from vdla.sim.timing.load import load_waits
from vdla.sim.timing.nest import alu_beyond
from vdla.sim.timing.pipeline import enter_more, shift_more, starts
from vdla.sim.timing.state import Machine, OptionPorts, OptionSettings, Pipeline, Settings, sets_up
from vdla.sim.transfers import load_lanes

TABLE_READ = 6  # cycles from a micro-op's operand read to its read of TAB: docs/timing.md §5.8

_TAB, _TABLE, _GEMM = int(TAB), int(TABLE), Gemm.opcode
_AT = BUFFERS.index(TAB.buffer)  # as the checker numbers memories
_OP, _IMM = column(Alu, "alu_op"), column(Alu, "imm")
_PAD = column(Load, "pad_value")

OptionSettings.add("tables", int)  # that TAB holds
OptionPorts.add("table_reads", int)  # bit n: a read of TAB n cycles from now


@adds_memory("tab")
def make_tab(config: Config) -> Int16:
    """[entry, result]"""
    return np.zeros((config.depth(TAB.buffer), results_per_word(config)), np.int16)


@load_more.on(TAB)
def load_tab(memory: int, row: Rows, of: Memories) -> None:
    """DRAM → TAB."""
    load_lanes(row, of.dram16, of.options.tab, row[_PAD], 0, 2)


@operate.on(TABLE)
def look_up(op: int, x: int, y: int, row: Rows, of: Memories) -> int:
    """tab[n × 256 + (y & 255)]"""
    at = _table(row) * TABLE_RESULTS + (y & (TABLE_RESULTS - 1))
    words = of.options.tab.shape[1]
    return int(np.int64(of.options.tab[at // words, at % words]))


@inline
def _table(row: Rows) -> int:
    """The number of the table that a TABLE names."""
    return int(row[_IMM] & ((1 << TABLE_BITS) - 1))


@alu_reads_beyond.add
def table_is_missing(row: Rows, of: Memories) -> bool:
    """Whether a TABLE reads a table beyond the last."""
    tab = of.options.tab
    results = tab.shape[0] * tab.shape[1]
    return bool(row[_OP] == _TABLE and (_table(row) + 1) * TABLE_RESULTS > results)


# Timing -----------------------------------------------------------------------------------------


@sets_up
def set_up(settings: Settings, config: Config) -> None:
    """Tables that the config has."""
    settings.options.tables = tables(config)


@alu_beyond.add
def table_is_beyond(m: Machine, t: state.Tables, row: int) -> bool:
    """Whether an ALU instruction is a TABLE whose table lies beyond TAB's last."""
    return bool(t.rows[row, _OP] == _TABLE and _table(t.rows[row]) >= m.settings.options.tables)


@enter_more.add
def enter(t: state.Tables, p: Pipeline) -> None:
    """A TABLE will read TAB."""
    row = p.read.row
    if t.rows[row, 0] != _GEMM and t.rows[row, _OP] == _TABLE and not starts(t, p):
        p.options.table_reads |= 1 << TABLE_READ


@shift_more.add
def shift(p: Pipeline) -> None:
    """The reads of TAB come a cycle nearer."""
    p.options.table_reads >>= 1


@load_waits.add
def tab_is_read(m: Machine, t: state.Tables, memory: int) -> bool:
    """Whether LOAD stands at TAB, and TAB is read in this cycle."""
    if memory != _TAB:
        return False
    reads = m.compute.options.table_reads
    if t.variant.own_alu is not None:
        reads |= m.alu.options.table_reads
    return bool(reads & 1)


# The checker ------------------------------------------------------------------------------------


@nest_fits_more.add
def table_fits(t: Tables, index: int) -> bool:
    """Whether the table that an ALU instruction reads is there; reports it if not."""
    _, end = _entries(t, index)
    if end <= t.depth[_AT]:
        return True
    report(t.findings, INDEX_RANGE, index, 0, 0, _AT, end - 1, READ, READ)
    return False


@touch_more.add
def touch_table(t: Tables, index: int, engine: int, number: int) -> None:
    """Touches the entries of the table that an ALU instruction reads."""
    begin, end = _entries(t, index)
    for entry in range(begin, end):
        touch(t, index, engine, number, _AT, entry, READ)


@inline
def _entries(t: Tables, index: int) -> tuple[int, int]:
    """The first entry of TAB that an instruction may read, and the one after the last."""
    row = t.rows[index]
    if row[0] == _GEMM or row[_OP] != _TABLE or not operates(row, t.uops):
        return 0, 0
    words = TABLE_BYTES // t.depth[DRAM]
    return _table(row) * words, (_table(row) + 1) * words


# Random programs --------------------------------------------------------------------------------


@load_shape_more.on(TAB)
def whole_table(memory: int, g: Generator, load: Load) -> Load:
    """Half of the LOADs of TAB fill a table, which is much more than the usual few entries."""
    if g.rng.random() >= 0.5:
        return load
    words = _words(g.config)
    sizes = {"x_size": words // 4, "y_size": 4, "z_size": 1}
    strides = {"x_stride": 1, "y_stride": words // 4, "z_stride": 0}
    pads = dict.fromkeys(("pad_x0", "pad_x1", "pad_y0", "pad_y1"), 0)
    return load.replace(**sizes, **strides, **pads, sram_base=_some_table(g) * words)


@alu_more.on(TABLE)
def draw_table(op: int, g: Generator, alu: Alu) -> Places:
    """Draws the number of a table; the entries that it takes."""
    number = _some_table(g)
    if alu.init and all(uop.first for uop in g.uops_of(alu)):
        number = g.rng.getrandbits(TABLE_BITS)  # any, since none is read
    alu.imm = alu.imm >> TABLE_BITS << TABLE_BITS | number  # nothing reads the bits above
    return run(_words(g.config)) << g.place[TAB.buffer] + number * _words(g.config)


def _some_table(g: Generator) -> int:
    """The number of a table, often the first or the last."""
    last = tables(g.config) - 1
    return g.rng.choice((last if g.top else 0, g.rng.randint(0, last)))


def _words(config: Config) -> int:
    """Entries of TAB that one table takes."""
    return TABLE_BYTES // config.port_bytes
