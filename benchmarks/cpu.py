"""Networks on the processor: vdla's time beside that of others, interleaved, in one run.

    python benchmarks/cpu.py [--models resnet18,mobilenet,…] [--dtypes float32,int8,uint8]
                             [--threads 1,2] [--target native] [--peers onnxruntime,openvino]
                             [--clock wall|processor] [--runs 30] [--layers] [--json]
    python benchmarks/cpu.py --products | --convolutions [--runs 30] [--json]

All run one input on as many threads (``peers.py`` says with which settings); by default the only
peer is onnxruntime. What is timed is the second of two runs in a row, as in a program that runs a
network again and again.

int8 and uint8 are the activations' types in onnxruntime's own quantization (QDQ, weights int8 per
channel); all runtimes run the same file. The networks and their weights are those of
``compiler/models``.

A ratio is vdla's time over a peer's: of the shortest runs, which others' work on the machine
disturbs least, by the wall's clock, or of one thread's processor time. ``--json`` has that of the
medians, too. ``÷ fastest`` is the ratio to whichever peer is faster, and a dash a peer that refuses
the file. ``error`` is the largest difference of outputs from onnxruntime's over the largest output.
``--layers`` prints each function's time instead. ``--products`` prints square products of matrices,
of floats and of uint8 by int8 weights, and what share they have of the processor's peak
(``compiler/targets/processor/peak.py``); ``--convolutions`` prints convolutions of floats to
numbers of channels that fill no vector, and of groups, likewise. By ``--target x86-64-v3`` vdla
uses that processor's instructions.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import onnx
import peers
import sequences
from onnx import TensorProto, helper, numpy_helper
from peers import Job, Peer, Times, session_of
from rich.table import Table

import vdla
from vdla.analysis.profile import ProfiledStep, profile
from vdla.compiler.models import networks
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.recipe import Recipe
from vdla.compiler.targets.processor.peak import peak
from vdla.runtime.executor import Executor

IMAGES = {"resnet18": networks.resnet18, "mobilenet": networks.mobilenet,
          "resnet50": networks.resnet50}  # fmt: skip
SEQUENCES = {"encoder": sequences.encoder, "language_model": sequences.language_model}
QUANTIZED = ("resnet18", "mobilenet")
SIZES = (256, 512, 1024)  # of square products
CONVOLUTIONS = {  # data, weights, stride along a row; a group has the weights' inputs
    "filter bank to 258": ((1, 1, 1, 16128), (258, 1, 1, 256), 128),
    "3 x 3, 64 to 1": ((1, 64, 162, 162), (1, 64, 3, 3), 1),
    "3 x 3, 64 to 3": ((1, 64, 98, 98), (3, 64, 3, 3), 1),
    "1 x 1, 64 to 1": ((1, 64, 160, 160), (1, 64, 1, 1), 1),
    "5 x 5, 16 to 6": ((1, 16, 100, 100), (6, 16, 5, 5), 2),
    "3 x 3, 3 to 10": ((1, 3, 102, 103), (10, 3, 3, 3), 1),
    "3 x 3, 48 to 24": ((1, 48, 82, 82), (24, 48, 3, 3), 1),
    "1 x 1, 512 to 1000": ((1, 512, 13, 13), (1000, 512, 1, 1), 1),
    "3 x 3, 32 groups of 4": ((1, 128, 58, 58), (128, 4, 3, 3), 1),
    "3 x 3, 6 groups of 24": ((1, 144, 30, 30), (144, 24, 3, 3), 1),
    "1 x 1, 4 groups of 34": ((1, 136, 28, 28), (136, 34, 1, 1), 1),
}
PEAK_EVERY = 10  # runs of a product


@dataclass(frozen=True)
class Row:
    """One network, of one input; ``versions`` are the peers'."""

    model: str
    dtype: str
    threads: int
    isa: str
    times: Times
    versions: dict[str, str]
    error: float
    compile_s: float


@dataclass(frozen=True)
class OperatorRow:
    """One operator on one thread."""

    operator: str
    dtype: str
    isa: str
    gflops: float
    peak_gflops: float
    share: float
    ratio: float


def isa() -> str:
    """The vector instructions that this processor has, by their newest extension."""
    result = llvm.get_host_cpu_features()
    names = {"amx-int8": "AMX", "avx512vnni": "AVX-512 VNNI", "avx512f": "AVX-512", "avx2": "AVX2",
             "neon": "NEON"}  # fmt: skip
    return next((name for key, name in names.items() if result.get(key)), "none")


@dataclass(frozen=True)
class Case:
    """A network's file, and what vdla makes of it in how many seconds."""

    model: str
    dtype: str
    isa: str
    path: Path
    module: Any
    seconds: float


def compiled(model: str, dtype: str, target: str, folder: Path) -> Case:
    """A network, ready to run."""
    path = path_of(model, dtype, folder)
    start = time.perf_counter()
    module = vdla.compile(path, device="cpu", target=target)
    instructions = isa() if target.startswith("native") else target
    return Case(model, dtype, instructions, path, module, time.perf_counter() - start)


def compare(case: Case, chosen: argparse.Namespace, threads: int) -> Row:
    """All on random inputs, in turns."""
    module, path = case.module, case.path
    ready, given = Executor(module, threads=threads), inputs_of(module)
    result, wanted = ready.run(given).outputs, session_of(str(path), threads).run(None, given)
    error = max(
        float(np.abs(result[name] - want).max() / np.abs(want).max())
        for name, want in zip(module.outputs, wanted, strict=True)
    )
    job = Job(path, given, threads, chosen.runs, chosen.clock)
    times = peers.timed(chosen.peers, ready.run, job)
    versions = {peer.name: peer.version for peer in chosen.peers}
    return Row(case.model, case.dtype, threads, case.isa, times, versions, error, case.seconds)


def inputs_of(module: Any) -> dict[str, Any]:
    """Normal numbers, or small whole ones."""
    rng = np.random.default_rng(0)
    kinds = {name: module.tensors[name] for name in module.inputs}
    return {
        name: rng.standard_normal(kind.shape).astype(kind.dtype)
        if kind.dtype.startswith("float")
        else rng.integers(0, 100, kind.shape).astype(kind.dtype)
        for name, kind in kinds.items()
    }


def path_of(model: str, dtype: str, folder: Path) -> Path:
    """The ONNX file of a network, made in ``folder`` if it isn't there."""
    path = folder / f"{model}-{dtype}.onnx"
    if path.exists():
        return path
    if dtype == "float32":
        onnx.save({**IMAGES, **SEQUENCES}[model](), path)
        return path
    samples = [{"input": x[None]} for x in networks.calibration(networks.IMAGE)]
    quantize_model(IMAGES[model](), path, samples, Recipe(unsigned=dtype == "uint8"))
    return path


def layers(module: Any, runs: int) -> Table:
    """Each function's shortest time, on one thread."""
    ready, given = Executor(module, threads=1), inputs_of(module)
    table = Table("function", "ms", "%")
    for step in profile(ready, given, runs).steps:
        table.add_row(step.name, *shown(step))
    return table


def shown(step: ProfiledStep) -> tuple[str, str]:
    """A function's milliseconds, and its percentage of all functions' time."""
    assert step.seconds is not None
    assert step.share is not None
    return f"{1e3 * step.seconds:.3f}", f"{100 * step.share:.1f}"


def sgemm(size: int) -> onnx.GraphProto:
    """A product of two matrices that are both known at run time alone."""
    kinds = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [size, size]) for n in "abc"]
    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    return helper.make_graph([node], "product", kinds[:2], kinds[2:])


def u8s8(size: int) -> onnx.GraphProto:
    """A product of uint8 with int8 weights."""
    weights = np.random.default_rng(0).integers(-127, 128, (size, size)).astype(np.int8)
    a = helper.make_tensor_value_info("a", TensorProto.UINT8, [size, size])
    c = helper.make_tensor_value_info("c", TensorProto.INT32, [size, size])
    node = helper.make_node("MatMulInteger", ["a", "b"], ["c"])
    return helper.make_graph([node], "product", [a], [c], [numpy_helper.from_array(weights, "b")])


def convolution(data: Sequence[int], weight: Sequence[int], stride: int) -> onnx.GraphProto:
    """A convolution of an image, as many columns apart as ``stride``; without padding."""
    (n, _, h, w), (o, _, kh, kw) = data, weight
    weights = np.random.default_rng(0).standard_normal(weight).astype(np.float32)
    result = [n, o, h - kh + 1, (w - kw) // stride + 1]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, data)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, result)
    groups = data[1] // weight[1]
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[1, stride], group=groups)
    return helper.make_graph(
        [node], "convolution", [x], [y], [numpy_helper.from_array(weights, "w")]
    )


@dataclass(frozen=True)
class Operator:
    """An operator alone: its name for people, its graph, its operations."""

    name: str
    dtype: str
    graph: onnx.GraphProto
    operations: int


def products() -> Iterator[Operator]:
    """Square products of both kinds."""
    for (dtype, make), size in product({"float32": sgemm, "int8": u8s8}.items(), SIZES):
        yield Operator(f"product of {size} x {size}", dtype, make(size), 2 * size**3)


def convolutions() -> Iterator[Operator]:
    """Convolutions of floats to numbers of channels that fill no vector."""
    for name, (data, weight, stride) in CONVOLUTIONS.items():
        graph = convolution(data, weight, stride)
        (result,) = graph.output
        size = prod(d.dim_value for d in result.type.tensor_type.shape.dim)
        yield Operator(name, "float32", graph, 2 * size * prod(weight[1:]))


def operators(cases: Iterable[Operator], folder: Path, runs: int) -> Iterator[OperatorRow]:
    """Each operator beside onnxruntime's, and beside the peak."""
    opset = helper.make_opsetid("", 17)
    for case in cases:
        path, dtype = folder / "operator.onnx", case.dtype
        onnx.save(helper.make_model(case.graph, opset_imports=[opset], ir_version=8), path)
        module = vdla.compile(path, device="cpu")
        ready, session, given = (
            Executor(module, threads=1),
            session_of(str(path), 1),
            inputs_of(module),
        )
        ours, theirs, most = list[float](), list[float](), 0.0
        for number in range(runs):
            if number % PEAK_EVERY == 0:  # the clock changes with the load
                most = max(most, peak(dtype))
            ours.append(sum(step.seconds for step in ready.run(given).steps))
            start = time.perf_counter()
            session.run(None, given)
            theirs.append(time.perf_counter() - start)
        rate = case.operations / min(ours)
        yield OperatorRow(case.name, dtype, isa(), rate / 1e9, most / 1e9, rate / most,
                          min(ours) / min(theirs))  # fmt: skip


def listed(text: str) -> list[str]:
    """Words between commas."""
    return text.split(",")


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=listed, default=[*IMAGES, *SEQUENCES])
    parser.add_argument("--dtypes", type=listed, default=["float32", "int8", "uint8"])
    parser.add_argument("--threads", type=listed, default=["1", "2"])
    parser.add_argument("--target", default="native")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--products", action="store_true")
    parser.add_argument("--convolutions", action="store_true")
    parser.add_argument("--json", action="store_true")
    peers.add_options(parser)
    chosen = parser.parse_args()
    peers.check_clock(parser, chosen.clock, max(map(int, chosen.threads)))
    return chosen


def cases(chosen: argparse.Namespace, folder: Path) -> Iterator[Case]:
    """The networks, compiled one after the other."""
    for model, dtype in product(chosen.models, chosen.dtypes):
        if dtype == "float32" or model in QUANTIZED:
            yield compiled(model, dtype, chosen.target, folder)


def network_table(rows: Sequence[Row], among: Sequence[Peer]) -> Table:
    """Networks' rows for people, and the ratios' means."""
    names = [peer.name for peer in among]
    table = Table(
        "model", "dtype", "threads", *peers.titles(names), "error", "compile s",
        caption=peers.machine_line(among), caption_justify="left",
    )  # fmt: skip
    for row in rows:
        behind = map(peers.shown, (row.error, row.compile_s))
        named = (row.model, row.dtype, str(row.threads))
        table.add_row(*named, *peers.cells(row.times, names), *behind)
    for title, cells in peers.summary([row.times for row in rows], names):
        table.add_row(title, "", "", *cells)
    return table


def operator_table(rows: Sequence[OperatorRow]) -> Table:
    """Operators' rows for people."""
    table = Table(*asdict(rows[0]))
    for row in rows:
        values = vars(row).values()
        table.add_row(*(peers.shown(v) if isinstance(v, float) else str(v) for v in values))
    return table


def main() -> None:
    """Prints the rows."""
    chosen, console = arguments(), peers.console()
    alone = [*(products() if chosen.products else ()),
             *(convolutions() if chosen.convolutions else ())]  # fmt: skip
    with TemporaryDirectory() as name:
        folder, rows = Path(name), list[Row]()
        if alone:
            results = [*operators(alone, folder, chosen.runs)]
            emit(results, operator_table(results), chosen.json)
            return
        for case in cases(chosen, folder):
            if chosen.layers:
                console.print(f"{case.model} {case.dtype}", layers(case.module, chosen.runs))
                continue
            counts = [n for n in map(int, chosen.threads) if n <= (os.cpu_count() or 1)]
            rows += [compare(case, chosen, threads) for threads in counts]
    if rows:
        emit(rows, network_table(rows, chosen.peers), chosen.json)


def emit(rows: Sequence[Row | OperatorRow], table: Table, as_json: bool) -> None:
    """Prints rows for programs or for people."""
    if as_json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        peers.console().print(table)


if __name__ == "__main__":
    main()
