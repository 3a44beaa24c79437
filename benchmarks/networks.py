"""Bundled networks on an accelerator: cycles, share of the array, what is left to the host.

    python benchmarks/networks.py [-c CONFIG] [--models dqn,unet] [--json | --write docs/results.md]

- config: the accelerator; without ``-c`` paper-plus, and paper-full for networks in the spelling of
  others, some of which have normalizations;
- cycles: of the simulator, all accelerator programs of a run together;
- array: multiply-adds of the accelerator's layers over cycles times multipliers;
- bound: of layers with multiply-adds, the cycles that no schedule can be faster than (the larger of
  what the multipliers and the bytes take) over the cycles that each takes alone;
- least: the same of the layer that is farthest from its bound, among layers of a million
  multiply-adds and more that aren't depthwise;
- host: layers that the host runs; conversions of numbers or of their layout are none;
- layer: the most that any layer's element differs from onnxruntime's, in steps of its scale, when
  both are fed onnxruntime's tensors; and the share of elements that differ in that layer;
- equal: the share of all outputs' elements that are those of onnxruntime's graph without fusion;
- itself: the same for onnxruntime's own graph with fusion;
- cosine: the least of all outputs, with onnxruntime's graph without fusion.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import vdla
from vdla.analysis.comparison import find_workload, measure
from vdla.analysis.ort import cosine, ort_run
from vdla.api.modules import random_inputs
from vdla.compiler.graph.types import Array
from vdla.compiler.placement import processor_layers
from vdla.compiler.targets.accelerator.operators.template import Operator
from vdla.isa.config import Config, load_config
from vdla.names.models import model_file, model_files

NETWORKS = (
    "resnet18", "mobilenet", "scenes", "dqn", "dcgan", "mobilenetv2", "efficientnet-lite0",
    "yolo-nano", "unet",
)  # fmt: skip
OTHERS = ("mobilenetv3", "resnet18-nhwc", "speech-bilstm", "audio-encoder")
CONFIGS = dict.fromkeys(NETWORKS, "paper-plus") | dict.fromkeys(OTHERS, "paper-full")
VTHREADS = 2
MARK, END = "<!-- BEGIN benchmarks/networks.py -->\n", "<!-- END -->"
LARGE = 1_000_000  # multiply-adds from which a layer counts for ``least``


@dataclass(frozen=True)
class Row:
    """A network's figures; ``cycles`` is None where the accelerator has no part in it."""

    network: str
    config: str
    cycles: int | None
    array: float
    bound: float
    least: float
    host: int
    largest: int
    share: float
    equal: float
    itself: float
    cosine: float


HEADS = ("network", "config", "cycles", "array", "bound", "least", "host", "layer", "differ",
         "equal", "itself", "cosine")  # fmt: skip


def figures(network: str, config: Config) -> Row:
    """Compiles, simulates and compares a network on random inputs."""
    module = vdla.compile(network, config)
    inputs = random_inputs(module)
    result = vdla.run(module, inputs)
    macs = sum(layer["macs"] for layer in module.metadata["layers"])
    array = macs / (result.cycles * config.macs_per_cycle) if result.cycles else 0.0
    layers = vdla.check(network, config=config, samples=1).layers
    plain, fused = (ort_run(model_file(network), inputs, fuse=fuse) for fuse in (False, True))
    return Row(
        network,
        config.name,
        result.cycles,
        array,
        *of_bound(network, config),
        len(processor_layers(module.metadata["placement"])[0]),
        max((layer.largest for layer in layers), default=0),
        max((layer.share for layer in layers), default=0.0),
        equal(result.outputs, plain),
        equal(fused, plain),
        min(cosine(result.outputs[name], plain[name]) for name in plain),
    )


def of_bound(network: str, config: Config) -> tuple[float, float]:
    """Share of their bounds that a network's layers attain, all together and the worst."""
    work = find_workload(model_files(network), config)
    layers = measure(work, config, (VTHREADS,)).layers
    cycles = sum(layer.measured[VTHREADS].cycles for layer in layers)
    large = [
        layer.bound_cycles / layer.measured[VTHREADS].cycles
        for layer, (_, op) in zip(layers, work.operators, strict=True)
        if layer.macs >= LARGE and not is_depthwise(op)
    ]
    total = sum(layer.bound_cycles for layer in layers) / cycles if cycles else 0.0
    return total, min(large, default=1.0)


def is_depthwise(op: Operator) -> bool:
    """Whether each output channel of a convolution sees one input channel."""
    groups, size = getattr(op.node, "groups", 1), op.template
    if groups == 1:
        return False
    pixels = size.batch * size.out_height * size.out_width
    return bool(op.macs == pixels * groups * prod(size.kernel))


def equal(got: Mapping[str, Array], want: Mapping[str, Array]) -> float:
    """The share of elements that are the same; floats of one scale differ by a step or not."""
    same = [np.isclose(got[name], want[name], rtol=1e-5, atol=1e-6) for name in want]
    return float(np.concatenate([each.ravel() for each in same]).mean())


def cells(row: Row) -> list[str]:
    """A row as text."""
    shares = [f"{100 * value:.1f} %" for value in (row.array, row.bound, row.least)]
    return [
        row.network,
        row.config,
        "" if row.cycles is None else f"{row.cycles:,}",
        *shares,
        str(row.host),
        str(row.largest),
        f"{100 * row.share:.4f} %",
        f"{100 * row.equal:.1f} %",
        f"{100 * row.itself:.1f} %",
        f"{row.cosine:.4f}",
    ]


def with_table(page: str, rows: Sequence[Row]) -> str:
    """A page with the table between its marks written anew."""
    lines = [HEADS, ["---", "---", *["---:"] * (len(HEADS) - 2)], *map(cells, rows)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    start, end = page.index(MARK) + len(MARK), page.index(END, page.index(MARK))
    return page[:start] + table + page[end:]


def main() -> None:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-c", "--config")
    parser.add_argument("--models", default=",".join(CONFIGS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", type=Path, metavar="FILE", help="rewrite the table in a page")
    options = parser.parse_args()
    names = options.models.split(",")
    configs = [load_config(options.config or CONFIGS.get(name, "paper-plus")) for name in names]
    rows = [figures(*each) for each in zip(names, configs, strict=True)]
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    elif options.write:
        options.write.write_text(with_table(options.write.read_text(), rows))
    else:
        table = Table(*HEADS)
        for row in rows:
            table.add_row(*cells(row))
        Console().print(table)


if __name__ == "__main__":
    main()
