"""Features that the LUTs and flip-flops of each unit grow with: a few numbers that follow from the
config.

A unit's LUTs are those of its LUT RAMs, which are known (``structure.py``), and for each feature a
number that is fitted; so are its flip-flops. Each feature is something that ``hw/`` builds so many
times: a lane, a bit of an address, an option.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vdla.boards.flows.yosys import AROUND, CORE
from vdla.explore.area.added import (
    MICRO_OPS,
    REGISTERS,
    UNITS,
    Features,
    lanes_in_fabric,
    with_added,
)
from vdla.explore.area.families import Family
from vdla.explore.area.structure import QUEUES, SCRATCHPADS, Placed, command_bits, memories
from vdla.hw.fifo import SHALLOW
from vdla.hw.layout import beats, instruction_bits
from vdla.isa.config import Config
from vdla.isa.instructions import Alu, Gemm
from vdla.isa.options.lanes import alu_lanes, store_lanes
from vdla.isa.registers import INDEX_BITS
from vdla.isa.ring import Engine, ring_of

ONCE = "once"  # what a unit has whatever the config is
WORD = 32  # bits of a lane


def features(config: Config, family: Family, *, apart: bool = False) -> dict[str, Features]:
    """The features of each unit of a config's core, by the unit's name and the feature's.

    Units are kept ``apart`` or not: if not, what an engine doesn't read isn't kept for it.
    """
    placed = memories(config, family, apart=apart)
    units: dict[str, Features] = {
        AROUND: {ONCE: 1, "port bytes": config.port_bytes},
        CORE: {ONCE: 1},
        "counters": {ONCE: 1},
        "registers": {ONCE: 1},
        "DMA": {ONCE: 1, "burst bits": config.burst_beats.bit_length()},
        "fetch": _fetch(config),
        "LOAD": _load(config),
        "STORE": _store(config),
        "GEMM": _gemm(config),
        "ALU": _alu(config),
        Engine.COMPUTE.name: {},
        QUEUES: _queues(config, apart=apart),
        SCRATCHPADS: _scratchpads(config, placed),
    }
    for engine in _of_micro_ops(config):
        units[engine.name] = _pipeline(config, engine)
    for more in UNITS:
        units |= more(config)
    units = {unit: with_added(unit, own, config) for unit, own in units.items()}
    with_memories = {p.unit for p in placed}
    return {
        unit: {**_behind(placed, unit), **values} if unit in with_memories else values
        for unit, values in units.items()
    }


def lut_rams(config: Config, family: Family, *, apart: bool = False) -> dict[str, int]:
    """LUTs of each unit that are memories of it; units are kept ``apart`` or not."""
    result: dict[str, int] = {}
    for placed in memories(config, family, apart=apart):
        result[placed.unit] = result.get(placed.unit, 0) + placed.rams.luts
    return result


def registers(config: Config, family: Family, *, apart: bool = False) -> dict[str, int]:
    """Flip-flops of each unit that follow from the structure: vectors and beats that it keeps, and
    words read out of LUT RAMs a cycle after their address. Units are kept ``apart`` or not."""
    acc, port = WORD * config.block_out, 8 * config.port_bytes
    result = {
        "fetch": instruction_bits(config),  # the instruction at its head
        "LOAD": acc - port,  # beats of its entry
        "STORE": 2 * acc,  # a vector and its scales
        QUEUES: _command_bits(config, apart=apart),  # the oldest of each queue
        **{engine.name: _vectors(config, engine) for engine in _of_micro_ops(config)},
    }
    for more in REGISTERS:
        for unit, count in more(config).items():
            result[unit] = result.get(unit, 0) + count
    for placed in memories(config, family, apart=apart):
        memory, rams = placed.memory, placed.rams
        read = sum(map(len, memory.bits_read)) or memory.width * memory.reads
        count = 0 if memory.combinational or not rams.luts else read
        if placed.unit != SCRATCHPADS and not memory.combinational:
            count += 2 * read  # of a deep FIFO, the first and the latest entry
        result[placed.unit] = result.get(placed.unit, 0) + placed.count * count
    return result


def _vectors(config: Config, engine: Engine) -> int:
    """Bits of the vectors that a pipeline of micro-ops keeps: the accumulator and results before
    it, and the operands of GEMM and of ALU."""
    executor, acc = ring_of(config).executor, WORD * config.block_out
    gemm = 8 * (config.inp_entry + config.wgt_entry) * (executor[Gemm] == engine)
    has_alu = executor[Alu] == engine
    return gemm + acc * (5 if has_alu else 4)


def _command_bits(config: Config, *, apart: bool) -> int:
    """Bits of an instruction in front of each engine; units are kept ``apart`` or not."""
    word = instruction_bits(config) + INDEX_BITS
    engines = ring_of(config).engines
    return sum(word if apart else len(command_bits(config, engine)) for engine in engines)


def _fetch(config: Config) -> Features:
    return {
        ONCE: 1,
        "port bits": 8 * config.port_bytes,
        "burst bits": config.burst_beats.bit_length(),
    }


def _fifo(depth: int, width: int) -> Features:
    """A deep one keeps two entries beside its memory, and chooses."""
    bits = depth.bit_length()
    return {"FIFO address bits": bits, "deep FIFO bits": width if depth > SHALLOW else 0}


def _load(config: Config) -> Features:
    port = 8 * config.port_bytes
    return {
        ONCE: 1,
        **_fifo(config.read_buffer_beats, port),
        "port bits": port,
        "ACC bits": WORD * config.block_out,
        "partial entries": sum(8 * config.entry(n) for n in ("inp", "wgt") if beats(config, n) > 1),
        "columns": sum(beats(config, n) for n in ("inp", "wgt", "acc")),
        "address bits": _address_bits(config),
        "queue bits": config.reads_in_flight.bit_length(),
    }


def _store(config: Config) -> Features:
    port, acc = 8 * config.port_bytes, WORD * config.block_out
    return {
        ONCE: 1,
        "port bytes": config.port_bytes,
        "lanes that multiply": store_lanes(config),
        "ACC bits": acc,
        "columns": config.acc_entry // config.port_bytes,
        **_fifo(4 * config.acc_entry // config.port_bytes, port),
        "address bits": config.index_bits("acc"),
    }


def _gemm(config: Config) -> Features:
    lanes, with_dsps = config.block_in, config.block_out - lanes_in_fabric(config)
    return {
        "multiply-adds in DSPs": lanes * with_dsps,
        "lanes with DSPs": with_dsps,
        "input lanes": lanes,
    }


def _alu(config: Config) -> Features:
    lanes = config.block_out
    return {
        ONCE: 1,
        "lanes": lanes,
        "lanes that multiply": alu_lanes(config),
        "lanes beside GEMM": lanes * (len(_of_micro_ops(config)) == 1),
    }


def _of_micro_ops(config: Config) -> list[Engine]:
    """The engines of micro-ops: COMPUTE, and another one where ALU has its own."""
    executor = ring_of(config).executor
    return list(dict.fromkeys((executor[Gemm], executor[Alu])))


def fitted_as(config: Config) -> Mapping[str, str]:
    """Units that are built as another one is, and have its coefficients."""
    first, *others = _of_micro_ops(config)
    return {other.name: first.name for other in others}


def _pipeline(config: Config, engine: Engine) -> Features:
    """A pipeline of micro-ops, of GEMM, of ALU, or of both."""
    executor = ring_of(config).executor
    gemm, alu = executor[Gemm] == engine, executor[Alu] == engine
    acc = WORD * config.block_out
    read = (("inp", "wgt") if gemm else ()) + ("acc", "acc", "uop")
    address = sum(config.index_bits(name) for name in read)
    own: Features = {
        ONCE: 1,
        "GEMM": gemm,
        "address bits": address,
        "ACC bits": acc,
        "ACC bits, sums without ALU": acc * (not alu),
        "ALU": alu,
        "address bits, ALU": address * alu,
    }
    return with_added(MICRO_OPS, own, config, engine.name)


def _queues(config: Config, *, apart: bool) -> Features:
    ring = ring_of(config)
    engines, tokens = len(ring.engines), len(ring.token_queues)
    bits = _command_bits(config, apart=apart)
    return {
        "engines": engines,
        "engines, FIFO address bits": engines * config.command_queue.bit_length(),
        "engines, deep FIFO bits": bits * (config.command_queue > SHALLOW),
        "token queues": tokens,
        "token queues, bits": tokens * config.token_queue.bit_length(),
    }


def _behind(placed: Sequence[Placed], unit: str) -> Features:
    """Features of a unit where RAMs of its memories lie behind each other."""
    rams = [p.rams for p in placed if p.unit == unit]
    return {
        "bits chosen": sum(r.chosen for r in rams),
        "rows decoded": sum(r.decoded for r in rams),
    }


def _scratchpads(config: Config, placed: Sequence[Placed]) -> Features:
    in_luts = sum(
        p.count * p.memory.width * p.memory.reads
        for p in placed
        if p.unit == SCRATCHPADS and p.rams.luts
    )
    return {"bits read out of LUTs": in_luts}


def _address_bits(config: Config) -> int:
    return sum(config.index_bits(name) for name in ("inp", "wgt", "acc", "uop"))
