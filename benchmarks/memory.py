"""Share of a board's memory that LOADs get: bytes that arrive, of the chip's words in that time.

    python benchmarks/memory.py [-c ulx3s] [--ratio 2] [--bytes 65536]

Runs the RTL of the whole ULX3S, its SDRAM included, and checks that the simulator takes as many
cycles. Each row is a stream of LOADs of so long runs: one behind the other, each in the bank after
the last one's, or each in another row of the same bank. The columns are the controllers that work
on one request at once, and on two. With a ratio of 2 the chip has two clocks in a cycle.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from types import ModuleType

from rich.console import Console
from rich.table import Table

from vdla.analysis.case import Case
from vdla.analysis.machines import limit_of, run_on, simulate
from vdla.boards import find_module
from vdla.boards.soc.sdram import memory
from vdla.boards.virtual.core import BoardBench, build_library
from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.instructions import Finish, Instruction, Load, Mem
from vdla.isa.memory import Banks, Memory
from vdla.isa.program import Program
from vdla.names.configs import CLOCK_RATIO, resolve_on
from vdla.runtime.dram import whole_pages
from vdla.support.numbers import ceil_div

BOARD = "ulx3s"
RUNS = (16, 64, 256, 1024, 4096)  # bytes
REQUESTS = (1, 2)
CODE = 64 * PAGE_BYTES  # bytes for the stream, in front of the data


@dataclass(frozen=True)
class Stream:
    """LOADs of ``nbytes`` in all, in runs of ``run`` bytes, ``step`` bytes from one to the next."""

    run: int
    step: int
    nbytes: int

    def case(self, config: Config) -> Case:
        """The program, each LOAD of which fills half of INP at most."""
        entry = config.entry("inp")
        row = self.run // entry
        rows = max(config.inp_bytes // 2 // self.run, 1)
        instructions: list[Instruction] = []
        for number in range(self.nbytes // (rows * self.run)):
            instructions.append(
                Load(
                    memory=Mem.INP,
                    sram_base=number % 2 * rows * row,
                    dram_base=CODE + number * rows * self.step,
                    x_size=row,
                    y_size=rows,
                    z_size=1,
                    y_stride=self.step // entry,
                )
            )
        program = Program(config, [*instructions, Finish()])
        return Case.of(program, whole_pages(CODE + self.nbytes // self.run * self.step))


def share(bench: BoardBench, stream: Stream, of: Memory) -> float:
    """Share of the chip's words that a stream gets; the simulator agrees on every cycle.

    Raises:
        SystemExit: it doesn't.
    """
    case = stream.case(bench.config)
    simulated = simulate(case, of)
    rtl = run_on(bench, case, of, limit_of(simulated))
    if not (simulated.finish == rtl.finish).all():
        sys.exit(f"{stream}: expected {simulated.cycles} cycles, found {rtl.cycles}")
    cycles = int(rtl.finish[:-1].max()) + 1
    return stream.nbytes / (cycles * of.bytes_per_cycle)


def bench_of(
    module: ModuleType, config: Config, requests: int, console: Console
) -> tuple[BoardBench, Memory]:
    """The board with a controller that works on so many requests, and what it is to the core."""
    clocks = module.clocks_of(config)
    console.print(f"{clocks.hz / 1e6:g} MHz, the SDRAM's {clocks.sdram_hz / 1e6:g}")
    library = build_library(
        config, module.CHIP, clocks.hz, module.MULTIPLIER_BITS, requests, clocks.pads
    )
    behind = memory(module.CHIP, clocks.hz, config.port_bytes, requests, pads=clocks.pads)
    return BoardBench(config, library), behind


def steps(run: int, banks: Banks | None) -> dict[str, int]:
    """Bytes from one run to the next, by where that lies."""
    assert banks is not None
    bank, row = banks.row_bytes, banks.row_bytes * banks.count
    apart = {"in the next bank": bank, "in the same bank": row} if run <= bank else {}
    return {"right behind": run} | apart


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-c", "--config", default=BOARD)
    parser.add_argument("--ratio", type=int, default=1)
    parser.add_argument("--bytes", type=int, default=1 << 16)
    arguments = parser.parse_args()
    config = resolve_on(BOARD, arguments.config, [f"{CLOCK_RATIO}={arguments.ratio}"])
    module = find_module(BOARD)
    benches = {r: bench_of(module, config, r, Console(stderr=True)) for r in REQUESTS}
    table = Table("bytes of a run", "the next run", *(f"requests: {r}" for r in REQUESTS))
    for run in RUNS:
        for where, step in steps(run, benches[REQUESTS[0]][1].banks).items():
            nbytes = ceil_div(arguments.bytes, config.inp_bytes) * config.inp_bytes
            stream = Stream(run, step, nbytes)
            shares = (share(bench, stream, of) for bench, of in benches.values())
            table.add_row(f"{run:,}", where, *(f"{100 * s:.1f} %" for s in shares))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
