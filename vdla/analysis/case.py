"""A case for the machines, a program in its DRAM, and how it ends on one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.isa.instructions import Instruction
from vdla.isa.program import Program
from vdla.isa.registers import Fault
from vdla.sim.random_programs import DRAM_BYTES
from vdla.sim.stream import Stream

Cycles = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class Ending(IntEnum):
    """Endings of a program, from good to bad."""

    FINISH = 0
    FAULT = 1
    DEADLOCK = 2


@dataclass(frozen=True)
class Case:
    """Input of a machine: the stream as bytes, the DRAM, and what is wrong with them.

    ``goal`` names the recipe it was made by, ``purpose`` says how it was made to end: None where a
    random mistake decides. ``mistake`` names the part of the case that was changed so that the
    program may fail, or is empty; memories aren't compared then.
    """

    config: Config
    raw: bytes
    base: int
    dram: Bytes
    identity: Identity
    errors: tuple[int, int] = (0, 0)
    mistake: str = ""
    goal: str = ""
    purpose: Ending | None = Ending.FINISH

    @classmethod
    def of(cls, program: Program, size: int = DRAM_BYTES) -> Case:
        """A program in a DRAM of ``size`` bytes."""
        raw = program.stream()
        dram = np.zeros(size, np.uint8)
        for address, part in {**program.data, program.base: raw}.items():
            dram[address : address + len(part)] = np.frombuffer(part, np.uint8)
        return cls(program.config, raw, program.base, dram, Identity.of(program.config))

    @cached_property
    def stream(self) -> Stream:
        """The instructions as the machine decodes them."""
        return Stream.of_bytes(self.config, self.raw, self.base)

    def without_errors(self) -> Case:
        """The case as a board can run it, whose memory bears no bus errors."""
        if self.errors[0] >= self.errors[1]:
            return self
        return replace(self, errors=(0, 0), purpose=None)

    def with_instructions(self, instructions: Sequence[Instruction]) -> Case:
        """A copy of the case with another stream, at an address where it fits."""
        return self.with_raw(b"".join(each.encode(self.config) for each in instructions))

    def with_raw(self, raw: bytes) -> Case:
        """A copy of the case with other bytes for its stream."""
        base = min(self.base, len(self.dram) - len(raw)) // self.config.port_bytes
        base *= self.config.port_bytes
        dram = self.dram.copy()
        dram[base : base + len(raw)] = np.frombuffer(raw, np.uint8)
        return replace(self, raw=raw, base=base, dram=dram)


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case on one machine. ``cycles`` is -1 for a deadlock; -1 in ``start`` or
    ``finish`` stands for never. ``seconds`` is the machine's own time. ``overdue`` says what kept a
    machine that didn't come to an end, and was stopped."""

    cycles: int
    start: Cycles
    finish: Cycles
    causes: dict[str, int]
    fault: Fault
    fault_at: int
    memories: dict[str, Bytes]
    seconds: float
    overdue: str = ""

    @property
    def ending(self) -> Ending:
        """Whether it ran to its FINISH, a fault stopped it, or it stood still."""
        if self.fault:
            return Ending.FAULT
        return Ending.DEADLOCK if self.cycles < 0 else Ending.FINISH
