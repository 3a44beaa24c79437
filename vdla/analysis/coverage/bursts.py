"""Bursts of LOAD and STORE by their length, and by what ended them; what STORE writes on chip."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.instructions import Load, Mem, Store, stored_memories
from vdla.sim.stream import Stream

MOVES = (Load, Store)
BURSTS = ("of one beat", "of some beats", "as long as it may be")
RUNS = ("of a row", "of an entry")
FORMS = (Mem.ACC, Mem.ACC8)  # in which a STORE writes DRAM
CUTS = ("ends with its run", "ends at a page", "ends at its longest")


def burst_goals(config: Config) -> Iterator[str]:
    """The goals of LOAD and STORE; the longest burst's only where it has more than two beats."""
    for cls in MOVES:
        longest = [BURSTS[2], CUTS[2]] if config.burst_beats > 2 else []
        for kind in (*BURSTS[:2], *CUTS[:2], *longest, *RUNS):
            yield f"bursts: {cls.mnemonic} {kind}"
    for memory in stored_memories(config):
        if memory not in FORMS:
            yield from (f"bursts: none, but beats to {memory.name} {kind}" for kind in RUNS)


def kept_in(each: Load | Store) -> Mem | None:
    """The memory on chip that a STORE writes; None where it writes DRAM, and of a LOAD."""
    return Mem(each.memory) if isinstance(each, Store) and each.stays_on_chip else None


def bursts(stream: Stream) -> Iterator[str]:
    """The bursts that every LOAD and STORE of a stream is cut into."""
    config = stream.config
    page, most = PAGE_BYTES // config.port_bytes, config.burst_beats
    for each in stream.instructions:
        if not isinstance(each, MOVES):
            continue
        name = f"bursts: {each.mnemonic}"
        kept = kept_in(each)
        for beat, left, dense in runs(each, config):
            kind = RUNS[0] if dense else RUNS[1]
            if kept is not None:
                yield f"bursts: none, but beats to {kept.name} {kind}"
                continue
            yield f"{name} {kind}"
            while left:
                length = min(left, most, page - beat % page)
                size = 0 if length == 1 else 2 if length == most else 1
                yield f"{name} {BURSTS[size]}"
                beat, left = beat + length, left - length
                if not left:
                    yield f"{name} {CUTS[0]}"
                elif beat % page == 0:
                    yield f"{name} {CUTS[1]}"
                elif length == most:
                    yield f"{name} {CUTS[2]}"


def runs(each: Load | Store, config: Config) -> Iterator[tuple[int, int, bool]]:
    """First beat, beats, and whether it is a row, of each run in DRAM, or in INP."""
    moved = each.written if isinstance(each, Store) else Mem(each.memory).name.lower()
    entry = config.entry(moved) // config.port_bytes
    dense = each.x_stride == 1
    columns = range(min(each.x_size, 1) if dense else each.x_size)
    for z, y, x in product(range(each.z_size), range(each.y_size), columns):
        offset = z * each.z_stride + y * each.y_stride + x * each.x_stride
        beat = each.dram_base // config.port_bytes + offset * entry
        yield beat, entry * (each.x_size if dense else 1), dense
