"""Host time by the model against a clock, for the bundled networks on this machine's processor.

    python benchmarks/host_time.py [--models resnet18,…] [--steps] [--json]

Each network runs whole on the processor, on one thread; the shortest of some runs counts. The clock
and the memory's bandwidth that the model is given are measured first, by a chain of additions and
by a sum over an array that no cache holds. Nothing else is measured, and nothing is set for a
network.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass

import numpy as np

import vdla
from vdla.api.modules import random_inputs
from vdla.compiler import models
from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.targets.processor.timing.machine import Machine, machine_for
from vdla.compiler.targets.processor.timing.model import HostTime
from vdla.compiler.targets.processor.timing.stopwatch import bytes_per_second, clock_mhz
from vdla.runtime.executor import Executor

NETWORKS = [name for name in models.MODELS if name != "resnet18-convs"]
LEAST_RUNS, SECONDS = 10, 0.7  # of each network, one after another
ROUNDS = 3  # over all networks, so that other work disturbs none of them in all of its runs
BOUND = 0.20


@dataclass
class Row:
    """A network: seconds by the clock and by the model, and both of each step."""

    name: str
    measured: float
    modelled: float
    steps: list[tuple[str, tuple[str, ...], float, float]]

    @property
    def error(self) -> float:
        """The model's error, as a share of what was measured."""
        return self.modelled / self.measured - 1


class Network:
    """A network that is timed now and again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.executor = Executor(vdla.compile(name, device="cpu"), threads=1)
        self.inputs = random_inputs(self.executor.module)
        self.seconds, self.steps = np.inf, np.inf

    def run(self) -> None:
        """Runs for some time; the shortest run, and the shortest of each step, count."""
        end = time.perf_counter() + SECONDS
        runs = 0
        while runs < LEAST_RUNS or time.perf_counter() < end:
            result = self.executor.run(self.inputs)
            self.seconds = min(self.seconds, result.seconds)
            self.steps = np.minimum(self.steps, [step.seconds for step in result.steps])
            runs += 1

    def row(self, machine: Machine) -> Row:
        """Row of the table: the measured times, beside the model's."""
        model: HostTime = vdla.host_time(self.name, machine=machine)
        names = [step.name for step in self.executor.module.steps]
        clock = dict(zip(names, self.steps, strict=True))
        steps = [(s.name, s.operators, clock[s.name], s.seconds) for s in model.steps]
        return Row(self.name, self.seconds, model.seconds, steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(NETWORKS), help="default: all bundled ones")
    parser.add_argument("--steps", action="store_true", help="print each step, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try:
        machine = machine_for(NATIVE).at(clock_mhz(), bytes_per_second())
    except TargetError as error:
        sys.exit(str(error))
    networks = [Network(name) for name in arguments.models.split(",")]
    for _ in range(ROUNDS):
        for network in networks:
            print(network.name, file=sys.stderr)
            network.run()
    rows = [network.row(machine) for network in networks]
    mean = float(np.mean([abs(row.error) for row in rows]))
    if arguments.json:
        facts = {"clock_mhz": machine.clock_mhz, "bytes_per_second": machine.bytes_per_second}
        print(json.dumps({**facts, "mean": mean, "networks": [vars(row) for row in rows]}))
        return
    print(
        f"{machine.name} at {machine.clock_mhz:,.0f} MHz and {machine.bytes_per_second / 1e9:.1f} "
        "GB/s, both measured; one thread\n"
    )
    print("| network | measured, ms | modelled, ms | error |\n| --- | ---: | ---: | ---: |")
    for row in rows:
        print(
            f"| {row.name} | {1e3 * row.measured:.3f} | {1e3 * row.modelled:.3f} "
            f"| {100 * row.error:+.1f} % |"
        )
    print(f"\nmean of absolute errors: {100 * mean:.1f} %")
    for row in rows if arguments.steps else ():
        print(f"\n{row.name}: step, operators, measured and modelled in µs, ratio")
        for name, operators, clock, model in row.steps:
            print(
                f"{name[:40]:40} {'+'.join(operators)[:40]:40} {1e6 * clock:10.1f} "
                f"{1e6 * model:10.1f} {model / clock:6.2f}"
            )
    if mean > BOUND:
        sys.exit(f"expected a mean of at most {100 * BOUND:.0f} %, found {100 * mean:.1f} %")


if __name__ == "__main__":
    main()
