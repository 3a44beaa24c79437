"""The worked example of docs/timing.md: ``python docs/timing_example.py [KEY=VALUE …]``.

Prints a program of config ``tiny`` and what every unit does in each cycle. The program loads a
micro-op, a weight tile and two activation vectors, multiplies, and stores the result requantized.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from vdla.isa.asm import assemble, format_instruction
from vdla.isa.config import load_config
from vdla.sim.stream import Stream, memory_image
from vdla.sim.timing.constants import CAUSES
from vdla.sim.timing.machine import Clock
from vdla.sim.timing.memory import BY_FETCH, BY_LOAD
from vdla.sim.timing.state import Machine

SOURCE = """
.base 0x200
.uop 0x0 first=1 dst=0 src=0 wgt=0
.data 0x10 01020304 05060708
.data 0x40 01000000 00010000 00000100 00000001
LOAD memory=UOP dram_base=0x0 x_size=1 y_size=1 z_size=1
LOAD memory=WGT dram_base=0x40 x_size=1 y_size=1 z_size=1
LOAD memory=INP dram_base=0x10 x_size=2 y_size=1 z_size=1 push_next
GEMM pop_prev uop_count=1 extent_0=2 dst_0=1 src_0=1 init=ZERO push_next
STORE pop_prev memory=ACC8 sram_base=0 dram_base=0x80 x_size=2 y_size=1 z_size=1 scale_base=8
FINISH
"""
SETTINGS = ("memory.latency=4",)
COLUMNS = (
    "cycle | bus | fetch: requested arrived dispatched | LOAD: requested arrived consumed cause | "
    "COMPUTE: F1 READ writes cause | STORE: reads level bursts answered cause"
)


def main(settings: Sequence[str]) -> None:
    """Prints the program, its starts and finishes, and one line per cycle."""
    config = load_config("tiny", [*SETTINGS, *settings])
    program = assemble(SOURCE, config)
    dram = memory_image(program, 1 << 10)
    stream = Stream.of(config, program.instructions, program.base)
    whole = Clock(stream, dram, stepped=True)
    print(f"config {config.name}, memory {config.memory.name}\n")
    for index, each in enumerate(program.instructions):
        start, finish = whole.start[index], whole.finish[index]
        print(f"{index}  start {start:>3}  finish {finish:>3}  {format_instruction(each)}")
    print("\n" + COLUMNS)
    before = Clock(stream, dram, until=0).state
    for cycle in range(whole.cycles):
        after = Clock(stream, dram, stepped=True, until=cycle + 1).state
        print(_line(cycle, before, after))
        before = after


def _line(cycle: int, before: Machine, after: Machine) -> str:
    """A cycle: the state as its end leaves it, pipeline stages as its start found them."""
    causes = [CAUSES[cause] for cause in after.engines.cause]
    stages = [before.compute.f1.row, before.compute.read.row]
    f1, read = ("." if row < 0 else row for row in stages)
    vector = "v" if after.store.requantizer.tail > before.store.requantizer.tail else "."
    fetched, loaded = after.memory.arrived[[BY_FETCH, BY_LOAD]]
    return (
        f"{cycle:>3} | {_bus(before, after)} | "
        f"{after.fetch.requested:>3} {fetched:>3} {after.fetch.dispatched:>2} | "
        f"{after.load.requested:>2} {loaded:>2} {after.load.consumed:>2} {causes[0]:<6} | "
        f"{f1} {read} {before.compute.writes & 1} {causes[1]:<6} | {vector} "
        f"{after.store.level} {after.store.bursts.opened} {after.memory.answers.head} {causes[2]}"
    )


def _bus(before: Machine, after: Machine) -> str:
    """Whose beat moved: fetch's, LOAD's, or one that is written."""
    arrived = after.memory.arrived - before.memory.arrived
    if arrived.any():
        return "F" if arrived[BY_FETCH] else "L"
    return "W" if after.memory.bus_free > before.memory.bus_free else "."


if __name__ == "__main__":
    main(sys.argv[1:])
