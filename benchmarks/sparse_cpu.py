"""Dense layers whose weights are zero in blocks, on the processor: how much less time they take.

    python benchmarks/sparse_cpu.py [--sizes 1024,2048] [--batches 1,8,32]
                                    [--zeros 0.4,0.5,0.8,0.9] [--dtypes float32,int8]
                                    [--runs 40] [--json]

Of each layer there are two: one with blocks of 16 outputs by 16 inputs that are zero at random, and
one without, which vdla computes as it does all dense layers. A ratio is the time of the latter over
that of the former, of the layer's function alone, on one thread, in turns (``benchmarks/cpu.py``):
of the shortest runs and of the medians. ``error`` is the largest difference from onnxruntime over
the largest output; of int8 it is that of the quantized network. ``blocks`` says whether the zero
blocks were left out at all: where few are zero, both layers run the same code.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from peers import session_of
from rich.console import Console
from rich.table import Table

import vdla
from vdla.compiler.models.quantizer import quantize_model
from vdla.runtime.executor import Executor

BLOCK = 16
OWN = ".blocks"  # ends the name of the constant that has the blocks that aren't zero


@dataclass(frozen=True)
class Row:
    """One layer: microseconds with and without zero blocks, and by what factor they differ."""

    dtype: str
    size: int
    batch: int
    zeros: float
    blocks: bool
    sparse_us: float
    dense_us: float
    ratio: float
    median_ratio: float
    error: float


def layer(size: int, batch: int, zeros: float) -> onnx.ModelProto:
    """A dense layer of ``size`` inputs and outputs, this share of whose blocks are zero."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((size, size)).astype(np.float32)
    keep = rng.random((size // BLOCK, size // BLOCK)) >= zeros
    weight *= keep.repeat(BLOCK, 0).repeat(BLOCK, 1)
    known = {"w": weight, "b": rng.standard_normal(size).astype(np.float32)}
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (batch, size)) for n in ("x", "y"))
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], "layer", transB=1)
    values = [numpy_helper.from_array(value, name) for name, value in known.items()]
    graph = helper.make_graph([node], "layer", [x], [y], values)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


@dataclass(frozen=True)
class Ready:
    """A compiled layer, with what it is run on and by how much its result is off."""

    module: Any
    executor: Executor
    given: dict[str, Any]
    error: float

    @property
    def blocks(self) -> bool:
        """Whether zero blocks are left out."""
        return any(name.endswith(OWN) for name in self.module.tensors)

    def seconds(self) -> float:
        """Duration of the longest of the network's functions, the layer."""
        return max(step.seconds for step in self.executor.run(self.given).steps)


def ready(dtype: str, size: int, batch: int, zeros: float, folder: Path) -> Ready:
    """A layer, compiled for one thread of this processor."""
    path, model = folder / "layer.onnx", layer(size, batch, zeros)
    given = {"x": np.random.default_rng(1).standard_normal((batch, size)).astype(np.float32)}
    if dtype == "int8":
        quantize_model(model, path, [given])
    else:
        onnx.save(model, path)
    module = vdla.compile(path, device="cpu")
    executor = Executor(module, threads=1)
    (result,) = executor.run(given).outputs.values()
    (want,) = session_of(str(path), 1).run(None, given)
    return Ready(module, executor, given, float(np.abs(result - want).max() / np.abs(want).max()))


def in_turns(runs: int, *which: Callable[[], float]) -> list[list[float]]:
    """The seconds of each, in turns; before each that counts is one that doesn't."""
    seconds: list[list[float]] = [[] for _ in which]
    for _ in range(runs):
        for one, times in zip(which, seconds, strict=True):
            one()
            times.append(one())
    return seconds


def rows(chosen: argparse.Namespace) -> Iterator[Row]:
    """Every layer with zero blocks beside the one without."""
    for dtype, size, batch in product(chosen.dtypes, chosen.sizes, chosen.batches):
        with TemporaryDirectory() as folder:
            dense = ready(dtype, size, batch, 0.0, Path(folder))
            for zeros in chosen.zeros:
                sparse = ready(dtype, size, batch, zeros, Path(folder))
                ours, theirs = in_turns(chosen.runs, sparse.seconds, dense.seconds)
                yield Row(
                    dtype, size, batch, zeros, sparse.blocks, 1e6 * min(ours), 1e6 * min(theirs),
                    min(theirs) / min(ours), median(theirs) / median(ours), sparse.error,
                )  # fmt: skip


def listed(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """A reader of several values with commas between them."""
    return lambda text: [kind(each) for each in text.split(",")]


def main() -> None:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=listed(int), default=[1024, 2048])
    parser.add_argument("--batches", type=listed(int), default=[1, 8, 32])
    parser.add_argument("--zeros", type=listed(float), default=[0.4, 0.5, 0.8, 0.9])
    parser.add_argument("--dtypes", type=listed(str), default=["float32", "int8"])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    layers = list(rows(chosen))
    if chosen.json:
        print(json.dumps([asdict(row) for row in layers], indent=1))
        return
    table = Table("dtype", "size", "batch", "zeros", "blocks", "us", "dense us", "ratio",
                  "by medians", "error")  # fmt: skip
    for row in layers:
        table.add_row(
            row.dtype, str(row.size), str(row.batch), f"{row.zeros:.0%}",
            "left out" if row.blocks else "all", f"{row.sparse_us:.1f}", f"{row.dense_us:.1f}",
            f"{row.ratio:.2f}", f"{row.median_ratio:.2f}", f"{row.error:.1e}",
        )  # fmt: skip
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
