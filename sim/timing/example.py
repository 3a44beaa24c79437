"""The worked example of docs/timing.md: ``python -m vdla.sim.timing.example [KEY=VALUE …]``.

Prints a program of config ``tiny`` and what every unit does in each cycle. The program loads a
micro-op, a weight tile and two activation vectors, multiplies, and stores the result requantized.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from vdla.isa.asm import assemble, format_instruction
from vdla.isa.config import load_config
from vdla.sim.stream import Stream, memory_image
from vdla.sim.timing.machine import Clock
from vdla.sim.timing.memory import Registers
from vdla.sim.timing.registers import (
    C_F1,
    C_READ,
    C_WRITE_MASK,
    CAUSE,
    CAUSES,
    F_ARRIVED,
    F_DISPATCHED,
    F_REQUESTED,
    L_ARRIVED,
    L_CONSUMED,
    L_REQUESTED,
    ST_BURSTS,
    ST_CREDIT,
    ST_EMIT_TAIL,
    ST_LEVEL,
    ST_RESPONDED,
    U_ROW,
)

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
        begun, ended = whole.begun[index], whole.ended[index]
        print(f"{index}  start {begun:>3}  finish {ended:>3}  {format_instruction(each)}")
    print("\n" + COLUMNS)
    before = Clock(stream, dram, until=0).registers
    for cycle in range(whole.cycles):
        after = Clock(stream, dram, stepped=True, until=cycle + 1).registers
        print(_line(cycle, before, after))
        before = after


def _line(cycle: int, before: Registers, after: Registers) -> str:
    """A cycle: registers as its end leaves them, pipeline stages as its start found them."""
    moved = after - before
    bus = "F" if moved[F_ARRIVED] else "L" if moved[L_ARRIVED] else "."
    if moved[ST_CREDIT] > 0 or (moved[ST_LEVEL] < 0):
        bus = "W"
    causes = [CAUSES[after[CAUSE + engine]] for engine in range(3)]
    stages = ["." if before[at + U_ROW] < 0 else before[at + U_ROW] for at in (C_F1, C_READ)]
    reads = "v" if moved[ST_EMIT_TAIL] else "."
    return (
        f"{cycle:>3} | {bus} | "
        f"{after[F_REQUESTED]:>3} {after[F_ARRIVED]:>3} {after[F_DISPATCHED]:>2} | "
        f"{after[L_REQUESTED]:>2} {after[L_ARRIVED]:>2} {after[L_CONSUMED]:>2} {causes[0]:<6} | "
        f"{stages[0]} {stages[1]} {before[C_WRITE_MASK] & 1} {causes[1]:<6} | "
        f"{reads} {after[ST_LEVEL]} {after[ST_BURSTS]} {after[ST_RESPONDED]} {causes[2]}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
