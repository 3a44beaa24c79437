"""A program as arrays: one row of int64 field values per instruction, for the compiled loops.

Column ``i`` of a row is the ``i``-th field of that instruction's class, so the columns derive from
``isa`` and every room that reads a row names them with ``column``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vdla.isa.config import Config
from vdla.isa.instructions import (
    INSTRUCTIONS,
    OPCODE_BITS,
    SIDES,
    Finish,
    Instruction,
    Load,
    Mem,
    Unknown,
    Uop,
    instruction_bytes,
    kind_of,
)
from vdla.isa.program import Program
from vdla.isa.ring import Engine, engines, ring_of
from vdla.sim.compiled import shared

Rows = NDArray[np.int64]
Bytes = NDArray[np.uint8]


def column(cls: type[Instruction], name: str) -> int:
    """The column that holds a field of an instruction class."""
    return next(i for i, f in enumerate(cls.fields) if f.name == name)


COLUMNS = max(len(cls.fields) for cls in INSTRUCTIONS)
_ZEROS = (0,) * COLUMNS
NO_ENGINE = -1  # of FINISH and of unknown opcodes
# Columns of the token flags, by sides: every class has them in the same places.
POPS, PUSHES = (tuple(column(Instruction, f"{v}_{s}") for s in SIDES) for v in ("pop", "push"))


def token_queues(config: Config, verb: str) -> Rows:
    """[engine, side] the number of the token queue that an engine's flag ``pop`` or ``push`` means.

    It is 0 where the engine has no such side: there the flag is never set.
    """
    numbers = np.zeros((len(Engine), len(SIDES)), np.int64)
    for number, queue in enumerate(ring_of(config).token_queues):
        if verb == "push":
            numbers[queue.giver, SIDES.index(queue.side)] = number
        else:
            numbers[queue.taker, SIDES.index(queue.back)] = number
    return numbers


@dataclass(frozen=True)
class Stream:
    """Rows of a program and, per engine, the indices of its instructions in program order.

    ``legal`` is false where the machine stops, since the ISA doesn't know what stands there.
    """

    config: Config
    instructions: Sequence[Instruction]
    rows: Rows
    base: int

    @classmethod
    def of(cls, config: Config, instructions: Sequence[Instruction], base: int = 0) -> Stream:
        """Lays a program out in rows."""
        fields = [each.__dict__ for each in instructions]
        values = [[*own.values(), *_ZEROS[len(own) :]] for own in fields]
        rows = np.array(values, np.int64).reshape(-1, COLUMNS)
        return cls(config, instructions, rows, base)

    @classmethod
    def of_bytes(cls, config: Config, raw: bytes, base: int = 0) -> Stream:
        """Decodes a stream as the machine would: it doesn't look at bits above the fields."""
        size = instruction_bytes(config)
        words = [int.from_bytes(raw[i : i + size], "little") for i in range(0, len(raw), size)]
        return cls.of(config, [_decode(word, config) for word in words], base)

    def engine(self, engine: Engine) -> NDArray[np.int64]:
        """Indices of an engine's instructions; FINISH and the unknown belong to none."""
        return np.flatnonzero(self.engine_of[self.rows[:, 0]] == engine)

    @cached_property
    def engine_of(self) -> Rows:
        """[opcode] the engine of an instruction, or NO_ENGINE."""
        numbers = np.full(1 << OPCODE_BITS, NO_ENGINE, np.int64)
        for cls, engine in ring_of(self.config).executor.items():
            if cls not in (Finish, Unknown):
                numbers[cls.opcode] = engine
        return numbers

    @cached_property
    def order(self) -> Rows:
        """Per engine the indices of its instructions in program order, and -1 after the last."""
        lists = {engine: self.engine(engine) for engine in engines(self.config)}
        longest = max(map(len, lists.values()))
        order = np.full((len(Engine), longest + 1), -1, np.int64)
        for engine, indices in lists.items():
            order[engine, : len(indices)] = indices
        return order

    def micro_ops(self, dram: Bytes) -> bytes:
        """Bytes of DRAM from which the program loads micro-ops: all of DRAM's contents that the
        program's cycles depend on."""
        return b"".join(dram[low:high].tobytes() for low, high in self.uop_places)

    @cached_property
    def uop_places(self) -> list[tuple[int, int]]:
        """The byte addresses (from, to) in DRAM between which LOADs of UOP read, each once."""
        own = self.rows[self.rows[:, 0] == Load.opcode]
        own = own[own[:, column(Load, "memory")] == Mem.UOP]
        counts = own[:, [column(Load, f"{axis}_size") for axis in "zyx"]]
        strides = own[:, [column(Load, f"{axis}_stride") for axis in "zyx"]]
        entries = ((counts - 1) * strides).sum(axis=1) + 1
        low = own[:, column(Load, "dram_base")]
        high = low + entries * self.config.entry("uop")
        result: list[tuple[int, int]] = []
        for begin, end in sorted(zip(low.tolist(), high.tolist(), strict=True)):
            if result and begin <= result[-1][1]:
                begin, last = result.pop()
                end = max(end, last)
            result.append((begin, end))
        return result

    @cached_property
    def legal(self) -> NDArray[np.bool_]:
        """Per instruction, whether every field holds a value the config knows."""
        legal = np.zeros(len(self.rows), np.bool_)
        for opcode in np.unique(self.rows[:, 0]).tolist():
            cls = kind_of(opcode, self.config)
            own = self.rows[:, 0] == opcode
            for i, f in enumerate(cls.fields) if cls else ():
                if f.names:
                    own &= np.isin(self.rows[:, i], f.legal(self.config))
            legal |= own & (cls is not None)
        return legal

    @cached_property
    def aligned(self) -> NDArray[np.bool_]:
        """Per instruction, whether every field is a multiple of what the machine wants."""
        aligned = np.ones(len(self.rows), np.bool_)
        for cls in INSTRUCTIONS:
            for i, f in enumerate(cls.fields):
                if (unit := f.multiple(self.config)) > 1:
                    aligned &= (self.rows[:, 0] != cls.opcode) | (self.rows[:, i] % unit == 0)
        return aligned


def _decode(word: int, config: Config) -> Instruction:
    opcode = word & ((1 << OPCODE_BITS) - 1)
    kind = kind_of(opcode, config)
    return kind.unpack(word, config) if kind else Unknown(opcode)


def memory_image(program: Program, size: int) -> Bytes:
    """DRAM of ``size`` bytes with a program's stream and data, and zeros elsewhere."""
    image = np.zeros(size, np.uint8)
    for address, raw in {**program.data, program.base: program.stream()}.items():
        image[address : address + len(raw)] = np.frombuffer(raw, np.uint8)
    return image


def uop_layout(config: Config) -> NDArray[np.int64]:
    """(lowest bit, width) of first, dst, src, wgt; then bytes per micro-op."""
    rows = [[bit, width] for _, bit, width in Uop.layout(config)]
    return np.array([*rows, [config.uop_entry, config.uops_per_word]], np.int64)


@shared
def decode_uops(raw: Bytes, first: int, entries: int, layout: Rows, uops: Rows) -> None:
    """Decodes the packed micro-ops in some entries of ``raw`` [entry, byte] into rows (first, dst,
    src, wgt) of ``uops``."""
    size, per_entry = layout[4, 0], layout[4, 1]
    for i in range(entries * per_entry):
        entry, begin = first + i // per_entry, i % per_entry * size
        word = np.uint64(0)
        for b in range(size):
            word |= np.uint64(raw[entry, begin + b]) << np.uint64(8 * b)
        for f in range(4):
            mask = (np.uint64(1) << np.uint64(layout[f, 1])) - np.uint64(1)
            uops[first * per_entry + i, f] = np.int64((word >> np.uint64(layout[f, 0])) & mask)
