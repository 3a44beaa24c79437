"""Random networks in files quantized in all ways, against onnxruntime without its optimizations.

    python tests/support/fuzz_quantizations.py --seed 7 --files 100

File ``n`` is network ``n`` by recipe ``n`` (``quantizations.py``). It runs on the processor, on the
simulated ``paper-full``, and on one of ``paper-plus``, ``paper-ring`` and the ``n``-th drawn
config.

What holds: where the recipe is exact, no operator rounds, and two interpreters of floats agree to
the bit, onnxruntime and numpy, whose sums are in different orders, each device gives these bits.
Elsewhere a float that lies between two steps may round either way, and softmax, normalizations and
constants in integers keep to what ``vdla run --check`` asks of a whole network (decisions 21 and
48). A refusal is right only for a file that quantizes nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parent))

from quantizations import Recipe, inputs_of, is_plain, network, quantized
from random_configs import random_options, random_settings
from random_graphs import listing, shrunk

from vdla.analysis.ort import OnnxruntimeError, cosine, ort_run
from vdla.compiler.build import Options, compile_graph, rewritten_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.normalize import QNormalize
from vdla.compiler.graph.passes.affine import spell_affine
from vdla.compiler.graph.passes.pieces import join_pieces
from vdla.compiler.graph.passes.spellings import respell
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import Config, load_config
from vdla.runtime.devices.named import make_device
from vdla.runtime.executor import Executor
from vdla.support.errors import UserError

QUICK = Processor(quick=True)
NOTHING = "expected a quantized (QDQ) model"
COSINE, LARGEST = 0.999, 0.15  # of a whole network; the share of its largest value


@dataclass
class Report:
    """How many files ended how: ``exact`` to the bit on every device, ``close`` within the claims,
    ``bare`` that quantize nothing, ``foreign`` that onnxruntime doesn't take."""

    exact: int = 0
    close: int = 0
    bare: int = 0
    foreign: int = 0
    layers: int = 0
    failed: dict[int, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"to the bit {self.exact}, within the claims {self.close}, nothing quantized "
            f"{self.bare}, onnxruntime refuses {self.foreign}, failed {len(self.failed)}; "
            f"layers on the accelerator {self.layers}"
        )


def configs(seed: int) -> dict[str, Config]:
    """The configs that a file runs on."""
    draw = Random(seed)
    settings = random_options(draw, random_settings(draw))
    others = {
        "paper-plus": lambda: load_config("paper-plus"),
        "paper-ring": lambda: load_config("paper-ring"),
        "drawn": lambda: load_config("tiny", settings),
    }
    name = list(others)[seed % len(others)]
    return {"paper-full": load_config("paper-full"), name: others[name]()}


def is_exact(graph: Graph, config: Config) -> bool:
    """Whether a config's integers are those of the file: no softmax, no normalization, no constant
    of floats in int8."""
    rewritten, _ = rewritten_graph(graph, config)
    kinds = {type(node) for node in rewritten.nodes}
    spelled = respell(spell_affine(graph))
    counts = [sum(isinstance(n, ops.Dequantize) for n in g.nodes) for g in (graph, spelled)]
    whole = join_pieces(spelled) is spelled and counts[0] == counts[1]
    return whole and not kinds & {QSoftmax, QNormalize}


def fault(model: onnx.ModelProto, recipe: Recipe, seed: int, report: Report | None = None) -> str:
    """What is wrong with the file of a network; empty if nothing is."""
    report = Report() if report is None else report
    try:
        file, inputs = quantized(model, recipe, seed), inputs_of(model, recipe, seed)
        want = ort_run(file, inputs, fuse=False)
    except OnnxruntimeError:
        report.foreign += 1
        return ""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.onnx"
        onnx.save(file, path)
        try:
            graph = import_onnx(path)
        except UserError as error:
            report.bare += NOTHING in str(error)
            return "" if NOTHING in str(error) else f"import: {error}"
    values, exact = evaluate(graph, inputs), recipe.exact and not recipe.tool and is_plain(model)
    names = dict(zip(graph.outputs, want, strict=True))
    exact = exact and all(np.array_equal(values[ours], want[n]) for ours, n in names.items())
    if what := far(values, want, names):
        return f"numpy: {what}"
    runs = {"cpu": (load_config("tiny"), Options(device="cpu", processor=QUICK))}
    for name, config in configs(seed).items():
        runs[name] = config, Options(processor=QUICK)
    alike = exact
    for which, (config, options) in runs.items():
        module = compile_graph(graph, config, options)
        device = "cpu" if which == "cpu" else "sim"
        got = Executor(module, make_device(module, device, config)).run(inputs).outputs
        report.layers += sum(row["device"] == "vdla" for row in module.metadata["placement"])
        bits = exact and (which == "cpu" or is_exact(graph, config))
        alike = alike and bits
        what = unlike(got, want, names) if bits else far(got, want, names)
        if what:
            return f"{which}: {what}"
    report.exact += alike
    report.close += not alike
    return ""


def unlike(got: dict, want: dict, names: dict) -> str:
    """The first output that isn't the reference's to the bit."""
    for ours, name in names.items():
        if not np.array_equal(got[ours], want[name]):
            gap = np.abs(got[ours].astype(np.float64) - want[name])
            most = np.abs(want[name]).max()
            count = f"{np.count_nonzero(gap)} of {gap.size} differ"
            return f"{name}: {count}, by {gap.max():.3g} of {most:.3g}"
    return ""


def far(got: dict, want: dict, names: dict) -> str:
    """The first output that is farther from the reference's than a whole network's may be."""
    for ours, name in names.items():
        a, b = got[ours].astype(np.float64), want[name].astype(np.float64)
        most = max(float(np.abs(b).max()), 1e-6)
        gap = float(np.abs(a - b).max()) / most
        alike = cosine(a, b) if b.any() else 1.0
        if not (gap <= LARGEST and alike >= COSINE):
            return f"{name}: cosine {alike:.5f}, off by {gap:.3g} of the largest"
    return ""


def attempt(model: onnx.ModelProto, recipe: Recipe, seed: int, report: Report | None = None) -> str:
    """What is wrong, an exception being wrong, too."""
    try:
        return fault(model, recipe, seed, report)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def fuzz(seed: int, files: int, shrink: bool = True, seconds: float = float("inf")) -> Report:
    """Runs files ``seed`` to ``seed + files - 1``; prints each that fails, as small as it gets."""
    report, end = Report(), time.monotonic() + seconds
    for number in range(seed, seed + files):
        if time.monotonic() > end:
            break
        model = network(number)
        recipe = Recipe.of(number, model)
        if what := attempt(model, recipe, number, report):
            report.failed[number] = what
            kind = what.partition(":")[0]
            if shrink:

                def fails(m: onnx.ModelProto, number=number, recipe=recipe, kind=kind) -> bool:
                    return attempt(m, recipe, number).startswith(kind)

                model = shrunk(model, fails)
                what = f"{what}\n  least: {attempt(model, recipe, number)}"
            print(f"file {number}: {what}\n  {recipe}\n{listing(model)}", flush=True)
    return report


def main() -> None:
    """The command: exit code 1 when a file fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--no-shrink", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    report = fuzz(options.seed, options.files, not options.no_shrink)
    took = time.monotonic() - began
    print(f"seed {options.seed}, {options.files} files: {report}; {took:.0f} s")
    for what, count in Counter(text[:80] for text in report.failed.values()).items():
        print(f"  {count} × {what}")
    raise SystemExit(bool(report.failed))


if __name__ == "__main__":
    main()
