"""Gains by the options of a config: cycles of whole networks with none, each alone, all of them.

    python benchmarks/options.py [-c CONFIG] [--models resnet18,mobilenet] [--area] [--json]

- cycles: of the simulator, all accelerator programs of a run together;
- array: multiply-adds of the accelerator's layers over cycles times multipliers, with all options;
- won per LUT, with ``--area``: the cycles that an option saves over the LUTs that it adds, by yosys
  for 7-series, two minutes for each choice of options.

``benchmarks/area.py --options`` prints all that they cost. ResNet-50 and ResNeXt-50 are built for
the run, with seeded weights.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import onnx
from rich.console import Console
from rich.table import Table

import vdla
from vdla.api.modules import random_inputs
from vdla.boards.flows.yosys import Flat, area, total
from vdla.compiler.graph.window import Window
from vdla.compiler.models import networks
from vdla.compiler.models.builder import Builder
from vdla.compiler.models.quantizer import quantize_model
from vdla.explore.area.mapping import netlist
from vdla.isa.config import Config, load_config
from vdla.names.models import model_file

OPTIONS = {
    "none": (),
    "forwarding": ("forwarding=1",),
    "window": ("window_taps=3",),
    "two rows": ("window_taps=3", "window_rows=2"),
    "vector": ("vector_engine=1",),
    "all": ("forwarding=1", "window_taps=3", "window_rows=2", "vector_engine=1"),
}
GROUPS, WIDTH = 32, 4  # of ResNeXt-50: groups of a convolution, channels of each in the first stage


def resnext50() -> onnx.ModelProto:
    """ResNeXt-50 32x4d (Xie et al., CVPR 2017), for 224x224 images."""
    b = Builder("resnext50", 1611, networks.calibration(networks.IMAGE)[:1])
    x = b.relu(b.conv("conv1", "input", 64, Window.square(7, 2)))
    x = b.max_pool("maxpool", x, Window.square(3, 2))
    for stage, count in enumerate((3, 4, 6, 3), start=1):
        wide, channels = GROUPS * WIDTH << (stage - 1), 128 << stage
        for block in range(count):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = b.relu(b.conv(f"{name}.conv1", x, wide, Window.square(1)))
            window = Window.square(3, stride)
            y = b.relu(b.conv(f"{name}.conv2", y, wide, window, groups=GROUPS))
            y = b.conv(f"{name}.conv3", y, channels, Window.square(1), gain=0.4)
            if block == 0:
                window = Window.square(1, stride)
                x = b.conv(f"{name}.downsample", x, channels, window, gain=0.8)
            x = b.relu(b.add(f"{name}.add", y, x))
    x = b.flatten("flatten", b.global_pool("avgpool", x))
    return b.model(b.classifier("fc", x, 1000))


BUILT: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "resnet50": networks.resnet50,
    "resnext50": resnext50,
}
NETWORKS = ("resnet18", "resnet50", "resnext50", "mobilenet", "mobilenetv2", "efficientnet-lite0")


@dataclass(frozen=True)
class Row:
    """A network's cycles by option, and its share of the array with none and with all of them."""

    network: str
    cycles: Mapping[str, int]
    array: Mapping[str, float]


def figures(network: str, path: str | Path, config: Config) -> Row:
    """Compiles and simulates a network with each choice of options."""
    cycles, array = {}, {}
    for name, settings in OPTIONS.items():
        chosen = config.override(settings)
        module = vdla.compile(path, chosen)
        result = vdla.run(module, random_inputs(module))
        macs = sum(layer["macs"] for layer in module.metadata["layers"])
        cycles[name] = int(result.cycles or 0)
        array[name] = macs / (cycles[name] * chosen.macs_per_cycle)
    return Row(network, cycles, array)


def file_of(network: str, folder: Path) -> Path:
    """The ONNX file of a bundled network, or of one that is built now."""
    if network not in BUILT:
        return Path(model_file(network))
    path = folder / f"{network}.onnx"
    samples = [{"input": x[None]} for x in networks.calibration(networks.IMAGE)[:1]]
    quantize_model(BUILT[network](), path, samples)
    return path


def luts(config: Config) -> dict[str, int]:
    """LUTs of the core with each choice of options."""
    netlists = {name: netlist(config.override(OPTIONS[name]), apart=True) for name in OPTIONS}
    return {name: round(total(area(Flat(each)))["lut"]) for name, each in netlists.items()}


def print_cycles(rows: Sequence[Row], config: Config) -> None:
    """Prints the networks' cycles, and the share of the array with none and with all options."""
    table = Table("network", *OPTIONS, "array", "array, all", title=f"cycles on {config.name}")
    for row in rows:
        shares = (f"{100 * row.array[name]:.1f} %" for name in ("none", "all"))
        table.add_row(row.network, *(f"{n:,}" for n in row.cycles.values()), *shares)
    Console(width=140).print(table)


def print_won(rows: Sequence[Row], counts: Mapping[str, int]) -> None:
    """Prints the cycles that each choice of options saves for each LUT that it adds."""
    table = Table("network", *OPTIONS, title="cycles won per LUT")
    added = {name: counts[name] - counts["none"] for name in OPTIONS}
    table.add_row("LUTs", *(f"{n:,}" for n in counts.values()))
    for row in rows:
        won = ((row.cycles["none"] - row.cycles[name], added[name]) for name in OPTIONS)
        table.add_row(row.network, *(f"{n / more:.0f}" if more else "" for n, more in won))
    Console(width=140).print(table)


def main() -> None:
    """Prints tables, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-c", "--config", default="paper")
    parser.add_argument("--models", default=",".join(NETWORKS))
    parser.add_argument("--area", action="store_true", help="cycles won per LUT, too")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    config = load_config(arguments.config)
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            figures(name, file_of(name, Path(folder)), config)
            for name in arguments.models.split(",")
        ]
    counts = luts(config) if arguments.area else {}
    if arguments.json:
        print(json.dumps({"networks": [asdict(row) for row in rows], "luts": counts}))
        return
    print_cycles(rows, config)
    if counts:
        print_won(rows, counts)


if __name__ == "__main__":
    main()
