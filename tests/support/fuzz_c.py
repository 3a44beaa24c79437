"""Random programs on runtime/c: its outputs are the executor's, to the bit, and so are its errors.

    python tests/support/fuzz_c.py --seed 7 --programs 100

Programs are those of fuzz_control.py, and the models of fuzz_loops.py, whose results are lists and
optional values, too. Each runs three times on one network, with one thread and with two.
"""

from __future__ import annotations

import argparse
import sys
from multiprocessing import get_context
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from in_c import InC
from random_control import random_program, sample
from random_loops import random_model

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import ModelError, import_model
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.errors import InputError
from vdla.runtime.executor import Executor
from vdla.runtime.plan import Onnx, Open

TINY = load_config("tiny")
OPTIONS = Options(device="cpu", processor=Processor(quick=True))


def alike(one, other) -> bool:
    """Whether two values are the same to the bit."""
    if isinstance(one, list) or one is None:
        return type(one) is type(other) and (one is None or len(one) == len(other)) and all(
            map(alike, one or (), other or ())
        )  # fmt: skip
    a, b = np.asarray(one), np.asarray(other)
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def outputs_of(run, inputs, refusals):
    """What a run gives: its outputs, or None where a loop or calls don't end."""
    try:
        return run(inputs)
    except refusals as error:
        if "expected an end" in str(error) or "calls inside one another" in str(error):
            return None
        raise


def fault(module, samples) -> str:
    """What differs; empty if nothing does."""
    executor = Executor(module, threads=1)
    for threads in (1, 2):
        in_c = InC(module, threads)
        for number, inputs in enumerate((*samples, samples[0]), start=1):
            wanted = outputs_of(lambda x: executor.run(x).outputs, inputs, InputError)
            actual = outputs_of(in_c.run, inputs, in_c.package.NetworkError)
            if (wanted is None) != (actual is None):
                return f"{threads} threads, run {number}: expected {wanted}, found {actual}"
            for name, value in (wanted or {}).items():
                if not alike(value, actual.get(name)):
                    text = f"{name}: expected {value}, found {actual.get(name)}"
                    return f"{threads} threads, run {number}: {text}"
    return ""


def program_fault(seed: int) -> str:
    """What is wrong with a program of a seed: every other one is an ONNX model."""
    if seed % 2:
        graph = random_program(seed)
        return fault(
            compile_graph(graph, TINY, OPTIONS), [sample(graph, seed), sample(graph, seed + 1)]
        )
    model, inputs = random_model(seed)
    try:
        module = compile_graph(import_model(model), TINY, OPTIONS)
    except ModelError:
        return ""
    if any(isinstance(step, Onnx | Open) for step in module.steps):
        return ""
    return fault(module, [inputs, inputs])


def outcome(seed: int) -> tuple[int, str]:
    """A seed and its fault; whatever is raised is one, too."""
    try:
        return seed, program_fault(seed)
    except Exception as error:
        return seed, f"{type(error).__name__}: {error}"


def main() -> int:
    """The command line; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=100)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.programs)
    wrong = 0
    with get_context("spawn").Pool(2, maxtasksperchild=20) as pool:
        for seed, text in pool.imap_unordered(outcome, seeds):
            if text:
                wrong += 1
                print(f"seed {seed}: {text}", flush=True)
    print(f"{options.programs} programs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
