"""Costs of a board's memory for a network, and what schedules that know it win back.

    python benchmarks/board_memory.py [--models resnet18,mobilenet] [--configs ulx3s,ulx3s-wide]

Three memories: the one that these configs had before boards' memories were modelled (64 cycles, as
wide as the port), the SDRAM behind a controller that works on one request at a time and refreshes
before the next, and the SDRAM behind the board's own controller. Each runs schedules that were
chosen for the first memory, and schedules that were chosen for itself.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

import vdla
from vdla.isa.config import Config, load_config
from vdla.isa.memory import Memory


def memories(config: Config) -> dict[str, Config]:
    """The config in front of each memory, by the memory's name."""
    single = ["memory.banks.requests=1", "memory.banks.refreshes_put_off=0"]
    return {
        "64 cycles, a beat a cycle": replace(config, memory=Memory(64, config.port_bytes)),
        "SDRAM, one request": config.override(single),
        "SDRAM, the board's": config,
    }


def cycles(model: str, config: Config) -> dict[str, tuple[int, int]]:
    """Cycles on each memory, with schedules for the first of them and with its own."""
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first.vdla"
        configs = memories(config)
        vdla.compile(model, config=next(iter(configs.values()))).save(first)
        for name, behind in configs.items():
            print(f"{model} on {config.name}: {name}", file=sys.stderr)
            runs = (vdla.run(each, config=behind) for each in (first, model))
            known, own = (run.cycles for run in runs)
            result[name] = (known, own)
    return result


def main() -> None:
    """Prints a table per config."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--models", default="resnet18")
    parser.add_argument("--configs", default="ulx3s,ulx3s-wide")
    arguments = parser.parse_args()
    for config in map(load_config, arguments.configs.split(",")):
        table = Table(title=f"{config.name}, milliseconds {config.at_clock}")
        for column in ("model", "memory", "schedules for the first", "its own", "won back"):
            table.add_column(column, justify="left" if column in ("model", "memory") else "right")
        for model in arguments.models.split(","):
            for name, pair in cycles(model, config).items():
                first, own = (each / config.clock_mhz / 1000 for each in pair)
                table.add_row(model, name, f"{first:.1f}", f"{own:.1f}", f"{1 - own / first:.1%}")
        Console().print(table)


if __name__ == "__main__":
    main()
