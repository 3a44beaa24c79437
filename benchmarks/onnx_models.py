"""Networks in ONNX files on the processor: what vdla compiles, how right it is, and how fast.

    python benchmarks/onnx_models.py FILES... [--shape NAME=SIZES]... [--samples N] [--runs N]
                                     [--json]

Each file is compiled for the device ``cpu`` and compared with onnxruntime on random inputs, as
``vdla run --check`` does: a model of floats in its outputs, a quantized one in every integer layer
fed onnxruntime's own tensors, and in its outputs. Where float operators stand between the
quantized ones, a result of theirs that lies between two integers may be rounded either way, and
what follows differs by more than one step; then the layers are what is comparable.

    holds      whether ``vdla run --check`` would say so
    off        the integer layers' worst share of elements that differ, and by how much at most
    relative   the largest difference of an output, in units of its largest value
    ratio      vdla's time over onnxruntime's, of the shortest runs in turns on one thread

A file that is refused has a row with the reason. ``--shape`` is as in ``vdla run``; one that a file
has no use for is left out.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cpu import in_turns, single_thread
from rich.console import Console
from rich.table import Table

from vdla import api
from vdla.compiler.frontend.shapes import Shapes, input_values, open_shape
from vdla.options import Run
from vdla.runtime.plan import Onnx
from vdla.spelling import sizes
from vdla.support.errors import UserError

SAMPLES, RUNS = 2, 10


@dataclass
class Row:
    """One file; nothing of what follows ``refused`` where there is a reason."""

    file: str
    nodes: int
    refused: str = ""
    holds: bool = False
    layers: int = 0
    off: float = 0.0
    steps: int = 0
    relative: float = 0.0
    cosine: float = 1.0
    by_onnxruntime: list[str] = field(default_factory=list)
    ours_ms: float = 0.0
    onnxruntime_ms: float = 0.0
    ratio: float = 0.0


def measure(path: Path, shapes: Shapes, samples: int, runs: int) -> Row:
    """One file's row."""
    row = Row(path.name, 0)
    try:
        graph = api.load_onnx(path).graph
        row.nodes = len(graph.node)
        options = Run(device="cpu", shapes=fitting(graph, shapes), samples=samples)
        ready, _ = api.prepare(path, options)
        result = api.check(path, options)
    except UserError as error:
        row.refused = str(error)
        return row
    row.holds, row.layers = result.holds, len(result.layers)
    row.off = max((layer.share for layer in result.layers), default=0.0)
    row.steps = max((layer.largest for layer in result.layers), default=0)
    row.relative = max(each.relative for each in result.whole)
    row.cosine = min(each.cosine for each in result.whole)
    row.by_onnxruntime = [str(s) for s in ready.module.steps if isinstance(s, Onnx)]
    inputs, session = api.random_inputs(ready.module), single_thread(path)
    ours, theirs = in_turns(runs, lambda: ready.run(inputs), lambda: session.run(None, inputs))
    row.ours_ms, row.onnxruntime_ms = 1e3 * min(ours), 1e3 * min(theirs)
    row.ratio = row.ours_ms / row.onnxruntime_ms
    return row


def fitting(graph: Any, shapes: Shapes) -> Shapes:
    """The sizes that belong to this file's inputs or dimensions."""
    values = {value.name: open_shape(value) for value in input_values(graph)}
    known = {*values, *(size for shape in values.values() for size in shape)}
    return {name: sizes for name, sizes in shapes.items() if name in known}


def table(rows: list[Row]) -> Table:
    """What people read."""
    titles = ("file", "nodes", "holds", "layers", "off", "relative", "ours ms", "ort ms", "ratio")
    result = Table(*titles)
    for row in rows:
        if row.refused:
            result.add_row(row.file, str(row.nodes), row.refused)
            continue
        off = f"{100 * row.off:.3g} % by {row.steps}"
        times = (row.ours_ms, row.onnxruntime_ms, row.ratio)
        result.add_row(
            row.file, str(row.nodes), "yes" if row.holds else "no", str(row.layers), off,
            f"{row.relative:.2g}", *(f"{v:.3g}" for v in times),
        )  # fmt: skip
    return result


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    shapes = sizes(options.shape)
    rows = [measure(path, shapes, options.samples, options.runs) for path in options.files]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        Console().print(table(rows))


if __name__ == "__main__":
    main()
