"""Tables: a TABLE's values, the entries of TAB that it reads, and programs that use several."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from random import Random

from vdla.analysis.cases import OUTSIDE
from vdla.analysis.coverage.replay import Hook, Place
from vdla.analysis.coverage.values import Kinds, Lane, corners
from vdla.analysis.directed import PROGRAMS, pass_token
from vdla.isa.config import Config
from vdla.isa.instructions import Alu, Finish, Gemm, Instruction, Load, Mem
from vdla.isa.options.tables import TAB, TABLE, TABLE_BITS, TABLE_RESULTS, tables
from vdla.isa.program import Program
from vdla.sim.random_programs import DATA_AT, DRAM_BYTES

OTHER_TABLE = "a table but the first"


def _lacking(config: Config) -> Container[str]:
    return () if tables(config) > 1 else (OTHER_TABLE,)


@corners(
    TABLE, "bits of y beyond its index", "the first result", "the last result",
    "a negative result", "a positive result", OTHER_TABLE, "bits of imm beyond the number",
    lacking=_lacking,
)  # fmt: skip
def look_up(lane: Lane) -> Kinds:
    """The kinds of a result."""
    number, at = lane.alu.imm % (1 << TABLE_BITS), lane.y % TABLE_RESULTS
    results = lane.state.options[TAB.buffer].reshape(-1)
    result = int(results[number * TABLE_RESULTS + at])
    return {
        "bits of y beyond its index": lane.y != at, "the first result": at == 0,
        "the last result": at == TABLE_RESULTS - 1, "a negative result": result < 0,
        "a positive result": result > 0, OTHER_TABLE: number > 0,
        "bits of imm beyond the number": lane.alu.imm != number,
    }  # fmt: skip


class TableHook(Hook):
    """The entries of TAB that a TABLE may read: those of its table."""

    def reads(self, nest: Gemm | Alu, first: int, src: int) -> Iterable[Place]:
        """All of the table, unless the micro-op gives y itself."""
        if isinstance(nest, Gemm) or nest.alu_op != TABLE or (first and nest.init):
            return ()
        words = _words(self.config)
        begin = nest.imm % (1 << TABLE_BITS) * words
        return ((TAB.buffer, entry) for entry in range(begin, begin + words))


@OUTSIDE.add
def outside(config: Config) -> Mapping[str, Instruction]:
    """A table that TAB hasn't, where an immediate can name one."""
    if not 0 < tables(config) < 1 << TABLE_BITS:
        return {}
    last = (1 << TABLE_BITS) - 1
    return {"a table beyond TAB": Alu(uop_count=1, alu_op=TABLE, imm=last << 8 | last)}


@PROGRAMS.add
def programs(config: Config) -> Mapping[str, Callable[[Config, Random], Program]]:
    """Two tables at once."""
    return {"a table beside another": _tables} if tables(config) > 1 else {}


def _tables(config: Config, rng: Random) -> Program:
    """One table is filled, with rows and padding, while every lane reads another one."""
    words = _words(config)
    read, filled = rng.sample(range(tables(config)), 2)
    entries = min(config.depth("acc") // 2, 64)
    most = min(Alu.extent_0.bounds(config)[1], 9)
    load = Load(memory=TAB, z_size=1)
    values = Load(memory=Mem.ACC, x_size=entries, y_size=1, z_size=1, dram_base=DATA_AT + 4096)
    look_up = Alu(alu_op=TABLE, uop_count=1, extent_0=rng.randint(1, most),
                  extent_1=entries, src_1=1, dst_1=1, dst_base=entries, imm=read)  # fmt: skip
    pass_token(config, values, look_up)
    stream = [
        load.replace(x_size=words, y_size=1, dram_base=DATA_AT, sram_base=read * words),
        values,
        look_up,
        load.replace(x_size=rng.randint(1, words // 2), y_size=2, y_stride=1, dram_base=DATA_AT,
                     sram_base=filled * words),
        load.replace(pad_x0=rng.randint(1, words // 4), y_size=1, sram_base=filled * words),
        Finish(),
    ]  # fmt: skip
    data = {DATA_AT: rng.randbytes(4096 + entries * config.acc_entry)}
    return Program(config, stream, DRAM_BYTES // 2, data)


def _words(config: Config) -> int:
    """Entries of TAB that a table takes."""
    return config.depth(TAB.buffer) // tables(config)
