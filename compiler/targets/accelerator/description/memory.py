"""The on-chip memories as scopes of buffers.

"vdla.inp"  vectors of block_in int8         "vdla.acc"  vectors of block_out int32
"vdla.wgt"  tiles of block_out × block_in    and those of options
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from vdla.compiler.tir.ir import Buffer
from vdla.isa.config import Config
from vdla.isa.instructions import Mem
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class Scope:
    """Memory of buffers: the shape of an entry, and how many of these it holds, of a config."""

    entry_shape: Callable[[Config], tuple[int, ...]]
    depth: Callable[[Config], int]


SCOPES: dict[str, Scope] = {}
BUFFER_OF_SCOPE: dict[str, str] = {}
SCRATCHPADS = frozenset(memory.buffer for memory in Mem)  # all on chip


def add_scope(
    memory: Mem,
    entry_shape: Callable[[Config], tuple[int, ...]],
    depth: Callable[[Config], int] | None = None,
) -> str:
    """Makes a memory a scope; its name. ``depth`` is that of the memory, unless its entries are
    others than an instruction's."""
    buffer = memory.buffer
    name = f"vdla.{buffer}"
    SCOPES[name] = Scope(entry_shape, depth or (lambda config: config.depth(buffer)))
    BUFFER_OF_SCOPE[name] = buffer
    return name


INP = add_scope(Mem.INP, lambda config: (config.block_in,))
WGT = add_scope(Mem.WGT, lambda config: (config.block_out, config.block_in))
ACC = add_scope(Mem.ACC, lambda config: (config.block_out,))


def entry_shape(scope: str, config: Config) -> tuple[int, ...]:
    """The elements of one entry of an on-chip memory."""
    return SCOPES[scope].entry_shape(config)


def depth(scope: str, config: Config) -> int:
    """Number of entries that an on-chip memory holds."""
    return SCOPES[scope].depth(config)


def words_per_entry(memory: Mem, config: Config) -> int:
    """Entries of the instructions that name a memory in one of its scope: 1, but where these are
    port words of results."""
    results = memory.results(config)
    return prod(entry_shape(f"vdla.{memory.buffer}", config)) // results if results else 1


def entries(buffer: Buffer, config: Config) -> int:
    """Number of entries that one copy of a buffer takes: its elements, and the room between its
    rows, over the lanes of an entry."""
    return ceil_div(buffer.span, prod(entry_shape(buffer.scope, config)))


def lead(buffer: Buffer, config: Config) -> int:
    """Number of entries before a buffer's first row: as many as between its rows."""
    dense = zip(buffer.strides, buffer.strides[1:], buffer.shape[1:], strict=False)
    room = sum(outer - inner * size for outer, inner, size in dense)
    return room // prod(entry_shape(buffer.scope, config))


def vector_elements(operand: Buffer, scope: str, config: Config) -> int:
    """Elements that an operand of an intrinsic steps by: those of an entry, or in DRAM its own."""
    return prod(entry_shape(scope, config) if scope in BUFFER_OF_SCOPE else operand.shape)
