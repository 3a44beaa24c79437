"""Structure that follows from a config without a mapping: the memories of the core, and its
multipliers.

Both are what ``hw/`` describes, unit by unit, so multipliers and block RAMs are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from vdla.boards.flows.yosys import AROUND
from vdla.explore.area.families import Family
from vdla.explore.area.rams import Memory, Rams, rams_of
from vdla.hw.fifo import SHALLOW
from vdla.hw.layout import beats, instruction_bits
from vdla.hw.options.tables import LANES as TABLE_LANES
from vdla.hw.store.vectors import BUFFER_VECTORS
from vdla.isa.config import INT32_BYTES, Config
from vdla.isa.encoding import fetch_buffer_beats
from vdla.isa.instructions import Uop
from vdla.isa.options.fabric import fabric_lanes
from vdla.isa.options.tables import RESULT_BYTES, TABLE_RESULTS, tables
from vdla.isa.options.vector import has_vector_engine
from vdla.isa.options.window import window_rows
from vdla.isa.registers import INDEX_BITS
from vdla.isa.ring import Engine, ring_of
from vdla.support.numbers import ceil_div

SCRATCHPADS, QUEUES = "scratchpads", "queues, tokens"  # units, as boards/flows/yosys.py calls them
CONFIGS = 64  # whose memories are kept at hand
ALU_PRODUCTS, STORE_PRODUCTS = 3, 2  # of 25 × 18 bits, of a lane


@dataclass(frozen=True)
class Placed:
    """So many equal memories of a unit, on a family."""

    unit: str
    memory: Memory
    family: Family
    count: int = 1

    @cached_property
    def rams(self) -> Rams:
        """The RAMs of all of them."""
        one, n = rams_of(self.memory, self.family.kinds), self.count
        return Rams(n * one.blocks, n * one.luts, n * one.chosen, n * one.decoded)


@lru_cache(maxsize=CONFIGS)
def memories(config: Config, family: Family, *, apart: bool = False) -> tuple[Placed, ...]:
    """The memories of a core whose size follows from the config, and those around it.

    Where units aren't kept ``apart``, RAMs are left out none of whose bits any unit reads.
    """
    around = ((AROUND, memory, 1) for memory in family.around)
    own = _memories(config, apart=apart)
    return tuple(Placed(unit, memory, family, count) for unit, memory, count in (*own, *around))


def _memories(config: Config, *, apart: bool) -> Iterator[tuple[str, Memory, int]]:
    """The unit, the memory, and how many there are."""
    scratchpad_reads = {
        "inp": window_rows(config),
        "wgt": 1,
        "uop": 2 if has_vector_engine(config) else 1,
        "acc": 2,
    }
    for name, reads in scratchpad_reads.items():
        count = 1 if name == "acc" else beats(config, name)
        columns = (8 * config.entry(name) // count,) * count
        bits = () if apart else _bits_read(config, name, reads)
        yield SCRATCHPADS, Memory(config.depth(name), columns, reads=reads, bits_read=bits), 1
    if tables(config):
        table = Memory(tables(config) * TABLE_RESULTS, (8 * RESULT_BYTES,), reads=2, shared=1)
        yield SCRATCHPADS, table, config.block_out // TABLE_LANES
    port, word = 8 * config.port_bytes, instruction_bits(config)
    for engine in ring_of(config).engines:
        queue = fifo(config.command_queue, word + INDEX_BITS)
        bits = () if apart else (command_bits(config, engine),)
        yield QUEUES, replace(queue, bits_read=bits), 1
    yield "LOAD", fifo(config.read_buffer_beats, port), 1
    raw_beats = config.block_out * INT32_BYTES // config.port_bytes
    yield "STORE", fifo(BUFFER_VECTORS * raw_beats, port), 1
    per_instruction = ceil_div(word, port)
    slots = ceil_div(fetch_buffer_beats(config), per_instruction)
    yield "fetch", Memory(slots, (port,) * per_instruction, combinational=True), 1


def fifo(depth: int, width: int) -> Memory:
    """The memory of a FIFO: a deep one is read a cycle after its address."""
    return Memory(depth, (width,), combinational=depth <= SHALLOW)


@lru_cache(maxsize=CONFIGS)
def command_bits(config: Config, engine: Engine) -> frozenset[int]:
    """The bits that an engine reads of what waits in front of it: its longest instruction, and the
    index behind the word."""
    executor = ring_of(config).executor
    longest = max(cls.bits(config) for cls, by in executor.items() if by == engine)
    word = instruction_bits(config)
    return frozenset(range(longest)) | frozenset(range(word, word + INDEX_BITS))


@lru_cache(maxsize=CONFIGS)
def _bits_read(config: Config, name: str, reads: int) -> tuple[frozenset[int], ...]:
    """The bits that each port of INP or UOP reads; of others all are read.

    INP's second port is the second row of the window, which sees a channel for each output. UOP's
    second is VECTOR's, which takes no weights.
    """
    if name == "inp":
        whole = frozenset(range(8 * config.inp_entry))
        second = frozenset(range(8 * min(config.block_in, config.block_out)))
        return (whole, second)[:reads]
    if name != "uop":
        return ()
    fields = {f.name: range(bit, bit + width) for f, bit, width in Uop.layout(config)}
    words = [8 * config.uop_entry * number for number in range(config.uops_per_word)]
    return tuple(
        frozenset(
            word + bit
            for word in words
            for field, bits in fields.items()
            if field != "wgt" or port == 0
            for bit in bits
        )
        for port in range(reads)
    )


def dsps(config: Config, family: Family) -> dict[str, int]:
    """Multipliers of each unit that has some."""
    with_dsps = config.block_out - fabric_lanes(config)
    return {
        "GEMM": with_dsps // family.rows * config.block_in,
        "ALU": family.per_product * ALU_PRODUCTS * config.block_out,
        "STORE": family.per_product * STORE_PRODUCTS * config.port_bytes,
    }


def block_rams(config: Config, family: Family, *, apart: bool = False) -> dict[str, float]:
    """Block RAMs of each unit that has some, in the family's unit; of a RAMB36 a RAMB18 is half.
    Units are kept ``apart`` or not."""
    result: dict[str, float] = {}
    for placed in memories(config, family, apart=apart):
        if placed.rams.blocks:
            result[placed.unit] = result.get(placed.unit, 0.0) + placed.rams.blocks
    return result
