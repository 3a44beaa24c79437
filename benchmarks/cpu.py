"""Networks on the processor: vdla's time beside onnxruntime's, interleaved, in one run.

    python benchmarks/cpu.py [--models resnet18,mobilenet,resnet50] [--dtypes float32,int8]
                             [--runs 30] [--layers] [--json]

Both run one image on one thread; onnxruntime has its default graph optimization. The network and
its weights are those of ``vdla/compiler/models``. A ratio is vdla's time over onnxruntime's: of the
shortest runs, which others' work on the machine disturbs least, and of the medians. ``error`` is
the largest difference of outputs over the largest output. ``--layers`` prints each function's time
instead.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import onnx
import onnxruntime
from rich.console import Console
from rich.table import Table

import vdla
from vdla.compiler.models import model_path, networks
from vdla.runtime.executor import Executor

FLOAT = {"resnet18": networks.resnet18, "mobilenet": networks.mobilenet,
         "resnet50": networks.resnet50}  # fmt: skip
QUANTIZED = ("resnet18", "mobilenet")


@dataclass(frozen=True)
class Row:
    """One network: times in milliseconds, of one image; ``onnxruntime`` is its version."""

    model: str
    dtype: str
    threads: int
    isa: str
    onnxruntime: str
    ours_ms: float
    onnxruntime_ms: float
    ratio: float
    median_ratio: float
    error: float
    compile_s: float


def isa() -> str:
    """The vector instructions that this processor has, by their newest extension."""
    found = llvm.get_host_cpu_features()
    names = {"amx-int8": "AMX", "avx512vnni": "AVX-512 VNNI", "avx512f": "AVX-512", "avx2": "AVX2",
             "neon": "NEON"}  # fmt: skip
    return next((name for key, name in names.items() if found.get(key)), "none")


def compare(model: str, dtype: str, path: Path, runs: int) -> Row:
    """Both on random images, in turns."""
    start = time.perf_counter()
    module = vdla.compile(path, device="cpu")
    compiled = time.perf_counter() - start
    ready = Executor(module)
    session = single_thread(path)
    rng = np.random.default_rng(0)
    image = {n: rng.standard_normal(module.tensors[n].shape).astype("f4") for n in module.inputs}
    (found,), (wanted,) = ready.run(image).outputs.values(), session.run(None, image)
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    ours, theirs = in_turns(runs, lambda: ready.run(image), lambda: session.run(None, image))
    return Row(
        model, dtype, 1, isa(), onnxruntime.__version__, 1e3 * min(ours), 1e3 * min(theirs),
        min(ours) / min(theirs), median(ours) / median(theirs), error, compiled,
    )  # fmt: skip


def single_thread(path: Path) -> Any:
    """A session of onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def in_turns(runs: int, *which: Callable[[], object]) -> list[list[float]]:
    """Seconds of each run of each, one after the other, after one run that doesn't count."""
    seconds: list[list[float]] = [[] for _ in which]
    for run in range(runs + 1):
        for one, times in zip(which, seconds, strict=True):
            start = time.perf_counter()
            one()
            if run:
                times.append(time.perf_counter() - start)
    return seconds


def path_of(model: str, dtype: str, folder: Path) -> Path:
    """The ONNX file of a network."""
    if dtype == "int8":
        return model_path(model)
    path = folder / f"{model}.onnx"
    onnx.save(FLOAT[model](), path)
    return path


def layers(path: Path, runs: int) -> Table:
    """Each function's shortest time."""
    module = vdla.compile(path, device="cpu")
    ready = Executor(module)
    image = {n: np.ones(module.tensors[n].shape, "f4") for n in module.inputs}
    best: dict[str, float] = {}
    for _ in range(runs):
        for step in ready.run(image).steps:
            best[step.name] = min(best.get(step.name, np.inf), step.seconds)
    table = Table("function", "ms", "%")
    total = sum(best.values())
    for name, seconds in best.items():
        table.add_row(name, f"{1e3 * seconds:.3f}", f"{100 * seconds / total:.1f}")
    return table


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default=",".join(FLOAT))
    parser.add_argument("--dtypes", default="float32,int8")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core
    console, rows = Console(), []
    with TemporaryDirectory() as folder:
        for model in arguments.models.split(","):
            for dtype in arguments.dtypes.split(","):
                if dtype == "int8" and model not in QUANTIZED:
                    continue
                path = path_of(model, dtype, Path(folder))
                if arguments.layers:
                    console.print(f"{model} {dtype}", layers(path, arguments.runs))
                else:
                    rows.append(compare(model, dtype, path, arguments.runs))
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows]))
    elif rows:
        table = Table(*asdict(rows[0]))
        for row in rows:
            table.add_row(
                *(f"{v:.3g}" if isinstance(v, float) else str(v) for v in vars(row).values())
            )
        console.print(table)


if __name__ == "__main__":
    main()
