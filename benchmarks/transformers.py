"""Transformers on the accelerator, and where their cycles go.

    python benchmarks/transformers.py [NAME ...] [-c CONFIG] [--blocks N] [--write FILE]

prints for each network the cycles of one input, the share of the array that they are, how many
operators are left to the host between the first and the last quantization, and the seconds that
compiling took. Its outputs for several inputs are compared with onnxruntime's for the same file
without fusion: the lowest cosine, beside that of onnxruntime with fusion, which is what rounding
elsewhere is worth in this network; and the share of vectors whose best class is the same, or tied:
the reference's rounding moves it as far. The graph's interpreter computes them, which the simulator
agrees with bit for bit; of the first input that is checked. Then follow the cycles of each kind of
operator, each by itself: together they are more than those of the network, whose operators overlap;
and the accuracy of the trained ``patches`` on its test images.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import vdla
from vdla.analysis.difference import TOLERANCE, output_step
from vdla.analysis.ort import cosine, ort_run
from vdla.compiler.build import Options, accelerator_layers, placed_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Array
from vdla.compiler.models import digits_test, model_path, patches_accuracy, transformers
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.transformers import SequenceBuilder, Sizes
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.isa.config import Config, load_config
from vdla.sim.machine import simulate

MARK, END = "<!-- BEGIN benchmarks/transformers.py -->\n", "<!-- END -->"
HEADS = ("network", "blocks", "cycles", "array", "host", "cosine", "fused", "best", "compiled")
ENDS = {"Quantize", "Dequantize", "Gather", "Reshape", "Transpose"}  # of floats, at the ends
VTHREADS = 2
TRAINED = "Accuracy of the trained `patches`: {:.2f} % in int8, {:.2f} % in floats."
WIDTH = 110  # characters of the table


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
class Agreement:
    """Outputs for some inputs against onnxruntime's without fusion: the lowest ``cosine``, and that
    of onnxruntime with fusion; of all ``vectors``, those with the ``same`` best class, and those
    whose best classes are ``tied``."""

    cosine: float
    fused: float
    vectors: int
    same: int
    tied: int

    @classmethod
    def of(cls, output: Array, reference: Array, fused: Array, step: float) -> Agreement:
        """The agreement of one output whose neighbouring values are a ``step`` apart."""
        ours, want, other = (
            each.reshape(-1, each.shape[-1]) for each in (output, reference, fused)
        )
        best = ours.argmax(-1)
        same = best == want.argmax(-1)
        behind = want.max(-1) - np.take_along_axis(want, best[:, None], -1)[:, 0]
        rounding = np.maximum(np.abs(other - want).max(-1), step)
        tied = ~same & (behind <= rounding * (1 + TOLERANCE))
        cosines = cosine(output, reference), cosine(fused, reference)
        return cls(*cosines, len(best), int(same.sum()), int(tied.sum()))

    def __add__(self, other: Agreement) -> Agreement:
        lowest = min(self.cosine, other.cosine), min(self.fused, other.fused)
        both = zip(self.counts, other.counts, strict=True)
        return Agreement(*lowest, *(a + b for a, b in both))

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of vectors: all, those with the same best class, and those with tied ones."""
        return self.vectors, self.same, self.tied

    @property
    def cells(self) -> tuple[str, str, str]:
        """The agreement as text."""
        best = f"{self.same:,} of {self.vectors:,}" + f", {self.tied:,} tied" * (self.tied > 0)
        return f"{self.cosine:.4f}", f"{self.fused:.4f}", best


@dataclass(frozen=True)
class Row:
    """A network's figures: ``array`` is the share of its cycles that its multiply-adds would take;
    ``kinds`` are the cycles of each kind of operator, of one after the other."""

    name: str
    blocks: int
    cycles: int
    array: float
    host: int
    agreement: Agreement
    seconds: float
    kinds: Mapping[str, int]

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        numbers = f"{self.cycles:,}", f"{100 * self.array:.1f} %", str(self.host)
        return self.name, str(self.blocks), *numbers, *self.agreement.cells, f"{self.seconds:.0f} s"


def figures(name: str, config: Config, blocks: int | None, folder: Path) -> Row:
    """Quantizes, compiles and runs a network."""
    network, path = NETWORKS[name], folder / f"{name}.onnx"
    builder = network.builder(blocks)
    samples = builder.samples
    quantize_model(builder.model(builder.nodes[-1].output[0]), path, samples)
    start = time.perf_counter()
    module = vdla.compile(str(path), config)
    seconds = time.perf_counter() - start
    result = vdla.run(module, samples[0])
    assert result.cycles is not None
    rows, layers = module.metadata["placement"], module.metadata["layers"]
    host = sum(row["device"] == "cpu" and row["op"] not in ENDS for row in rows)
    macs = sum(layer["macs"] for layer in layers)
    (output,) = result.outputs.values()
    return Row(
        name,
        blocks or network.sizes.blocks,
        result.cycles,
        macs / (config.block_in * config.block_out) / result.cycles,
        host,
        agreement(path, config, samples, output),
        seconds,
        kinds(path, config),
    )


def agreement(
    path: Path, config: Config, samples: Sequence[Mapping[str, Array]], first: Array
) -> Agreement:
    """The agreement of the graph that is compiled with onnxruntime, for some inputs.

    Raises:
        AssertionError: the ``first`` output, of a device, isn't that of the graph.
    """
    graph, _ = placed_graph(import_onnx(path), config)
    step, parts = output_step(graph), list[Agreement]()
    for inputs in samples:
        output = evaluate(graph, inputs)[graph.outputs[0]]
        assert parts or np.array_equal(output, first), f"{path.stem}: the device's output differs"
        want, fused = (next(iter(ort_run(path, inputs, fuse).values())) for fuse in (False, True))
        parts.append(Agreement.of(output, want, fused, step))
    return reduce(Agreement.__add__, parts)


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


def accuracy(config: Config) -> tuple[float, float]:
    """The shares of the test images that ``patches`` names right: in int8, and in floats."""
    images, labels = digits_test()
    graph, _ = placed_graph(import_onnx(model_path("patches")), config)
    logits = [evaluate(graph, {"input": x[None]})[graph.outputs[0]] for x in images]
    best = np.concatenate(logits).argmax(-1)
    return float((best == labels).mean()), patches_accuracy()


def page_text(rows: list[Row], shares: tuple[float, float]) -> str:
    """Both tables for a page, and the accuracy."""
    lines = [HEADS, ("---", *["---:"] * (len(HEADS) - 1)), *(row.cells for row in rows)]
    names = list(dict.fromkeys(kind for row in rows for kind in row.kinds))
    lines += [(), ("operator", *(row.name for row in rows)), ("---", *["---:"] * len(rows))]
    for kind in names:
        lines.append((f"`{kind}`", *(f"{row.kinds.get(kind, 0):,}" for row in rows)))
    tables = "".join(f"| {' | '.join(line)} |\n" if line else "\n" for line in lines)
    return f"{tables}\n{TRAINED.format(*(100 * share for share in shares))}\n"


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
        options.write.write_text(page[:start] + page_text(rows, accuracy(config)) + page[end:])
        return
    table = Table(*HEADS)
    for row in rows:
        table.add_row(*row.cells)
    Console(width=WIDTH).print(table)
    for row in rows:
        listed = ", ".join(f"{kind} {cycles:,}" for kind, cycles in row.kinds.items())
        print(f"{row.name}: {listed}")
    print(TRAINED.format(*(100 * share for share in accuracy(config))))


if __name__ == "__main__":
    main()
