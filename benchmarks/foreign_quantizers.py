"""Files of others' quantizers on the accelerator: what is refused, left to the host, or different.

    python benchmarks/foreign_quantizers.py FILES... [-c paper-full] [--own] [-v] [--json]

FILES are those of ``foreign_files.py``: NAME.TOOL.onnx beside NAME.npz, whose arrays are inputs,
and beside NAME.float.onnx, of which ``--own`` makes the same file by ``vdla quantize``.

    refused    quantized operators that stay floats, of all: a Dequantize before, a Quantize behind
    host       what the host runs between the accelerator's first and last operator, of all
    steps      the largest difference of an output on the accelerator from onnxruntime's, which runs
               every node as it stands, in steps: the scale of the output's own quantization, or
               1/255 of its range
    share      elements that differ by more than half a step, in percent

A file that quantizes nothing but weights, or at run time, runs on the processor, ``cpu``. ``-v``
prints the reason of each operator that is refused or on the host. A file that isn't taken is a line
below the table. Inputs are those that the files were calibrated with.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import numpy_helper
from rich.console import Console
from rich.table import Table
from strangers import between

import vdla
from vdla.analysis.ort import ort_runs
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend.onnx import import_onnx, is_quantized
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.island import Quantizable
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.types import Array
from vdla.compiler.placement import ACCELERATOR
from vdla.isa.config import Config, load_config
from vdla.options import Quantize
from vdla.runtime.devices.named import make_device
from vdla.runtime.executor import Executor
from vdla.support.errors import UserError

RANGE = 255  # steps of an output that nothing quantizes
QONNX = """
<domain: "qonnx.custom_op.general", opset_import: ["" : 17]>
Quant <signed, narrow, rounding_mode> (x, scale, zero, bits) => (y) {
    s = Constant <value_int: int = @signed> ()
    n = Constant <value_int: int = @narrow> ()
    is_signed = Cast <to = 1> (s)
    is_narrow = Cast <to = 1> (n)
    one = Constant <value_float = 1.0> ()
    two = Constant <value_float = 2.0> ()
    width = Sub (bits, is_signed)
    half = Pow (two, width)
    high_of_all = Sub (half, one)
    unsigned = Sub (one, is_signed)
    off_top = Mul (unsigned, is_narrow)
    high = Sub (high_of_all, off_top)
    below = Mul (half, is_signed)
    off_end = Mul (is_signed, is_narrow)
    low = Sub (off_end, below)
    ratio = Div (x, scale)
    steps = Add (ratio, zero)
    most = Min (steps, high)
    limited = Max (most, low)
    whole = Round (limited)
    centered = Sub (whole, zero)
    y = Mul (centered, scale)
}
"""  # what onnxruntime runs in the place of such a node
HEADS = ("file", "cycles", "refused", "host", "steps", "share")


@dataclass
class Row:
    """Figures of a file; nothing of what follows ``fault`` where there is one."""

    file: str
    fault: str = ""
    device: str = ""
    cycles: int = 0
    refused: list[str] = field(default_factory=list)
    islands: int = 0
    host: list[str] = field(default_factory=list)
    operators: int = 0
    steps: float = 0.0
    share: float = 0.0


def measured(path: Path, inputs: Sequence[Mapping[str, Array]], config: Config) -> Row:
    """Compiles and simulates a file, and compares its outputs."""
    row = Row(path.stem)
    try:
        model = runnable(path)
        row.device = "sim" if is_quantized(model) else "cpu"
        graph = import_onnx(path, floats=True)
        row.islands, row.refused = islands(optimize(graph))
        options = Options() if row.device == "sim" else Options("cpu")
        module = compile_graph(graph, config, options)
        rows = between(module.metadata["placement"])
        row.operators = len(rows)
        row.host = [
            f"{each['op']} {each['name']}: {each['reason']}"
            for each in rows
            if each["device"] != ACCELERATOR and row.device == "sim"
        ]
        devices = (make_device(module, row.device, config) for _ in inputs)
        runs = [Executor(module, each).run(x) for each, x in zip(devices, inputs, strict=True)]
        wanted = [*ort_runs(model, inputs, fuse=False)]
    except UserError as error:
        row.fault = str(error)
        return row
    row.cycles = runs[0].cycles or 0
    units = output_steps(model)
    gaps = [
        gap
        for run, want in zip(runs, wanted, strict=True)
        for name, array in want.items()
        for gap in [differences(run.outputs[name], array, units.get(name))]
    ]
    row.steps = max(float(gap.max()) for gap in gaps)
    row.share = 100 * float(np.mean([np.mean(gap > 0.5) for gap in gaps]))
    return row


def runnable(path: Path) -> onnx.ModelProto:
    """A file's model; of one in QONNX's operators with their definition."""
    model = onnx.load(path)
    function = onnx.parser.parse_function(QONNX)
    if any(node.domain == function.domain for node in model.graph.node):
        opset = next(each.version for each in model.opset_import if not each.domain)
        function.opset_import[0].version = opset
        model.functions.append(function)
    return model


def islands(graph: Graph) -> tuple[int, list[str]]:
    """Number of operators between quantized tensors, and those that are floats, with reasons."""
    makers = {name: node for node in graph.nodes for name in node.outputs}
    integers = [n for n in graph.nodes if not isinstance(n, ops.Quantize | ops.Dequantize)]
    integers = [n for n in integers if graph.tensors[n.outputs[0]].dtype == "int8"]
    left = [
        f"{node.op} {node.name}: {graph.reasons.get(node.name, 'no reason')}"
        for node in graph.nodes
        if isinstance(node, Quantizable) and not node.CONVERTS
        if node.has_integers(graph.tensors[node.inputs[0]].shape)
        if any(isinstance(makers.get(name), ops.Dequantize) for name in node.inputs)
        and ends_quantized(node, graph)
    ]
    return len(integers) + len(left), left


def ends_quantized(node: Node, graph: Graph) -> bool:
    """Whether a Quantize reads a node's result, behind limits at most."""
    for reader in graph.nodes:
        if node.outputs[0] in reader.inputs:
            if isinstance(reader, ops.Quantize):
                return True
            if isinstance(reader, ops.Relu | ops.Clip) and ends_quantized(reader, graph):
                return True
    return False


def output_steps(model: onnx.ModelProto) -> dict[str, float]:
    """The scale of each output that a quantizer's node makes, as a constant says it."""
    known = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            known[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    outputs = {value.name for value in model.graph.output}
    return {
        node.output[0]: float(known[node.input[1]].reshape(-1)[0])
        for node in model.graph.node
        if node.op_type in ("DequantizeLinear", "Quant")
        if node.output[0] in outputs and node.input[1] in known
    }


def differences(result: Array, want: Array, step: float | None) -> Array:
    """Differences of elements, in steps."""
    step = step or float(np.ptp(want)) / RANGE or 1.0
    return np.asarray(np.abs(result.astype(np.float64) - want) / step)


def rows_of(paths: Sequence[Path], config: Config, own: bool) -> Iterator[Row]:
    """The rows of files, and of our own ones of the same networks."""
    seen: set[str] = set()
    for path in paths:
        name = path.name.partition(".")[0]
        archive = np.load(path.with_name(f"{name}.npz"))
        inputs = [{"input": archive[each]} for each in archive.files]
        if own and name not in seen:
            yield own_row(path.with_name(f"{name}.float.onnx"), inputs, config)
        seen.add(name)
        yield measured(path, inputs, config)


def own_row(source: Path, inputs: Sequence[Mapping[str, Array]], config: Config) -> Row:
    """The row of what ``vdla quantize`` makes of a file of floats."""
    with TemporaryDirectory() as folder:
        target = Path(folder) / source.name.replace(".float.", ".vdla.")
        samples = Path(folder) / "samples.npz"
        np.savez(samples, input=np.concatenate([each["input"] for each in inputs]))
        vdla.quantize(source, target, Quantize(calibration=samples))
        return measured(target, inputs, config)


def main() -> None:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-c", "--config", default="paper-full")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [*rows_of(options.files, load_config(options.config), options.own)]
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    console, table = Console(), Table(*HEADS)
    for row in rows:
        counts = f"{len(row.refused)} of {row.islands}", f"{len(row.host)} of {row.operators}"
        figures = f"{row.steps:.2f}", f"{row.share:.2f}"
        first = f"{row.cycles:,}" if row.device == "sim" else row.device
        cells = (first, *counts, *figures) if not row.fault else ("not taken",)
        table.add_row(row.file, *cells)
    console.print(table)
    for row in rows:
        lines = [*(f"refused: {each}" for each in row.refused), *row.host]
        for line in [row.fault] if row.fault else lines if options.verbose else []:
            console.print(f"{row.file}: {line}", soft_wrap=True, highlight=False, markup=False)


if __name__ == "__main__":
    main()
