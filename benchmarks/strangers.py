"""Small networks that aren't bundled, in seven styles of quantization: what is left to the host.

    python benchmarks/strangers.py [-c CONFIG] [--models gates] [--styles u8,s8c] [-v] [--json]
    python benchmarks/strangers.py -c paper-full --models sequences --styles u8,s8c,all

Models are those of ``stranger_models.py`` and ``stranger_exports.py``, CNNs, and of
``stranger_sequences.py``, transformers and recurrent cells: names with commas, or ``cnns`` or
``sequences`` for all of a kind.

- host: what the host runs between the accelerator's first and last operator, conversions of numbers
  and of their layout too (``-v`` prints each with its reason);
- cosine: the least of all outputs, with onnxruntime's graph without fusion;
- floats: that with the network before it was quantized, and onnxruntime's with that;
- differ: the most that any output differs from it, in parts of the output's largest element.

Weights are drawn from a seed; images are small, so that all of them take a few minutes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
import stranger_exports
import stranger_models
import stranger_sequences
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import vdla
from vdla.analysis.ort import cosine, ort_run
from vdla.compiler.placement import ACCELERATOR
from vdla.isa.config import Config, load_config

Array = NDArray[Any]
HEADS = ("network", "style", "cycles", "host", "cosine", "floats", "differ")
CNNS = {**stranger_models.NETWORKS, **stranger_exports.NETWORKS}
NETWORKS = {**CNNS, **stranger_sequences.NETWORKS}


@dataclass(frozen=True)
class Row:
    """A network's figures in one style of quantization; ``left`` are reasons by layers."""

    network: str
    style: str
    cycles: int | None
    layers: int
    left: dict[str, str]
    cosine: float
    floats: tuple[float, float]
    differ: float


def measure(network: str, style: str, config: Config) -> Row:
    """Compiles, simulates and compares a network on a random image."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{network}-{style}.onnx"
        model = NETWORKS[network]()
        inputs = stranger_models.write(model, style, path)
        module = vdla.compile(path, config, calibration=samples_of(model, style))
        result = vdla.run(module, inputs)
        wanted, real = ort_run(path, inputs, fuse=False), ort_run(model, inputs)
    rows = between(module.metadata["placement"])
    left = [row for row in rows if row["device"] != ACCELERATOR]
    pairs = [(result.outputs[name], want) for name, want in wanted.items()]
    return Row(
        network,
        style,
        result.cycles,
        len(rows),
        {row["name"]: f"{row['op']}: {row['reason']}" for row in left},
        min(cosine(*pair) for pair in pairs),
        tuple(
            min(cosine(a[n], b) for a, b in zip(pairs, real.values(), strict=True)) for n in (0, 1)
        ),
        max(float(abs(a - b).max() / abs(b).max()) for a, b in pairs),
    )


def samples_of(model: onnx.ModelProto, style: str) -> dict[str, Array] | None:
    """The samples with which a style's network is compiled: none where all that is added is
    quantized."""
    return stranger_models.samples(model) if stranger_models.is_partial(style) else None


def between(rows: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
    """The rows of a placement from the accelerator's first operator to its last."""
    numbers = [n for n, row in enumerate(rows) if row["device"] == ACCELERATOR]
    return rows[numbers[0] : numbers[-1] + 1] if numbers else rows


def main() -> None:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-c", "--config", default="paper")
    parser.add_argument("--models", default="cnns")
    parser.add_argument("--styles", default="u8,s8c,qop")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    config, rows = load_config(options.config), []
    kinds = {"cnns": CNNS, "sequences": stranger_sequences.NETWORKS}
    for network in (n for name in options.models.split(",") for n in kinds.get(name, [name])):
        rows += [measure(network, style, config) for style in options.styles.split(",")]
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    console, table = Console(), Table(*HEADS)
    for row in rows:
        host, cycles = f"{len(row.left)} of {row.layers}", f"{row.cycles or 0:,}"
        floats = " ".join(f"{each:.4f}" for each in row.floats)
        figures = f"{row.cosine:.5f}", floats, f"{row.differ:.4f}"
        table.add_row(row.network, row.style, cycles, host, *figures)
    console.print(table)
    for row in rows if options.verbose else ():
        for name, reason in row.left.items():
            console.print(f"{row.network} {row.style}: {name}: {reason}", soft_wrap=True)


if __name__ == "__main__":
    main()
