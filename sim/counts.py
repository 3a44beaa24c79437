"""Counts of a program's work: multiply-adds, accesses of each memory, bytes of DRAM.

Counts follow from the rows of a stream and from the micro-ops that it loads; no value is computed.
They are what the instruction set says that instructions read and write. The core reads and writes
less where it keeps a result in a register that the next micro-op takes.

1. A LOAD writes beats, as wide as the port, where an entry has several; padding comes an entry at a
   time. ACC is written a vector at a time, an entry that has results a result at a time.
2. A STORE reads a vector of ACC for each entry, and one of scales for each plane of narrow ones. On
   chip it writes beats.
3. A micro-op of GEMM reads WGT, INP, and ACC unless it starts from zero. One of ALU reads what its
   operation takes. Both write ACC, and are read from UOP. Options read more vectors of INP
   (``inp_vectors``), and count their own instructions (``count_more``).
4. Micro-ops are those that were loaded last in the order of the program, so no LOAD may change them
   while they run: then an order of tokens, not of the program, would decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.instructions import (
    Alu,
    AluOp,
    Gemm,
    Init,
    Load,
    Mem,
    Store,
    instruction_bytes,
)
from vdla.isa.operations import X
from vdla.sim.compiled.seams import seam
from vdla.sim.machine import Run
from vdla.sim.nest import COUNT, EXTENT_0, UOP_BEGIN
from vdla.sim.stream import Bytes, Rows, Stream, column, uop_layout
from vdla.sim.transfers import take_uops, tile_entries
from vdla.support.numbers import ceil_div

BUSY = "busy"  # the cause of cycles that an engine works in
Key = TypeVar("Key")


class Access(NamedTuple):
    """A kind of access: of a memory, as ``Config.depth`` names it, reading or writing some bits."""

    memory: str
    writes: bool
    bits: int


@dataclass(frozen=True)
class Counts:
    """Counts of a program's run.

    ``operations`` are the ALU's, lane by lane, by ``AluOp``'s names; ``accesses`` of on-chip
    memories; bytes that LOAD and fetch read from DRAM and that STORE writes to it; ``idle`` are
    cycles in which an engine doesn't work, by its name.
    """

    multiply_adds: int = 0
    operations: Mapping[str, int] = field(default_factory=dict)
    accesses: Mapping[Access, int] = field(default_factory=dict)
    loaded_bytes: int = 0
    stored_bytes: int = 0
    fetched_bytes: int = 0
    idle: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        """Counts of two runs, one after the other."""
        return Counts(
            self.multiply_adds + other.multiply_adds,
            _sum(self.operations, other.operations),
            _sum(self.accesses, other.accesses),
            self.loaded_bytes + other.loaded_bytes,
            self.stored_bytes + other.stored_bytes,
            self.fetched_bytes + other.fetched_bytes,
            _sum(self.idle, other.idle),
        )


def counts_of(stream: Stream, dram: Bytes, run: Run | None = None) -> Counts:
    """Counts of a stream that runs to its end.

    Args:
        stream: The program.
        dram: DRAM as it is before the run: the micro-ops that the program loads are read from it.
        run: How the run went, for the idle cycles; without it there are none.
    """
    whole = np.zeros(
        ceil_div(dram.size, PAGE_BYTES) * PAGE_BYTES, np.uint8
    )  # as the machine has it
    whole[: dram.size] = dram
    counter = _Counter(stream.config)
    handlers = {
        Load.opcode: counter.load,
        Store.opcode: counter.store,
        Gemm.opcode: counter.gemm,
        Alu.opcode: counter.alu,
    }
    for row in stream.rows:
        handler = handlers.get(int(row[0]))
        if handler is not None:
            handler(row, whole)
        else:
            count_more(int(row[0]), row, counter.accesses, stream.config)
    return Counts(
        counter.multiply_adds,
        dict(counter.operations),
        {access: n for access, n in counter.accesses.items() if n},
        counter.loaded_bytes,
        counter.stored_bytes,
        len(stream.rows) * instruction_bytes(stream.config),
        {} if run is None else idle_cycles(run),
    )


@seam("+")
def inp_vectors(row: Rows, config: Config) -> int:
    """Vectors of INP that a micro-op of a GEMM reads."""
    return 1


@seam("choice")
def count_more(opcode: int, row: Rows, accesses: Counter[Access], config: Config) -> None:
    """Adds the accesses of an option's instruction."""


def idle_cycles(run: Run) -> dict[str, int]:
    """Cycles of a run in which an engine doesn't work, by the engine's name."""
    return {engine: run.cycles - causes[BUSY] for engine, causes in run.causes.items()}


def _sum(one: Mapping[Key, int], other: Mapping[Key, int]) -> dict[Key, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


class _Counter:
    """Counts up, instruction by instruction."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.multiply_adds = self.loaded_bytes = self.stored_bytes = 0
        self.operations: Counter[str] = Counter()
        self.accesses: Counter[Access] = Counter()
        self.raw = np.zeros((config.depth("uop"), config.entry("uop")), np.uint8)
        self.uops = np.zeros((config.uop_depth, 4), np.int64)
        self.layout = uop_layout(config)
        self.acc_bits = 8 * config.acc_entry
        self.port_bits = 8 * config.port_bytes

    def load(self, row: Rows, dram: Bytes) -> None:
        """A tile comes from DRAM, and padding from nowhere."""
        config, memory = self.config, Mem(int(row[_L_MEMORY]))
        entries = tile_entries(row)
        loaded = int(row[_L_X] * row[_L_Y] * row[_L_Z])
        size, buffer = config.entry(memory.name.lower()), memory.buffer
        self.loaded_bytes += loaded * size
        bits = 8 * config.entry(buffer)
        if buffer == "acc":
            self._access("acc", entries, bits, writes=True)
        elif results := memory.results(config):
            self._access(buffer, entries * results, bits // results, writes=True)
        else:
            beats = ceil_div(8 * size, self.port_bits)
            self._access(buffer, loaded * beats, bits // beats, writes=True)
            self._access(buffer, entries - loaded, bits, writes=True)
        if memory == Mem.UOP and entries:
            take_uops(row, dram, self.raw, self.layout, self.uops)

    def store(self, row: Rows, dram: Bytes) -> None:
        """Vectors leave ACC, whole or narrow, for DRAM or for a memory on chip."""
        config, memory = self.config, Mem(int(row[_S_MEMORY]))
        vectors = int(row[_S_X] * row[_S_Y] * row[_S_Z])
        narrow = memory != Mem.ACC
        scales = int(row[_S_Z]) if narrow and vectors else 0
        self._access("acc", vectors + scales, self.acc_bits, writes=False)
        size = vectors * (config.out_entry if narrow else config.acc_entry)
        if memory.buffer != Mem.ACC.buffer:
            self._access(memory.buffer, size // config.port_bytes, self.port_bits, writes=True)
        else:
            self.stored_bytes += size

    def gemm(self, row: Rows, dram: Bytes) -> None:
        """A product of a matrix and a vector for each micro-op."""
        config = self.config
        steps, first = self._steps(row)
        vectors = inp_vectors(row, config)
        from_zero = first if int(row[_G_INIT]) == Init.ZERO else 0
        self.multiply_adds += steps * config.macs_per_cycle
        self._access("inp", vectors * steps, 8 * config.inp_entry, writes=False)
        self._access("wgt", steps, 8 * config.wgt_entry, writes=False)
        self._access("acc", steps - from_zero, self.acc_bits, writes=False)
        self._access("acc", steps, self.acc_bits, writes=True)

    def alu(self, row: Rows, dram: Bytes) -> None:
        """An operation in every lane for each micro-op, but for those that only copy y."""
        op, lanes = AluOp(int(row[_A_OP])), self.config.block_out
        steps, first = self._steps(row)
        operated = steps - (first if row[_A_INIT] else 0)
        reads_x = 0 if op.x is X.NONE else operated
        reads_y = 0 if row[_A_USE_IMM] and not op.y_from_acc else steps
        self._access("acc", reads_x + reads_y, self.acc_bits, writes=False)
        self._access("acc", steps, self.acc_bits, writes=True)
        if operated:
            self.operations[op.name] += operated * lanes
        if op.memory:
            self._access(op.memory, operated * lanes, self._result_bits(op.memory), writes=False)

    def _steps(self, row: Rows) -> tuple[int, int]:
        """Micro-ops that a nest runs, and those of them that are marked first."""
        iterations = int(np.prod(row[EXTENT_0 : EXTENT_0 + 3]))
        begin, count = int(row[UOP_BEGIN]), int(row[COUNT])
        steps = iterations * count
        self._access("uop", steps, 8 * self.config.entry("uop"), writes=False)
        return steps, iterations * int(np.count_nonzero(self.uops[begin : begin + count, 0]))

    def _result_bits(self, buffer: str) -> int:
        """Bits of one result in a buffer whose entries have some."""
        memory = Mem.named(buffer.upper())
        return 8 * self.config.entry(buffer) // memory.results(self.config)

    def _access(self, memory: str, count: int, bits: int, *, writes: bool) -> None:
        self.accesses[Access(memory, writes, bits)] += count


_L_MEMORY = column(Load, "memory")
_L_X, _L_Y, _L_Z = (column(Load, f"{axis}_size") for axis in "xyz")
_S_MEMORY = column(Store, "memory")
_S_X, _S_Y, _S_Z = (column(Store, f"{axis}_size") for axis in "xyz")
_G_INIT = column(Gemm, "init")
_A_OP, _A_USE_IMM, _A_INIT = (column(Alu, n) for n in ("alu_op", "use_imm", "init"))
