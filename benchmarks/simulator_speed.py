"""Simulated cycles per second on the ResNet-18 stream.

    python benchmarks/simulator_speed.py [--runs 5]

One core, with the loops compiled before.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from statistics import median

from rich.console import Console
from rich.table import Table

import vdla
from vdla import api, options
from vdla.isa.program import Program
from vdla.runtime.devices.named import module_config
from vdla.sim.machine import Run, run_stream
from vdla.sim.stream import Stream

PEERS = (
    ("VTA tsim (Verilator), ResNet-18", 31.4e6 / 227.73, "apache/tvm#4986"),
    ("SCALE-Sim v3, ResNet-18 layer 0", 485_840 / 108, "measured: 485,840 cycles in 108 s"),
    ("Gemmini, Verilator, 8 threads", 120e3, "NVlabs/GEM#11"),
)


def speed(run: Callable[[], Run], runs: int) -> tuple[int, float]:
    """Cycles of a run, and the median cycles per second."""
    run()
    rates = []
    for _ in range(runs):
        start = time.perf_counter()
        cycles = run().cycles
        rates.append(cycles / (time.perf_counter() - start))
    return cycles, median(rates)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core
    module = vdla.compile("resnet18")
    ready, _ = api.prepare(module, options.Run())
    ready.run(api.random_inputs(module))
    program = Program.from_bytes(module.programs["program0"], module_config(module))
    stream = Stream.of(program.config, program.instructions, program.base)
    table = Table("simulator", "Mcycles/s", "source")
    for name, numerics in (("vdla, with numerics", True), ("vdla, timing alone", False)):
        cycles, rate = speed(lambda: run_stream(stream, ready.dram, numerics=numerics), runs)
        table.add_row(name, f"{rate / 1e6:.2f}", f"this run: {cycles:,} cycles")
    for name, rate, source in PEERS:
        table.add_row(name, f"{rate / 1e6:.4f}", source)
    Console().print(table)


if __name__ == "__main__":
    main()
