"""An instruction that has no place in a stream yet, and what it reads and writes."""

from __future__ import annotations

from typing import NamedTuple

from vdla.isa.instructions import Instruction

UopRow = tuple[int, int, int]  # dst, src, wgt


class Access(NamedTuple):
    """Entries an instruction reads or writes: ``start + Σ i·step`` over ``dims``.

    ``space`` is a buffer ("inp", "wgt", "acc", "uop") in entries, "tab" in tables, or a tensor of
    DRAM in bytes.
    """

    space: str
    start: int
    dims: tuple[tuple[int, int], ...]
    write: bool

    @property
    def end(self) -> int:
        """One past the last entry."""
        return self.start + sum((n - 1) * step for n, step in self.dims) + 1


class Op(NamedTuple):
    """An instruction before linking: without tokens, and with addresses that are relative.

    Attributes:
        instruction: its micro-ops have no place yet; a DRAM address counts from the tensor's start.
        accesses: what it reads and writes.
        name: of the stage that it does a part of.
        tensor: the DRAM tensor of a LOAD or STORE.
        uops: its micro-ops, as (dst, src, wgt).
        first: per micro-op, whether it starts a reduction; None if this instruction is none.
    """

    instruction: Instruction
    accesses: tuple[Access, ...]
    name: str
    tensor: str = ""
    uops: tuple[UopRow, ...] = ()
    first: tuple[bool, ...] | None = None  # per micro-op; None: no reduction
