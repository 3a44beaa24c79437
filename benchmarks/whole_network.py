"""Whole networks as one stream: cycles, and where those that no multiply-add needed went.

    python benchmarks/whole_network.py [-c CONFIG] [--models resnet18,mobilenet]

COMPUTE's cycles are told apart by what it worked on or waited for; "lanes left empty" are GEMM's
cycles beyond multiply-adds over multipliers: channels that fill no block, edges, a depthwise
convolution's diagonal. A second run has a memory without latency, as VTA's simulator has.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

import vdla
from vdla import api
from vdla.analysis.published import VTA_RESNET18_CYCLES, VTA_RESNET18_SOURCE
from vdla.isa.config import Config, load_config
from vdla.isa.instructions import Alu, Gemm
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor
from vdla.sim.machine import Run


@dataclass(frozen=True)
class Whole:
    """A network's run, its multiply-adds, and when its second layer's first instruction starts."""

    config: Config
    run: Run
    macs: int
    second_layer: int

    def steps(self, kind: type[Gemm] | type[Alu]) -> int:
        """Micro-ops of all instructions of a kind: cycles in which COMPUTE works on them."""
        return sum(i.steps() for i in self.run.instructions if isinstance(i, kind))

    def parts(self) -> dict[str, float]:
        """COMPUTE's cycles by purpose or cause; they add up to all."""
        needed = self.macs / self.config.macs_per_cycle
        causes = self.run.causes["COMPUTE"]
        return {
            "multiply-adds": needed,
            "lanes left empty": self.steps(Gemm) - needed,
            "ALU": self.steps(Alu),
            **{f"waits: {cause}": n for cause, n in causes.items() if cause != "busy"},
        }


def measure(model: str, config: Config) -> Whole:
    """Compiles a bundled network and simulates its one program."""
    module = vdla.compile(model, config)
    ready = Executor(module, SimDevice(config, numerics=False))
    (step,) = (s for s in ready.run(api.random_inputs(module)).steps if s.device is not None)
    run = step.device.trace
    runs = module.metadata["streams"][step.name]["layers"]
    macs = sum(layer["macs"] for layer in module.metadata["layers"])
    return Whole(config, run, macs, int(run.start[runs[0][1]]))


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-c", "--config", default="paper")
    parser.add_argument("--models", default="resnet18,mobilenet")
    arguments = parser.parse_args()
    config = load_config(arguments.config)
    console = Console()
    for model in arguments.models.split(","):
        result = {
            name: measure(model, chosen)
            for name, chosen in (
                (config.memory.name, config),
                ("0 cycles", config.override(["memory.latency=0"])),
            )
        }
        table = Table("", *(f"memory {name}" for name in result), title=f"{model} on {config.name}")
        totals = [whole.run.cycles for whole in result.values()]
        for part in next(iter(result.values())).parts():
            pairs = [(whole.parts()[part], whole.run.cycles) for whole in result.values()]
            table.add_row(part, *(f"{n:,.0f} ({100 * n / of:.2f} %)" for n, of in pairs))
        table.add_section()
        table.add_row("cycles", *(f"{n:,}" for n in totals))
        after = [w.run.cycles - w.second_layer for w in result.values()]
        table.add_row("from the second layer on", *(f"{n:,}" for n in after))
        if model == "resnet18":
            less = (f"{100 * (1 - n / VTA_RESNET18_CYCLES):.1f} % fewer" for n in after)
            table.add_row(f"VTA: {VTA_RESNET18_CYCLES:,}", *less)
        console.print(table)
    console.print(f"VTA: {VTA_RESNET18_SOURCE}, without its first layer")


if __name__ == "__main__":
    main()
