"""Bundled networks on an accelerator: cycles, share of the array, what is left to the host.

    python benchmarks/networks.py [-c CONFIG] [--models dqn,unet] [--json]

- cycles: of the simulator, all accelerator programs of a run together;
- array: multiply-adds of the accelerator's layers over cycles times multipliers;
- host: layers that the host runs; conversions of numbers or of their layout are none;
- layer: the most that any layer's element differs from onnxruntime's, in steps of its scale, when
  both are fed onnxruntime's tensors; and the share of elements that differ;
- whole: the cosine of the first output and that of onnxruntime's graph without fusion.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

import vdla
from vdla.analysis.ort import cosine, ort_run
from vdla.compiler.placement import processor_layers
from vdla.isa.config import Config, load_config
from vdla.lookup import model_file, random_inputs

NETWORKS = (
    "resnet18", "mobilenet", "dqn", "dcgan", "mobilenetv2", "efficientnet-lite0", "yolo-nano",
    "unet",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A network's figures; ``cycles`` is None where the accelerator has no part in it."""

    network: str
    cycles: int | None
    array: float
    host: int
    largest: int
    share: float
    whole: float


def measure(network: str, config: Config) -> Row:
    """Compiles, simulates and compares a network on random inputs."""
    module = vdla.compile(network, config)
    inputs = random_inputs(module)
    result = vdla.run(module, inputs)
    macs = sum(layer["macs"] for layer in module.metadata["layers"])
    array = macs / (result.cycles * config.macs_per_cycle) if result.cycles else 0.0
    layers = vdla.check(network, config=config, samples=1).layers
    want = next(iter(ort_run(model_file(network), inputs, fuse=False).values()))
    return Row(
        network,
        result.cycles,
        array,
        len(processor_layers(module.metadata["placement"])[0]),
        max((layer.largest for layer in layers), default=0),
        max((layer.share for layer in layers), default=0.0),
        cosine(next(iter(result.outputs.values())), want),
    )


def main() -> None:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-c", "--config", default="paper")
    parser.add_argument("--models", default=",".join(NETWORKS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    config = load_config(options.config)
    rows = [measure(network, config) for network in options.models.split(",")]
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    table = Table("network", "cycles", "array", "host", "layer", "differ", "whole")
    for row in rows:
        cycles = "" if row.cycles is None else f"{row.cycles:,}"
        array = f"{100 * row.array:.1f} %"
        differ = f"{100 * row.share:.4f} %"
        table.add_row(
            row.network, cycles, array, str(row.host), str(row.largest), differ, f"{row.whole:.5f}"
        )
    Console().print(table)


if __name__ == "__main__":
    main()
