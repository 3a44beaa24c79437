"""Single operators and small cells on the processor, beside other runtimes.

    python benchmarks/operators.py [--only "sum,softmax"] [--threads 1] [--runs 7]
                                   [--peers onnxruntime,openvino] [--clock wall|processor] [--json]

What networks of others have between their convolutions: reductions along every axis, transforms of
signals, products of float64, transposed convolutions, attention over few words, recurrent cells of
one signal, softmax over rows that are no whole number of vectors. ``functions ms`` is the time in
compiled code alone; a run also copies inputs in and outputs out, which peers don't.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from peers import (
    Job,
    Times,
    add_options,
    cells,
    check_clock,
    console,
    machine_line,
    summary,
    timed,
    titles,
)
from rich.table import Table

import vdla
from vdla.analysis.ort import ort_run
from vdla.runtime.executor import Executor

OPSET = 18
Array = np.ndarray[Any, Any]
Nodes = list[onnx.NodeProto]


@dataclass(frozen=True)
class Case:
    """A graph from ``x`` to ``y``: its name, the input's shape, its nodes, their constants."""

    name: str
    shape: tuple[int, ...]
    nodes: Nodes
    constants: Mapping[str, Array] = field(default_factory=dict)
    output: int = TensorProto.FLOAT

    def model(self) -> onnx.ModelProto:
        """The graph as a model."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        y = helper.make_tensor_value_info("y", self.output, None)
        known = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "case", [x], [y], known)
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def weights(*shape: int) -> Array:
    """Constants of about the size that keeps a layer's results near 1."""
    values = np.random.default_rng(len(shape)).standard_normal(shape)
    return (values / max(shape[-1], 1) ** 0.5).astype(np.float32)


def one(kind: str, *others: str, **attributes: object) -> Nodes:
    """A node from ``x``, and constants, to ``y``."""
    return [helper.make_node(kind, ["x", *others], ["y"], **attributes)]


# The cases --------------------------------------------------------------------------------------


def reductions() -> Iterator[Case]:
    """Sums and extremes along axes in front of the last, and along it."""
    for kind, shape, axes in (
        ("ReduceSum", (512, 4096), (0,)),
        ("ReduceSum", (64, 512, 300), (1,)),
        ("ReduceMean", (1, 256, 56, 56), (1,)),
        ("ReduceMean", (8, 56, 56, 128), (1, 2)),
        ("ReduceMax", (16, 512, 300), (1,)),
        ("ReduceL2", (1, 256, 40, 30), (1,)),
        ("ReduceSum", (4096, 500), (1,)),
    ):
        known = {"axes": np.array(axes, np.int64)}
        name = f"{kind} {'×'.join(map(str, shape))} along {', '.join(map(str, axes))}"
        yield Case(name, shape, one(kind, "axes"), known)
    places = one("ArgMax", axis=1, keepdims=0)
    yield Case("ArgMax 1×21×256×256 along 1", (1, 21, 256, 256), places, {}, TensorProto.INT64)


def softmaxes() -> Iterator[Case]:
    """Rows of whole vectors and of others, short and long, and along channels."""
    image = (1, 21, 128, 128)
    yield Case(f"Softmax {'×'.join(map(str, image))} along 1", image, one("Softmax", axis=1))
    for rows, size in ((4704, 48), (4704, 49), (1182, 197), (1000, 1000), (40, 18710)):
        yield Case(f"Softmax {rows}×{size}", (rows, size), one("Softmax", axis=-1))


def transforms() -> Iterator[Case]:
    """A transform of a signal, and a product of float64."""
    window = np.hanning(400).astype(np.float32)
    known = {"step": np.array(160), "window": window, "length": np.array(400)}
    yield Case("STFT of 2 s", (1, 32000, 1), one("STFT", "step", "window", "length"), known)
    nodes = [
        helper.make_node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE),
        helper.make_node("MatMul", ["d", "w"], ["y"]),
    ]
    matrix = {"w": weights(512, 512).astype(np.float64)}
    yield Case("MatMul of float64, 256×512×512", (256, 512), nodes, matrix, TensorProto.DOUBLE)


def transposed() -> Iterator[Case]:
    """Transposed convolutions whose stride divides the result, or doesn't."""
    for kernel, stride, pad, inputs, outputs, size in (
        (4, 2, 1, 128, 64, 32), (2, 2, 0, 256, 128, 28), (3, 2, 1, 64, 64, 56),
    ):  # fmt: skip
        nodes = one("ConvTranspose", "w", strides=[stride] * 2, pads=[pad] * 4)
        known = {"w": weights(inputs, outputs, kernel, kernel)}
        name = f"ConvTranspose {kernel}×{kernel} by {stride}, {inputs} to {outputs}, {size}²"
        yield Case(name, (1, inputs, size, size), nodes, known)


def attentions() -> Iterator[Case]:
    """Self-attention of several heads over few words."""
    for batch, words, width, heads in ((1, 16, 256, 4), (16, 49, 192, 6), (1, 197, 384, 6)):
        known = {f"w{part}": weights(width, width) for part in "qkvo"}
        known["apart"] = np.array((batch, words, heads, width // heads))
        known |= {"whole": np.array((batch, words, width)), "scale": weights(1)[:1]}
        nodes = []
        for part in "qkv":
            order = (0, 2, 3, 1) if part == "k" else (0, 2, 1, 3)
            nodes += [
                helper.make_node("MatMul", ["x", f"w{part}"], [f"{part}0"]),
                helper.make_node("Reshape", [f"{part}0", "apart"], [f"{part}1"]),
                helper.make_node("Transpose", [f"{part}1"], [part], perm=order),
            ]
        nodes += [
            helper.make_node("MatMul", ["q", "k"], ["s0"]),
            helper.make_node("Mul", ["s0", "scale"], ["s1"]),
            helper.make_node("Softmax", ["s1"], ["s"], axis=-1),
            helper.make_node("MatMul", ["s", "v"], ["o0"]),
            helper.make_node("Transpose", ["o0"], ["o1"], perm=(0, 2, 1, 3)),
            helper.make_node("Reshape", ["o1", "whole"], ["o2"]),
            helper.make_node("MatMul", ["o2", "wo"], ["y"]),
        ]
        name = f"attention {batch}×{words}×{width}, {heads} heads"
        yield Case(name, (batch, words, width), nodes, known)


def cells_of_signals() -> Iterator[Case]:
    """LSTM and GRU of one signal."""
    for kind, steps, inputs, hidden in (
        ("LSTM", 64, 128, 128), ("LSTM", 32, 512, 512), ("GRU", 64, 256, 256),
    ):  # fmt: skip
        gates = 4 if kind == "LSTM" else 3
        known = {
            "W": weights(1, gates * hidden, inputs),
            "R": weights(1, gates * hidden, hidden),
            "B": weights(1, 2 * gates * hidden),
        }
        more = {"linear_before_reset": 1} if kind == "GRU" else {}
        nodes = one(kind, *known, hidden_size=hidden, **more)
        yield Case(f"{kind} {steps} steps, {inputs} to {hidden}", (steps, 1, inputs), nodes, known)


GROUPS = (reductions, softmaxes, transforms, transposed, attentions, cells_of_signals)


# Times ------------------------------------------------------------------------------------------


@dataclass
class Row(Times):
    """One case's times, that of compiled functions alone, and the largest difference from
    onnxruntime over the largest output."""

    name: str = ""
    functions_ms: float = 0.0
    error: float = 0.0


def measure(case: Case, options: argparse.Namespace, folder: Path) -> Row:
    """A case compiled and timed in turns with the peers."""
    path = folder / "case.onnx"
    onnx.save(case.model(), path)
    executor = Executor(vdla.compile(path, device="cpu"), threads=options.threads)
    given = {"x": np.random.default_rng(0).standard_normal(case.shape).astype(np.float32)}
    job = Job(path, given, options.threads, options.runs, options.clock)
    times = timed(options.peers, executor.run, job)
    runs = [executor.run(given) for _ in range(options.runs)]
    functions = min(sum(step.seconds for step in run.steps) for run in runs)
    want = ort_run(path, given)["y"]
    result = runs[0].outputs["y"]
    error = np.abs(result.astype(np.float64) - want).max() / np.abs(want).max()
    return Row(**asdict(times), name=case.name, functions_ms=1e3 * functions, error=float(error))


def table(rows: Sequence[Row], names: Sequence[str]) -> Table:
    """The rows, and the means and the worst of their ratios."""
    result = Table("case", *titles(names), "functions ms", "error")
    for row in rows:
        result.add_row(row.name, *cells(row, names), f"{row.functions_ms:.3g}", f"{row.error:.1e}")
    result.add_section()
    for title, each in summary(rows, names):
        result.add_row(title, *each)
    return result


def main() -> None:
    """Times the cases that the options name, and prints a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--only", default="", help="parts of cases' names, between commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    add_options(parser)
    options = parser.parse_args()
    check_clock(parser, options.clock, options.threads)
    parts = [part.strip().lower() for part in options.only.split(",")]
    cases = [case for group in GROUPS for case in group()]
    chosen = [case for case in cases if any(part in case.name.lower() for part in parts)]
    if not chosen:
        parser.error(f"--only: expected a part of a case's name, found {options.only}")
    with TemporaryDirectory() as folder:
        rows = [measure(case, options, Path(folder)) for case in chosen]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    names = [peer.name for peer in options.peers]
    console().print(table(rows, names), machine_line(options.peers))


if __name__ == "__main__":
    main()
