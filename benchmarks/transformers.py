"""Transformers on the accelerator, and where their cycles go.

    python benchmarks/transformers.py [NAME ...] [-c CONFIG] [--blocks N] [--write FILE]

prints for each network the cycles of one input, the share of the array that they are, how many
operators are left to the host between the first and the last quantization, the cosine with
onnxruntime's output for the same file without fusion and whether both have the same best class, and
the seconds that compiling took. Then follow the cycles of each kind of operator, each by itself:
together they are more than those of the network, whose operators overlap.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import vdla
from vdla.analysis.ort import cosine, ort_run
from vdla.compiler.build import Options, accelerator_layers
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.models import transformers
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.transformers import SequenceBuilder, Sizes
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.isa.config import Config, load_config
from vdla.sim.machine import simulate

MARK, END = "<!-- BEGIN benchmarks/transformers.py -->\n", "<!-- END -->"
HEADS = ("network", "blocks", "cycles", "array", "host", "cosine", "best", "compiled")
ENDS = {"Quantize", "Dequantize", "Gather", "Reshape", "Transpose"}  # of floats, at the ends
VTHREADS = 2


@dataclass(frozen=True)
class Network:
    """A network that is quantized here: how it is built, its sizes, and its output."""

    build: Callable[[Sizes], SequenceBuilder]
    sizes: Sizes

    def builder(self, blocks: int | None) -> SequenceBuilder:
        """The network with all of its blocks, or with fewer."""
        return self.build(replace(self.sizes, blocks=blocks or self.sizes.blocks))


NETWORKS = {
    "vit": Network(transformers.vit, transformers.VIT_TINY),
    "bert": Network(transformers.bert, transformers.BERT_SMALL),
    "gpt2": Network(transformers.gpt2, transformers.GPT2_SMALL),
}


@dataclass(frozen=True)
class Row:
    """A network's figures: ``array`` is the share of its cycles that its multiply-adds would take;
    ``kinds`` are the cycles of each kind of operator, of one after the other."""

    name: str
    blocks: int
    cycles: int
    array: float
    host: int
    cosine: float
    same_best: bool
    seconds: float
    kinds: Mapping[str, int]

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        share, best = f"{100 * self.array:.1f} %", "same" if self.same_best else "other"
        numbers = f"{self.cycles:,}", share, str(self.host), f"{self.cosine:.4f}"
        return self.name, str(self.blocks), *numbers, best, f"{self.seconds:.0f} s"


def figures(name: str, config: Config, blocks: int | None, folder: Path) -> Row:
    """Quantizes, compiles and runs a network."""
    network, path = NETWORKS[name], folder / f"{name}.onnx"
    builder = network.builder(blocks)
    inputs = {"input": builder.values["input"]}
    quantize_model(builder.model(builder.nodes[-1].output[0]), path, [inputs])
    start = time.perf_counter()
    module = vdla.compile(str(path), config)
    seconds = time.perf_counter() - start
    result = vdla.run(module, inputs)
    assert result.cycles is not None
    rows, layers = module.metadata["placement"], module.metadata["layers"]
    host = sum(row["device"] == "cpu" and row["op"] not in ENDS for row in rows)
    macs = sum(layer["macs"] for layer in layers)
    (output,) = result.outputs.values()
    reference = next(iter(ort_run(path, inputs, fuse=False).values()))
    return Row(
        name,
        blocks or network.sizes.blocks,
        result.cycles,
        macs / (config.block_in * config.block_out) / result.cycles,
        host,
        cosine(output, reference),
        bool(np.array_equal(output.argmax(-1), reference.argmax(-1))),
        seconds,
        kinds(path, config),
    )


def kinds(path: Path, config: Config) -> dict[str, int]:
    """The cycles of each kind of operator, most first; operators of one size are run once."""
    operators, _ = accelerator_layers(import_onnx(path), config, Options())
    known, result = dict[object, int](), defaultdict[str, int](int)
    for operator in operators:
        size = operator.template.geometry
        if size not in known:
            layer = layer_program(operator, default_tile(size, config, VTHREADS), config)
            stream = layer.program
            run = simulate(config, stream.instructions, layer.dram, stream.base, numerics=False)
            known[size] = run.cycles
        result[operator.node.op] += known[size]
    return dict(sorted(result.items(), key=lambda pair: -pair[1]))


def page_text(rows: list[Row]) -> str:
    """Both tables for a page."""
    lines = [HEADS, ("---", *["---:"] * (len(HEADS) - 1)), *(row.cells for row in rows)]
    names = list(dict.fromkeys(kind for row in rows for kind in row.kinds))
    lines += [(), ("operator", *(row.name for row in rows)), ("---", *["---:"] * len(rows))]
    for kind in names:
        lines.append((f"`{kind}`", *(f"{row.kinds.get(kind, 0):,}" for row in rows)))
    return "".join(f"| {' | '.join(line)} |\n" if line else "\n" for line in lines)


def main() -> None:
    """Prints the figures, or writes them into a page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *NETWORKS], metavar="NAME")
    parser.add_argument("-c", "--config", default="paper-full")
    parser.add_argument("--blocks", type=int, help="so many blocks instead of all")
    parser.add_argument("--write", type=Path, metavar="FILE", help="rewrite the tables in a page")
    options = parser.parse_args()
    config = load_config(options.config)
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            figures(name, config, options.blocks, Path(folder))
            for name in options.names or NETWORKS
        ]
    if options.write:
        page = options.write.read_text()
        start = page.index(MARK) + len(MARK)
        end = page.index(END, start)
        options.write.write_text(page[:start] + page_text(rows) + page[end:])
        return
    table = Table(*HEADS)
    for row in rows:
        table.add_row(*row.cells)
    Console().print(table)
    for row in rows:
        listed = ", ".join(f"{kind} {cycles:,}" for kind, cycles in row.kinds.items())
        print(f"{row.name}: {listed}")


if __name__ == "__main__":
    main()
