"""Random ONNX models with control flow against onnxruntime, which runs each node as it stands.

    python tests/support/fuzz_loops.py --seed 7 --files 100

A model runs on the processor, and every few on the simulated accelerator: the outputs have the same
shapes and dtypes, and floats are alike. What onnxruntime refuses is no fault. What vdla refuses is
to be said in one line; the end lists what onnxruntime runs, with the first seed of each.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parent))

from random_loops import random_model

from vdla.analysis.ort import OnnxruntimeError, ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import ModelError, import_model
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

TINY = load_config("tiny")
QUICK = Processor(quick=True)
ON_SIM = 4  # of so many models, one runs on the simulator, too
RELATIVE = 1e-4
Outcome = tuple[str, str]  # equal, foreign (onnxruntime refuses), refused or wrong; and why


def differs(name: str, actual: object, wanted: object) -> str:
    """How an output differs from what is wanted; empty if it doesn't."""
    if isinstance(wanted, list) or isinstance(actual, list):
        if type(wanted) is not type(actual) or len(wanted) != len(actual):
            return f"{name}: expected {_text(wanted)}, found {_text(actual)}"
        parts = enumerate(zip(actual, wanted, strict=True))
        return next(filter(None, (differs(f"{name}[{n}]", *pair) for n, pair in parts)), "")
    a, b = np.asarray(actual), np.asarray(wanted)
    if a.dtype == b.dtype and a.size == b.size == 0:  # onnxruntime forgets the shape of no rows
        return ""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{name}: expected {_text(b)}, found {_text(a)}"
    if a.dtype.kind == "f":
        same = np.allclose(a, b, RELATIVE, 1e-5, equal_nan=True)
    else:
        same = np.array_equal(a, b)
    return "" if same else f"{name}: expected {b.tolist()}, found {a.tolist()}"


def _text(value: object) -> str:
    """An array's type, or a list's length."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)


def outcome(model: onnx.ModelProto, inputs: dict[str, np.ndarray], on_sim: bool) -> Outcome:
    """What becomes of a model."""
    try:
        wanted = ort_run(model, inputs, fuse=False)
    except OnnxruntimeError as error:
        return "foreign", str(error)
    try:
        graph = import_model(model)
        module = compile_graph(graph, TINY, Options(device="cpu", processor=QUICK))
        runs = [("processor", Executor(module, CpuDevice(), threads=1))]
        if on_sim:
            module = compile_graph(import_model(model), TINY, Options(processor=QUICK))
            runs.append(("simulator", Executor(module, SimDevice(TINY), threads=1)))
        for device, executor in runs:
            for _ in range(2):
                outputs = executor.run(inputs).outputs
                for name, value in wanted.items():
                    if text := differs(name, outputs[name], value):
                        return "wrong", f"{device}: {text}"
    except ModelError as error:
        one_line = "\n" not in str(error)
        return ("refused", str(error)) if one_line else ("wrong", f"two lines: {error}")
    except Exception as error:  # whatever it is, it is a fault
        return "wrong", f"{type(error).__name__}: {error}"
    return "equal", ""


def outcome_of(seed: int) -> tuple[int, Outcome]:
    """A seed, and what becomes of its model."""
    model, inputs = random_model(seed)
    kind, text = outcome(model, inputs, seed % ON_SIM == 0)
    if kind == "wrong":
        least = shrunk(model, inputs, seed, text)
        text = f"{text}\n{onnx.printer.to_text(least)}"
    return seed, (kind, text)


# Shrinking --------------------------------------------------------------------------------------


def shrunk(
    model: onnx.ModelProto, inputs: dict[str, np.ndarray], seed: int, text: str
) -> onnx.ModelProto:
    """A model with fewer outputs and nodes that is wrong in the same way."""
    start, on_sim = re.split(r"[:\d]", text)[0], seed % ON_SIM == 0

    def fails(other: onnx.ModelProto) -> bool:
        kind, reason = outcome(other, inputs, on_sim)
        return kind == "wrong" and reason.startswith(start)

    while smaller := next(filter(fails, _smaller(model)), None):
        model = smaller
    return model


def _smaller(model: onnx.ModelProto):
    """Models with one output alone, or whose graphs have fewer nodes."""
    names = [value.name for value in model.graph.output]
    for name in names if len(names) > 1 else ():
        yield _pruned(model, [value for value in model.graph.output if value.name == name])
    made = [n for node in model.graph.node for n in node.output if n and n not in names]
    for name in reversed(made) if len(names) == 1 else ():
        yield _pruned(model, [onnx.ValueInfoProto(name=name)])
    whole = _pruned(model, model.graph.output)
    if whole.ByteSize() < model.ByteSize():
        yield whole


def _pruned(model: onnx.ModelProto, outputs: Sequence[onnx.ValueInfoProto]) -> onnx.ModelProto:
    """A model less nodes that nobody reads."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    ends = [*outputs]
    del copy.graph.output[:]
    copy.graph.output.extend(ends)
    for _ in range(8):
        _prune(copy.graph, {value.name for value in ends})
    return copy


def _prune(graph: onnx.GraphProto, needed: set[str]) -> set[str]:
    """Removes nodes and constants that nobody reads, also in graphs inside; what is read."""
    kept = []
    for node in reversed(graph.node):
        if needed & {*node.output} - {""}:
            kept.append(node)
            needed |= {*node.input}
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    needed |= _prune(attribute.g, {value.name for value in attribute.g.output})
    nodes = [*reversed(kept)]
    weights = [tensor for tensor in graph.initializer if tensor.name in needed]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    tensors = [onnx.TensorProto.FromString(tensor.SerializeToString()) for tensor in weights]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(copies)
    graph.initializer.extend(tensors)
    return needed


# Many of them -----------------------------------------------------------------------------------


@dataclass
class Report:
    """What became of models; ``refusals`` are of what onnxruntime runs, with their first seeds."""

    counts: Counter[str] = field(default_factory=Counter)
    refusals: dict[str, list[int]] = field(default_factory=dict)

    def add(self, seed: int, kind: str, text: str) -> None:
        """Counts a model."""
        self.counts[kind] += 1
        if kind == "refused":
            reason = re.sub(r"\b[a-z]\d+\b|\d+", "#", text.partition(": expected")[2])
            self.refusals.setdefault(reason, []).append(seed)


def main() -> None:
    """The command: exit code 1 when a model is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1, help="processes that share the models")
    options = parser.parse_args()
    began, report = time.monotonic(), Report()
    seeds = range(options.seed, options.seed + options.files)
    with ProcessPoolExecutor(options.workers) as pool:  # which tells where onnxruntime ends it
        for seed, (kind, text) in pool.map(outcome_of, seeds):
            report.add(seed, kind, text)
            if kind == "wrong":
                print(f"seed {seed}: {text}", flush=True)
    for reason, own in sorted(report.refusals.items(), key=lambda each: -len(each[1])):
        print(f"refused {len(own)}, first seed {own[0]}: expected{reason}")
    counts, took = report.counts, time.monotonic() - began
    print(
        f"seed {options.seed}, {options.files} models: {counts['equal']} equal, "
        f"{counts['foreign']} that onnxruntime refuses, {counts['refused']} refused, "
        f"{counts['wrong']} wrong; {took:.0f} s"
    )
    raise SystemExit(bool(counts["wrong"]))


if __name__ == "__main__":
    main()
