"""Structure that follows from a config without a mapping: the memories of the core, and its
multipliers.

Both are what ``hw/`` describes, unit by unit, so multipliers and block RAMs are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from vdla.boards.flows.yosys import AROUND
from vdla.explore.area.added import MEMORIES, PORTS, lanes_in_fabric
from vdla.explore.area.families import Family
from vdla.explore.area.rams import Memory, Rams, fifo, rams_of
from vdla.hw.layout import beats, instruction_bits
from vdla.hw.store.vectors import BUFFER_VECTORS
from vdla.isa.config import INT32_BYTES, Config
from vdla.isa.encoding import fetch_buffer_beats
from vdla.isa.instructions import Alu, Gemm, Uop
from vdla.isa.options.lanes import alu_lanes, store_lanes
from vdla.isa.registers import INDEX_BITS
from vdla.isa.ring import Engine, ring_of
from vdla.support.numbers import ceil_div

SCRATCHPADS, QUEUES = "scratchpads", "queues, tokens"  # units, as boards/flows/yosys.py calls them
CONFIGS = 64  # whose memories are kept at hand
PRODUCTS = 2  # of 25 × 18 bits, of a lane that multiplies
ROWS = 2  # outputs of GEMM that share a multiplier


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
    around = ((AROUND, memory, 1) for memory in family.around(config))
    own = _memories(config, apart=apart)
    return tuple(Placed(unit, memory, family, count) for unit, memory, count in (*own, *around))


def _memories(config: Config, *, apart: bool) -> Iterator[tuple[str, Memory, int]]:
    """The unit, the memory, and how many there are."""
    for name in ("inp", "wgt", "uop", "acc"):
        more = _ports_more(config, name)
        reads = (2 if name == "acc" else 1) + len(more)
        count = 1 if name == "acc" else beats(config, name)
        columns = (8 * config.entry(name) // count,) * count
        bits = () if apart else _bits_read(config, name, more)
        yield SCRATCHPADS, Memory(config.depth(name), columns, reads=reads, bits_read=bits), 1
    for added in MEMORIES:
        yield from added(config)
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


@lru_cache(maxsize=CONFIGS)
def command_bits(config: Config, engine: Engine) -> frozenset[int]:
    """The bits that an engine reads of what waits in front of it: its longest instruction, and the
    index behind the word."""
    executor = ring_of(config).executor
    longest = max(cls.bits(config) for cls, by in executor.items() if by == engine)
    word = instruction_bits(config)
    return frozenset(range(longest)) | frozenset(range(word, word + INDEX_BITS))


def _ports_more(config: Config, name: str) -> list[frozenset[int]]:
    """The bits that the read ports of a scratchpad read beside the first ones: of UOP that of an
    engine which executes ALU alone and takes no weights, and those of options."""
    executor = ring_of(config).executor
    if name == "uop" and executor[Alu] != executor[Gemm]:
        return [_of_uops(config, without="wgt")]
    return [bits for added in PORTS for bits in added(config).get(name, ())]


def _of_uops(config: Config, without: str = "") -> frozenset[int]:
    """The bits of micro-ops in UOP's words, all or without a field."""
    fields = {f.name: range(bit, bit + width) for f, bit, width in Uop.layout(config)}
    words = [8 * config.uop_entry * number for number in range(config.uops_per_word)]
    read = (bits for field, bits in fields.items() if field != without)
    return frozenset(word + bit for bits in read for word in words for bit in bits)


def _bits_read(
    config: Config, name: str, more: Sequence[frozenset[int]]
) -> tuple[frozenset[int], ...]:
    """The bits that each port of INP or UOP reads, of the first and the others; of other
    scratchpads all are read."""
    if name == "inp":
        return (frozenset(range(8 * config.inp_entry)), *more)
    return (_of_uops(config), *more) if name == "uop" else ()


def dsps(config: Config, family: Family) -> dict[str, int]:
    """Multipliers of each unit that has some."""
    with_dsps = config.block_out - lanes_in_fabric(config)
    return {
        "GEMM": with_dsps // ROWS * config.block_in,
        "ALU": family.per_product * PRODUCTS * alu_lanes(config),
        "STORE": family.per_product * PRODUCTS * store_lanes(config),
    }


def block_rams(config: Config, family: Family, *, apart: bool = False) -> dict[str, float]:
    """Block RAMs of each unit that has some, in the family's unit; of a RAMB36 a RAMB18 is half.
    Units are kept ``apart`` or not."""
    result: dict[str, float] = {}
    for placed in memories(config, family, apart=apart):
        if placed.rams.blocks:
            result[placed.unit] = result.get(placed.unit, 0.0) + placed.rams.blocks
    return result
