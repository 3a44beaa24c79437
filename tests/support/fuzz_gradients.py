"""Gradients of random ONNX models against finite differences, in float64.

    python tests/support/fuzz_gradients.py --seed 0 --models 1000

The loss is a random sum of all results. Where a central difference says another thing than a
gradient, one with a step a hundred times as small decides: a corner of a function may lie within
the first. Of every few models the gradients are compiled, too, and run on the processor.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from random_gradients import random_model

from tests.support.gradients import (
    STEP,
    differences,
    gradient_graph,
    random_weights,
    wide,
    wide_arrays,
)
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.executor import Executor

TOLERANCE = 1e-4  # of the largest gradient in an input, or of 1
SMALL = STEP / 100
STEEP = 1e4  # gradients above it are of models that say nothing
COMPILED = 10  # of so many models, the gradients of one are compiled
FLOAT32 = 5e-3
QUICK = Processor(quick=True)
Outcome = tuple[str, str]  # right, steep, refused or wrong; and why


def outcome(model: onnx.ModelProto, inputs: dict[str, np.ndarray], compiled: bool) -> Outcome:
    """What becomes of a model."""
    try:
        graph = import_model(model, "model", strict=True)
        weights = random_weights(graph)
        made = gradient_graph(graph, weights)
        values = wide_arrays(inputs)
        gradients = evaluate(wide(made), values)
        result = [gradients[name] for name in made.outputs]
        wanted = differences(wide(graph), values, weights)
    except Exception as error:  # whatever it is, it is a fault
        return "wrong", f"{type(error).__name__}: {error}"
    if not all(np.isfinite(w).all() and np.abs(w).max(initial=0) < STEEP for w in wanted):
        return "steep", ""
    if (text := unlike(graph, result, wanted)) is not None:
        again = differences(wide(graph), values, weights, SMALL)
        closer = [
            np.where(np.abs(a - g) < np.abs(b - g), a, b)
            for a, b, g in zip(again, wanted, result, strict=True)
        ]
        if (text := unlike(graph, result, closer)) is not None:
            return "wrong", text
    return on_processor(made, inputs, result) if compiled else ("right", "")


def unlike(graph: Graph, result: list[np.ndarray], wanted: list[np.ndarray]) -> str | None:
    """How gradients differ from what is wanted; None where they don't."""
    for name, a, b in zip(graph.inputs, result, wanted, strict=True):
        scale = max(np.abs(b).max(initial=0), 1)
        if not np.allclose(a, b, rtol=0, atol=TOLERANCE * scale):
            return f"in {name}: expected {b.tolist()}, found {a.tolist()}"
    return None


def on_processor(made: Graph, inputs: dict[str, np.ndarray], wanted: list[np.ndarray]) -> Outcome:
    """The gradients as compiled code has them, of float32."""
    try:
        module = compile_graph(made, load_config("tiny"), Options(device="cpu", processor=QUICK))
        outputs = Executor(module, CpuDevice(), threads=1).run(inputs).outputs
    except Exception as error:
        return "wrong", f"compiled: {type(error).__name__}: {error}"
    for name, b in zip(made.outputs, wanted, strict=True):
        scale = max(np.abs(b).max(initial=0), 1)
        if not np.allclose(outputs[name], b, rtol=0, atol=FLOAT32 * scale):
            return "wrong", f"compiled: expected {b.tolist()}, found {outputs[name].tolist()}"
    return "right", ""


def outcome_of(seed: int) -> tuple[int, Outcome, list[str]]:
    """A seed, what becomes of its model, and the model's operators."""
    model, inputs = random_model(seed)
    kind, text = outcome(model, inputs, seed % COMPILED == 0)
    if kind == "wrong":
        text = f"{text}\n{onnx.printer.to_text(model)}"
    return seed, (kind, text), [node.op_type for node in model.graph.node]


def main() -> None:
    """The command: exit code 1 when a gradient is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1, help="processes that share the models")
    options = parser.parse_args()
    began, counts, operators = time.monotonic(), Counter(), Counter()
    seeds = range(options.seed, options.seed + options.models)
    with ProcessPoolExecutor(options.workers) as pool:
        for seed, (kind, text), names in pool.map(outcome_of, seeds):
            counts[kind] += 1
            operators.update(names)
            if kind == "wrong":
                print(f"seed {seed}: {text}", flush=True)
    took = time.monotonic() - began
    print(
        f"seed {options.seed}, {options.models} models of {len(operators)} operators: "
        f"{counts['right']} right, {counts['steep']} too steep, {counts['wrong']} wrong; "
        f"{took:.0f} s"
    )
    raise SystemExit(bool(counts["wrong"]))


if __name__ == "__main__":
    main()
