"""The on-chip memories as scopes of buffers.

"vdla.inp"  vectors of block_in int8         "vdla.acc"  vectors of block_out int32
"vdla.wgt"  tiles of block_out × block_in    "vdla.tab"  tables of 256 results of 16 bits
"""

from __future__ import annotations

from math import prod

from vdla.compiler.tir.ir import Buffer
from vdla.isa.config import Config
from vdla.isa.options.tables import TABLE_RESULTS, tables
from vdla.support.numbers import ceil_div

INP, WGT, ACC, TAB = "vdla.inp", "vdla.wgt", "vdla.acc", "vdla.tab"
BUFFER_OF_SCOPE = {INP: "inp", WGT: "wgt", ACC: "acc", TAB: "tab"}
SCRATCHPADS = frozenset((*BUFFER_OF_SCOPE.values(), "uop"))  # all on chip


def entry_shape(scope: str, config: Config) -> tuple[int, ...]:
    """The elements of one entry of an on-chip memory."""
    shapes: dict[str, tuple[int, ...]] = {
        INP: (config.block_in,),
        WGT: (config.block_out, config.block_in),
        ACC: (config.block_out,),
        TAB: (TABLE_RESULTS,),
    }
    return shapes[scope]


def depth(scope: str, config: Config) -> int:
    """Number of entries that an on-chip memory holds; of TAB, number of tables."""
    return tables(config) if scope == TAB else config.depth(BUFFER_OF_SCOPE[scope])


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
