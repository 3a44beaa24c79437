"""A whole network on every bundled config.

    python benchmarks/configs.py [--model resnet18]

Cycles, time at the config's clock, and GOPS attained.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

import vdla
from vdla import api
from vdla.analysis.published import VTA_RESNET18_CYCLES
from vdla.isa.config import config_names, load_config

# Cycles of ResNet-18 v1 on VTA's cycle-accurate Chisel (tsim).
PEERS = (
    ("VTA, pipelined", "16×16", VTA_RESNET18_CYCLES, "zero latency; tvm-vta#30"),
    ("VTA, before", "16×16", 31.4e6, "tsim; apache/tvm#4986"),
)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet18")
    model = parser.parse_args().model
    table = Table("config", "block", "cycles", "ms", "GOPS", "of peak", "memory")
    for name in config_names():
        config = load_config(name)
        module = vdla.compile(model, config)
        cycles = vdla.run(module, api.random_inputs(module)).cycles
        assert cycles is not None
        operations = 2 * sum(layer["macs"] for layer in module.metadata["layers"])
        seconds = cycles / (config.clock_mhz * 1e6)
        gops = operations / seconds / 1e9
        table.add_row(
            name,
            f"{config.block_in}×{config.block_out}",
            f"{cycles:,}",
            f"{1e3 * seconds:.1f} {config.at_clock}",
            f"{gops:.1f}",
            f"{100 * gops / config.peak_gops:.1f} %",
            config.memory.name,
        )
    if model == "resnet18":
        table.add_section()
        for name, block, cycles, source in PEERS:
            table.add_row(name, block, f"{cycles:,.0f}", "", "", "", source)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
