"""One attention head of ViT-tiny on the accelerator, and when each of its parts runs.

    python benchmarks/attention.py [-c CONFIG] [--page FILE.html] [--trace FILE.json]
        [--plot FILE.svg] [--write FILE.md] [--length N]

prints when each layer of softmax(QKᵀ/√d)·V, with the dense layers before and behind it, starts and
ends: 197 vectors of 64 features, quantized with made-up weights. The page has the whole timeline,
the trace is that of ``vdla run --trace``, the plot shows when each layer has GEMM, ALU, LOAD and
STORE instructions in flight; ``--write`` rewrites the table in a page.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import vdla
from vdla.analysis.ort import cosine, ort_run
from vdla.analysis.report import run_page
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.transformers import SEED, VIT_TINY, SequenceBuilder
from vdla.isa.config import Config, load_config
from vdla.isa.ring import engines
from vdla.sim.machine import Run
from vdla.sim.trace import LAYERS, trace_events

SIZE = VIT_TINY.features // VIT_TINY.heads  # features of a head
NAME = "head"
MARK, END = "<!-- BEGIN benchmarks/attention.py -->\n", "<!-- END -->"
HEADS = ("layer", "first cycle", "last cycle", "cycles", "of all")
# What a layer is called after its operator, and else after its part of the head.
KINDS = {"QTransposeImage": "transposition", "QSoftmax": "softmax",
         "QAttention": "scores, softmax, product"}  # fmt: skip
PARTS = {"q": "queries", "k": "keys", "v": "values", "out": "output", "scores": "scores",
         "mixed": "product"}  # fmt: skip
PRODUCTS = ("QConv2d", "QMatMul")  # operators that are one part each
JOINED = 80  # cycles between two bars that the plot draws as one
COLOURS = {"GEMM": "#0072b2", "ALU": "#009e73", "LOAD": "#56b4e9", "STORE": "#d55e00"}


@dataclass(frozen=True)
class Head:
    """A run of the head; ``layers`` and ``stages`` have a name for each instruction."""

    run: Run
    layers: list[str]
    stages: list[str]
    cosine: float

    @property
    def extents(self) -> dict[str, tuple[int, int]]:
        """The first cycle of each layer, and the one behind its last, by their starts."""
        events = trace_events(self.run, self.layers)["traceEvents"]
        bars = [each for each in events if each.get("cat") == LAYERS]
        return {each["name"]: (each["ts"], each["ts"] + each["dur"]) for each in bars}


def head(config: Config, length: int = VIT_TINY.length) -> Head:
    """Quantizes, compiles and runs a head with the dense layers around it."""
    data = np.random.default_rng(SEED).standard_normal((1, length, SIZE)).astype(np.float32)
    builder = SequenceBuilder(NAME, SEED, data)
    inputs = {"input": data}
    model = builder.model(builder.attention(NAME, "input", 1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "head.onnx"
        quantize_model(model, path, [inputs])
        module = vdla.compile(str(path), config)
        (reference,) = ort_run(path, inputs, fuse=False).values()
    result = vdla.run(module, inputs)
    (output,) = result.outputs.values()
    streams = [step for step in result.steps if step.device and step.device.trace is not None]
    if len(streams) != 1:
        raise SystemExit(f"config {config.name}: expected one program, found {len(streams)}")
    (step,) = streams
    stream = module.metadata["streams"][step.name]
    known = titles(module.metadata["placement"])
    layers = [known.get(name, "") for name, count in stream["layers"] for _ in range(count)]
    return Head(step.device.trace, layers, stream["stages"], cosine(output, reference))


def titles(placement: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Titles of the layers; each differs from the others."""
    result, times = {}, Counter[str]()
    for row in placement:
        part = row["name"].removeprefix(f"{NAME}.").partition("_")[0].partition(".")[0]
        title = KINDS.get(row["op"], row["op"].removeprefix("Q").lower())
        if row["op"] in PRODUCTS:
            title = PARTS.get(part, title)
        if row["device"] == "vdla":
            times[title] += 1
            again = times[title] > 1
            result[row["name"]] = f"{title} {times[title]}" if again else title
    return result


def plot(result: Head, path: Path) -> None:
    """When each layer has instructions of each kind in flight, a row for a layer."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = NAME  # the same file for the same run
    from matplotlib import pyplot

    names = list(result.extents)
    figure, axes = pyplot.subplots(figsize=(9, 0.42 * len(names) + 1.3))
    for row, name in enumerate(names):
        for place, (kind, colour) in enumerate(COLOURS.items()):
            bars = [
                (int(start), int(finish) + 1 - int(start))
                for each, layer, start, finish in zip(
                    result.run.instructions, result.layers, result.run.start, result.run.finish,
                    strict=True,
                )
                if layer == name and each.mnemonic == kind
            ]  # fmt: skip
            axes.broken_barh(merged(bars), (row + 0.2 * place - 0.4, 0.18), color=colour)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, result.run.cycles)
    axes.set_xlabel(f"cycles on {result.run.config.name}")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    keys = [pyplot.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()]
    axes.legend(keys, COLOURS, loc="lower left", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def merged(bars: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Bars (start, length) with those joined that are less than ``JOINED`` cycles apart."""
    result: list[tuple[int, int]] = []
    for start, length in sorted(bars):
        if result and start - sum(result[-1]) < JOINED:
            first = result[-1][0]
            result[-1] = first, max(sum(result[-1]), start + length) - first
        else:
            result.append((start, length))
    return result


def main() -> None:
    """Prints the table, and writes what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-c", "--config", default="paper-full")
    parser.add_argument("--length", type=int, default=VIT_TINY.length, help="vectors of the head")
    parser.add_argument("--page", type=Path, metavar="FILE.html")
    parser.add_argument("--trace", type=Path, metavar="FILE.json")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="rewrite the table in a page")
    options = parser.parse_args()
    config = load_config(options.config)
    result = head(config, options.length)
    table = Table(*HEADS)
    for row in rows(result):
        table.add_row(*row)
    Console().print(table)
    print(f"{result.run.cycles:,} cycles on {config.name}, cosine {result.cosine:.5f}")
    if options.page:
        options.page.parent.mkdir(parents=True, exist_ok=True)
        options.page.write_text(page(result, options.length), "utf-8")
    if options.trace:
        events = trace_events(result.run, result.layers, result.stages)
        options.trace.write_text(json.dumps(events, separators=(",", ":")))
    if options.plot:
        plot(result, options.plot)
    if options.write:
        lines = [HEADS, ("---", *["---:"] * (len(HEADS) - 1)), *rows(result)]
        text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
        before, rest = options.write.read_text().split(MARK)
        options.write.write_text(f"{before}{MARK}{text}{rest[rest.index(END) :]}")


def rows(result: Head) -> list[tuple[str, ...]]:
    """A row for each layer, and one for the whole run."""
    extents = {**result.extents, "all": (0, result.run.cycles)}
    return [
        (name, f"{start:,}", f"{end - 1:,}", f"{end - start:,}",
         f"{100 * (end - start) / result.run.cycles:.1f} %")
        for name, (start, end) in extents.items()
    ]  # fmt: skip


def page(result: Head, length: int) -> str:
    """The page of a run."""
    names = [engine.name for engine in engines(result.run.config)]
    lead = (
        f"softmax(QKᵀ/√d)·V of {length} vectors of {SIZE} features and the dense layers around it, "
        f"int8: {result.run.cycles:,} cycles on {', '.join(names)}."
    )
    return run_page("one attention head", lead, result.run, result.layers, result.stages)


if __name__ == "__main__":
    main()
