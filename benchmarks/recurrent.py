"""Recurrent networks on the accelerator: cells written out step by step, and ONNX's operators.

    python benchmarks/recurrent.py [--write docs/results.md]

prints for each network its steps, the cycles of one sequence, how many operators are left to the
host between the first and the last quantization, the cosine with onnxruntime's output for the same
file, and the seconds that compiling took; whether all outputs are the host's, bit for bit, is
checked. Then follows the perplexity of ``characters`` on its test texts, run by the simulator.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import vdla
from vdla.analysis.ort import cosine, ort_run
from vdla.compiler.graph.types import Array
from vdla.compiler.models import characters_test, model_path, recurrent
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.recurrent import Sizes
from vdla.compiler.models.transformers import SequenceBuilder

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

import characters

MARK, END = "<!-- BEGIN benchmarks/recurrent.py -->\n", "<!-- END -->"
HEADS = ("network", "steps", "cycles", "host", "cosine", "compiled")
ENDS = {"Quantize", "Dequantize", "Gather", "Take", "Reshape"}  # of floats, before and behind
SAMPLES = 4
Inputs = Mapping[str, Array]


@dataclass(frozen=True)
class Network:
    """A network that is quantized here: how it is built, its output, and its steps."""

    name: str
    build: Callable[[], SequenceBuilder]
    output: str
    steps: int


def cells(kind: str, steps: int, features: int) -> Network:
    """Cells of one layer, written out."""
    sizes = Sizes(steps=steps, inputs=features, hidden=features)
    name = f"{kind.upper()} cells of {features}"
    return Network(name, lambda: recurrent.cells(kind, sizes), "states", steps)


def layers(op: str, steps: int, features: int) -> Network:
    """Two layers of an operator."""

    def build() -> SequenceBuilder:
        rng = np.random.default_rng(recurrent.SEED)
        data = rng.standard_normal((1, steps, features)).astype(np.float32)
        b = recurrent.OperatorBuilder(op, recurrent.SEED, data)
        first = b.recurrent(op, "first", b.transpose("steps", "input", (1, 0, 2)), features)
        b.transpose("states", b.recurrent(op, "second", first, features), (1, 0, 2))
        return b

    return Network(f"{op}, 2 of {features}", build, "states", steps)


NETWORKS = (
    cells("lstm", 50, 32),
    cells("gru", 8, 256),
    layers("LSTM", 50, 128),
    layers("GRU", 50, 128),
)


@dataclass(frozen=True)
class Row:
    """A network's figures; ``seconds`` are those of compiling."""

    name: str
    steps: int
    cycles: int
    host: int
    cosine: float
    seconds: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        numbers = f"{self.cycles:,}", str(self.host), f"{self.cosine:.4f}", f"{self.seconds:.0f} s"
        return self.name, str(self.steps), *numbers


def figures(name: str, path: Path, steps: int, inputs: Inputs, config: str) -> Row:
    """Compiles and runs a file.

    Raises:
        AssertionError: an output differs from the host's.
    """
    start = time.perf_counter()
    module = vdla.compile(str(path), config)
    seconds = time.perf_counter() - start
    result = vdla.run(module, inputs)
    wanted = vdla.run(vdla.compile(str(path), device="cpu"), inputs)
    for key, array in wanted.outputs.items():
        np.testing.assert_array_equal(result.outputs[key], array)
    rows = module.metadata["placement"]
    host = sum(row["device"] == "cpu" and row["op"] not in ENDS for row in rows)
    (output,) = result.outputs.values()
    reference = next(iter(ort_run(path, inputs, fuse=False).values()))
    assert result.cycles is not None
    return Row(name, steps, result.cycles, host, cosine(output, reference), seconds)


def quantized(network: Network, folder: Path) -> tuple[Path, Inputs]:
    """The file of a network, and an input."""
    builder, path = network.build(), folder / f"{network.name}.onnx"
    shape, rng = builder.values["input"].shape, np.random.default_rng(1)
    samples = [{"input": rng.standard_normal(shape).astype(np.float32)} for _ in range(SAMPLES)]
    quantize_model(builder.model(network.output), path, samples)
    return path, {"input": builder.values["input"]}


def all_figures(config: str) -> list[Row]:
    """The rows of all networks."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for network in NETWORKS:
            path, inputs = quantized(network, Path(folder))
            rows.append(figures(network.name, path, network.steps, inputs, config))
    texts, _ = characters_test()
    path, text = model_path("characters"), {"characters": texts[:1, :-1]}
    rows.append(figures("characters", path, text["characters"].shape[1], text, config))
    words = {"input": recurrent.texts()[:1]}
    steps = words["input"].shape[1]
    rows.append(figures("lstm-lm", model_path("lstm-lm"), steps, words, config))
    return rows


def perplexities(config: str) -> tuple[float, float]:
    """The perplexity of ``characters`` in int8, run by the simulator, and in floats."""
    texts, of_floats = characters_test()
    module = vdla.compile("characters", config)
    logits = [vdla.run(module, {"characters": t[None, :-1]}).outputs["logits"] for t in texts]
    return characters.perplexity(np.concatenate(logits), texts[:, 1:]), of_floats


def page_text(rows: list[Row], result: tuple[float, float]) -> str:
    """The table and the perplexities for a page."""
    lines = [HEADS, ("---", *["---:"] * (len(HEADS) - 1)), *(row.cells for row in rows)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    int8, floats = result
    return f"{table}\nPerplexity of `characters`: {int8:.4f} in int8, {floats:.4f} in floats.\n"


def main() -> None:
    """Prints the figures, or writes them into a page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-c", "--config", default="paper-plus")
    parser.add_argument("--write", type=Path, metavar="FILE", help="rewrite the table in a page")
    options = parser.parse_args()
    rows, result = all_figures(options.config), perplexities(options.config)
    if options.write:
        page = options.write.read_text()
        start = page.index(MARK) + len(MARK)
        end = page.index(END, start)
        options.write.write_text(page[:start] + page_text(rows, result) + page[end:])
        return
    table = Table(*HEADS)
    for row in rows:
        table.add_row(*row.cells)
    Console().print(table)
    print("perplexity of characters: {:.4f} in int8, {:.4f} in floats".format(*result))


if __name__ == "__main__":
    main()
