"""Costs of slower memory for a network, with one virtual thread and with two.

    python benchmarks/latency_sweep.py [-c CONFIG] [--model resnet18] [--latency 0,32,64,128,256]

The layers are measured alone and cold, the network as one stream, in which a layer's weights load
while the one before it computes. The compiler chooses schedules anew at every latency.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

import vdla
from vdla import api
from vdla.analysis.published import VTA_RESNET18_CYCLES, VTA_RESNET18_SOURCE
from vdla.isa.config import Config, load_config

THREADS = (1, 2)


def network_cycles(model: str, config: Config, vthreads: int) -> int:
    """Cycles of the whole network in one stream."""
    module = vdla.compile(model, config, vthreads=vthreads)
    cycles = vdla.run(module, api.random_inputs(module)).cycles
    assert cycles is not None
    return cycles


def gain(without: int, hidden: int) -> tuple[str, str, str]:
    """Cells: cycles without and with hiding, and how much faster that is."""
    return f"{without:,}", f"{hidden:,}", f"{without / hidden:.3f}×"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-c", "--config", default="paper")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--latency", default="0,32,64,128,256")
    arguments = parser.parse_args()
    latencies = sorted(map(int, arguments.latency.split(",")))
    config = load_config(arguments.config)
    sweep = api.sweep(arguments.model, config, THREADS, latencies=latencies)
    table = Table("latency", "layers alone, 1", "2", "2 gains", "one stream, 1", "2", "2 gains")
    result = []
    for point in sweep.points:
        slower = config.override([f"memory.latency={point.latency}"])
        alone = [point.cycles(v) for v in THREADS]
        stream = [network_cycles(arguments.model, slower, v) for v in THREADS]
        result.append((point.latency, [*alone, *stream]))
        table.add_row(str(point.latency), *gain(*alone), *gain(*stream))
    table.add_section()
    slowest = result[-1]
    for latency, cycles in result[:-1]:
        losses = [f"{100 * (b / a - 1):+.2f} %" for a, b in zip(cycles, slowest[1], strict=True)]
        table.add_row(f"{latency} → {slowest[0]}", *losses[:2], "", *losses[2:], "")
    console = Console(width=110)
    where = f"{config.name}, {config.memory.bytes_per_cycle} B/cycle"
    console.print(f"{arguments.model} on {where}: cycles by memory latency and virtual threads")
    console.print(table)
    if arguments.model == "resnet18":
        console.print(f"{VTA_RESNET18_CYCLES:,} cycles: {VTA_RESNET18_SOURCE}")
    console.print("We found no peer that publishes figures over memory latency.")


if __name__ == "__main__":
    main()
