"""Features that the LUTs and flip-flops of each unit grow with: a few numbers that follow from the
config.

A unit's LUTs are those of its LUT RAMs, which are known (``structure.py``), and for each feature a
number that is fitted; so are its flip-flops. Each feature is something that ``hw/`` builds so many
times: a lane, a bit of an address, an option.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vdla.boards.flows.yosys import AROUND, CORE
from vdla.explore.area.families import Family
from vdla.explore.area.structure import QUEUES, SCRATCHPADS, Placed, command_bits, memories
from vdla.hw.fifo import SHALLOW
from vdla.hw.layout import beats, instruction_bits
from vdla.isa.config import Config
from vdla.isa.options.fabric import fabric_lanes
from vdla.isa.options.forwarding import forwards
from vdla.isa.options.reciprocals import reciprocal_units
from vdla.isa.options.tables import tables
from vdla.isa.options.vector import has_vector_engine
from vdla.isa.options.window import window_rows, window_taps
from vdla.isa.registers import INDEX_BITS
from vdla.isa.ring import ring_of

ONCE = "once"  # what a unit has whatever the config is
FITTED_AS = {"VECTOR": "COMPUTE"}  # units that are built alike have the same coefficients
WORD = 32  # bits of a lane

Features = Mapping[str, float]


def features(config: Config, family: Family, *, apart: bool = False) -> dict[str, Features]:
    """The features of each unit of a config's core, by the unit's name and the feature's.

    Units are kept ``apart`` or not: if not, what an engine doesn't read isn't kept for it.
    """
    placed = memories(config, family, apart=apart)
    vector = has_vector_engine(config)
    units = {
        AROUND: {ONCE: 1, "port bytes": config.port_bytes},
        CORE: {ONCE: 1, "vector engine": vector},
        "counters": {ONCE: 1, "vector engine": vector},
        "registers": {ONCE: 1, "vector engine": vector},
        "DMA": {ONCE: 1, "burst bits": config.burst_beats.bit_length()},
        "fetch": _fetch(config),
        "LOAD": _load(config),
        "STORE": _store(config),
        "GEMM": _gemm(config),
        "ALU": _alu(config),
        "COMPUTE": _pipeline(config, gemm=True, alu=not vector),
        QUEUES: _queues(config, apart=apart),
        SCRATCHPADS: _scratchpads(config, placed),
    }
    if vector:
        units["VECTOR"] = _pipeline(config, gemm=False, alu=True)
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
    held = max(acc, 8 * config.inp_entry * forwards(config)) - port  # beats of LOAD's entry
    result = {
        "LOAD": held,
        "STORE": 2 * acc,  # a vector and its scales
        "COMPUTE": acc * (2 if has_vector_engine(config) else 1),  # the last results
        "VECTOR": acc * has_vector_engine(config),
    }
    for placed in memories(config, family, apart=apart):
        memory, rams = placed.memory, placed.rams
        read = sum(map(len, memory.bits_read)) or memory.width * memory.reads
        count = 0 if memory.combinational or not rams.luts else read
        if placed.unit != SCRATCHPADS and not memory.combinational:
            count += 2 * read  # of a deep FIFO, the first and the latest entry
        result[placed.unit] = result.get(placed.unit, 0) + placed.count * count
    return result


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
    port, vector = 8 * config.port_bytes, has_vector_engine(config)
    acc = WORD * config.block_out
    return {
        ONCE: 1,
        **_fifo(config.read_buffer_beats, port),
        "port bits": port,
        "ACC bits": acc,
        "ACC bits, vector engine": acc * vector,
        "partial entries": sum(8 * config.entry(n) for n in ("inp", "wgt") if beats(config, n) > 1),
        "columns": sum(beats(config, n) for n in ("inp", "wgt", "acc")),
        "address bits": _address_bits(config),
        "forwarding": forwards(config),
        "INP bits, forwarding": 8 * config.inp_entry * forwards(config),
        "tables": bool(tables(config)),
        "queue bits": config.reads_in_flight.bit_length(),
    }


def _store(config: Config) -> Features:
    port, acc = 8 * config.port_bytes, WORD * config.block_out
    return {
        ONCE: 1,
        "port bytes": config.port_bytes,
        "ACC bits": acc,
        "columns": config.acc_entry // config.port_bytes,
        **_fifo(4 * config.acc_entry // config.port_bytes, port),
        "address bits": config.index_bits("acc"),
        "forwarding": forwards(config),
        "INP address bits, forwarding": config.index_bits("inp") * forwards(config),
        "vector engine": has_vector_engine(config),
    }


def _gemm(config: Config) -> Features:
    in_fabric, with_dsps = fabric_lanes(config), config.block_out - fabric_lanes(config)
    lanes, window = config.block_in, 2 * window_taps(config) * window_rows(config)
    seen = min(config.block_out, config.block_in) // 2 * min(window, lanes)
    return {
        "multiply-adds in DSPs": lanes * with_dsps,
        "lanes with DSPs": with_dsps,
        "multiply-adds in the fabric": lanes * in_fabric,
        "lanes in the fabric": in_fabric,
        "input lanes": lanes,
        "input lanes, fabric": lanes * bool(in_fabric),
        "lanes seen in the window": seen,
        "lanes seen in the window, fabric": seen * in_fabric / config.block_out,
        "lanes kept in the window": max(window_taps(config) - 1, 0) * window_rows(config) * lanes,
    }


def _alu(config: Config) -> Features:
    lanes = config.block_out
    return {
        ONCE: 1,
        "lanes": lanes,
        "lanes, tables": lanes * bool(tables(config)),
        "lanes, reciprocals": lanes * bool(reciprocal_units(config)),
        "lanes beside GEMM": lanes * (1 - has_vector_engine(config)),
    }


def _pipeline(config: Config, *, gemm: bool, alu: bool) -> Features:
    """A pipeline of micro-ops: COMPUTE, or VECTOR, which has no GEMM."""
    acc = WORD * config.block_out
    read = (("inp", "wgt") if gemm else ()) + ("acc", "acc", "uop")
    units = reciprocal_units(config) * alu
    address = sum(config.index_bits(name) for name in read)
    return {
        ONCE: 1,
        "GEMM": gemm,
        "address bits": address,
        "ACC bits": acc,
        "ACC bits, sums without ALU": acc * (not alu),
        "ALU": alu,
        "address bits, ALU": address * alu,
        "window": bool(window_taps(config)) * gemm,
        "second row": (window_rows(config) - 1) * gemm,
        "reciprocals": bool(units),
        "reciprocal units": units,
        "ACC bits, reciprocals": acc * bool(units),
    }


def _queues(config: Config, *, apart: bool) -> Features:
    ring = ring_of(config)
    engines, tokens = len(ring.engines), len(ring.token_queues)
    word = instruction_bits(config) + INDEX_BITS
    bits = sum(word if apart else len(command_bits(config, e)) for e in ring.engines)
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
    return {
        "bits read out of LUTs": in_luts,
        "table address bits": config.index_bits("tab") if tables(config) else 0,
    }


def _address_bits(config: Config) -> int:
    return sum(config.index_bits(name) for name in ("inp", "wgt", "acc", "uop"))
