"""Tables: a RAM of TAB for each pair of lanes, and what LOAD and ALU have for it."""

from __future__ import annotations

from collections.abc import Iterator

from vdla.explore.area.added import MEMORIES, Features, adds_features
from vdla.explore.area.rams import Memory
from vdla.explore.area.structure import SCRATCHPADS
from vdla.hw.options.tables import LANES
from vdla.isa.config import Config
from vdla.isa.options.tables import RESULT_BYTES, TAB, TABLE_RESULTS, tables


@MEMORIES.add
def memories(config: Config) -> Iterator[tuple[str, Memory, int]]:
    """TAB, once for each pair of lanes; its second port is LOAD's, too."""
    if tables(config):
        table = Memory(tables(config) * TABLE_RESULTS, (8 * RESULT_BYTES,), reads=2, shared=1)
        yield SCRATCHPADS, table, config.block_out // LANES


@adds_features("LOAD", before="queue bits")
def load(config: Config, unit: str) -> Features:
    """The way to TAB."""
    return {"tables": bool(tables(config))}


@adds_features("ALU", before="lanes beside GEMM")
def alu(config: Config, unit: str) -> Features:
    """A result for each lane."""
    return {"lanes, tables": config.block_out * bool(tables(config))}


@adds_features(SCRATCHPADS)
def scratchpads(config: Config, unit: str) -> Features:
    """Addresses of TAB."""
    return {"table address bits": config.index_bits(TAB.buffer) if tables(config) else 0}
