"""Reads and writes of a stream's instructions, as arrays for compiled loops.

All entries of all memories have a number each: those of one memory lie side by side, and the words
of DRAM behind them all. An access is a nest of loops over such numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.compiler.targets.accelerator.description.memory import BUFFER_OF_SCOPE, depth
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div

Numbers = NDArray[np.int64]


class Accesses(NamedTuple):
    """The accesses of instructions, one after another.

    Attributes:
        of: [n + 1] where the accesses of each instruction begin; the last is their number.
        write: [accesses] 1 for what is written, 0 for what is read.
        start: [accesses] the number of the first entry.
        loops: [accesses + 1] where the loops of each access begin.
        extent: [loops] how many steps each has, outermost first.
        step: [loops] how far one goes.
        entries: entries of all memories.
    """

    of: Numbers
    write: Numbers
    start: Numbers
    loops: Numbers
    extent: Numbers
    step: Numbers
    entries: int

    @classmethod
    def of_ops(
        cls, ops: Sequence[Op], addresses: Mapping[str, int], dram_bytes: int, config: Config
    ) -> Accesses:
        """The accesses of instructions; DRAM's tensors lie at some byte addresses below
        ``dram_bytes``."""
        firsts, dram = _firsts(config)
        known = [access for op in ops for access in op.accesses]
        loops, extent, step = loops_of(known)
        on_chip = np.array([access.space in firsts for access in known], np.bool_)
        spaces = dict.fromkeys(access.space for access in known)
        bases = {name: firsts[name] if name in firsts else addresses[name] for name in spaces}
        base = [bases[access.space] for access in known]
        start = np.array([access.start for access in known], np.int64) + np.array(base, np.int64)
        unit = config.port_bytes
        start[~on_chip] = start[~on_chip] // unit + dram
        bytewise = np.repeat(~on_chip, np.diff(loops))  # the last loop goes byte by byte
        last = np.zeros(len(extent), np.bool_)
        last[loops[1:][np.diff(loops) > 0] - 1] = True
        step[bytewise & ~last] //= unit
        extent[bytewise & last] = -(-extent[bytewise & last] // unit)
        return cls(
            starts([len(op.accesses) for op in ops]),
            np.array([access.write for access in known], np.int64),
            start,
            loops,
            extent,
            step,
            dram + ceil_div(dram_bytes, unit) + 1,
        )


def loops_of(accesses: Sequence[Access]) -> tuple[Numbers, Numbers, Numbers]:
    """[n + 1] where the loops of each access begin, and [loops] their extents and steps."""
    dims = [pair for access in accesses for pair in access.dims]
    extent, step = np.array(dims, np.int64).reshape(-1, 2).T.copy()
    return starts([len(access.dims) for access in accesses]), extent, step


def starts(lengths: Sequence[int]) -> Numbers:
    """[n + 1] where parts of some lengths begin, one after another, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def _firsts(config: Config) -> tuple[dict[str, int], int]:
    """The number of each memory's first entry, and of DRAM's first word."""
    depths = {b: depth(scope, config) for scope, b in BUFFER_OF_SCOPE.items()}
    depths["uop"] = config.depth("uop")
    firsts, first = {}, 0
    for buffer, entries in depths.items():
        firsts[buffer] = first
        first += entries
    return firsts, first
