"""Measures schedules for processors again, in turns with the default ones: those that ship.

    python benchmarks/processor_records.py [--models resnet18,…] [--logs F,…] [--target x86-64-v3]
        [--runs 30] [--write] [--whole]

A model is also ``resnet18-float32``, the network before it is quantized.

Without ``--logs`` the bundled records are measured; with it, each function's few best schedules of
logs that ``vdla tune`` wrote. Each schedule and the default one run in turns, on one thread and on
two, and the ratio of their shortest runs counts: the larger one of the two. ``--write`` keeps in
the bundled file what is below 0.97 on this processor, and drops what isn't any more; records of
other processors and functions stay. ``--whole`` runs whole networks instead, with the bundled
records and with none, in turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from float_models import model_of
from rich.console import Console
from rich.table import Table

import vdla
from vdla.api.modules import random_inputs
from vdla.api.tuning import check_target, functions_of
from vdla.compiler.schedule.trace import Trace
from vdla.compiler.search.records import export, load
from vdla.compiler.targets.processor.search.bundled import BUNDLED_PATH
from vdla.compiler.targets.processor.search.function import ProcessorFunction
from vdla.compiler.targets.processor.search.stopwatch import ProcessorStopwatch
from vdla.compiler.targets.search.function_records import MAX_TIME_SHARE, FunctionRecord, Key
from vdla.compiler.targets.search.stopwatch import Timing, alike, in_turns, random_array
from vdla.options import Tune
from vdla.runtime.executor import Executor

THREADS = (1, 2)
CANDIDATES = 3  # of each function, the fastest in the logs
ROUNDS = 7  # of one call of in_turns


@dataclass(frozen=True)
class Measured:
    """A schedule measured again: what it took and what the default schedule took, by threads."""

    function: ProcessorFunction
    steps: Trace
    timings: Mapping[int, Timing]
    medians: Mapping[int, float]

    @property
    def ratio(self) -> float:
        """The larger ratio to the default schedule's time."""
        return max(timing.cost for timing in self.timings.values())

    @property
    def key(self) -> Key:
        """Key that its record is found by."""
        return self.function.digest, self.function.machine

    @property
    def record(self) -> FunctionRecord:
        """The record of what was measured on one thread."""
        return FunctionRecord.of(self.key, self.steps, self.timings[THREADS[0]])


def measured(function: ProcessorFunction, steps: Trace, runs: int) -> Measured:
    """A schedule and the default one, in turns, for each number of threads."""
    rng, timings, medians = np.random.default_rng(0), dict[int, Timing](), dict[int, float]()
    arrays = [random_array(param, rng) for param in function.params]
    for threads in THREADS:
        watch = ProcessorStopwatch(function, threads)
        both = [watch.runner(trace, arrays) for trace in (function.default, steps)]
        results = []
        for one in both:
            one.run()
            results.append(one.result().copy())
        assert alike(results[1], results[0])
        times: list[list[float]] = [[], []]
        for _ in range(-(-runs // ROUNDS)):
            for known, new in zip(times, in_turns(*(one.run for one in both)), strict=True):
                known += new
        default, own = times
        spread = median(own) / min(own) - 1
        timings[threads] = Timing("ok", "", min(own), min(default), spread)
        medians[threads] = median(own) / median(default)
    return Measured(function, steps, timings, medians)


def candidates(function: ProcessorFunction, records: Sequence[FunctionRecord]) -> list[Trace]:
    """The fastest schedules that records of any processor have for a function."""
    digest, most = function.digest, MAX_TIME_SHARE
    own = [r for r in records if r.function == digest and r.outcome.cost < most]
    best = sorted(own, key=lambda record: record.outcome.cost)
    distinct = {str(record.trace): record.steps for record in best}
    return list(distinct.values())[:CANDIDATES]


def measure_all(
    functions: Sequence[ProcessorFunction], records: Sequence[FunctionRecord], runs: int
) -> Iterator[tuple[ProcessorFunction, Measured]]:
    """The best schedule of every function that has one."""
    for function in functions:
        each = [measured(function, steps, runs) for steps in candidates(function, records)]
        if each:
            yield function, min(each, key=lambda one: one.ratio)


def whole(model: str, target: str, runs: int) -> Iterator[tuple[int, float]]:
    """A network's time with the bundled records over that with none, by threads: the sums of its
    steps' shortest times."""
    target = "native" if target == "cpu" else target
    modules = [vdla.compile(model, device="cpu", target=target, records=r) for r in ("none", None)]
    given = random_inputs(modules[0])
    for threads in THREADS:
        both = [(Executor(module, threads=threads), dict[str, float]()) for module in modules]
        for _ in range(runs):
            for one, shortest in both:
                for step in one.run(given).steps:
                    known = shortest.get(step.name, np.inf)
                    shortest[step.name] = min(known, step.seconds)
        none, bundled = (sum(shortest.values()) for _, shortest in both)
        yield threads, bundled / none


def main() -> None:
    """Measures what the options say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="resnet18")
    parser.add_argument("--logs", type=lambda text: [Path(each) for each in text.split(",")])
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--whole", action="store_true")
    asked = parser.parse_args()
    show = show_whole if asked.whole else show_functions
    with TemporaryDirectory() as folder:
        show(asked, {name: model_of(name, Path(folder)) for name in asked.models.split(",")})


def show_whole(asked: argparse.Namespace, models: Mapping[str, str]) -> None:
    """Prints the ratios of whole networks."""
    for name, path in models.items():
        for threads, ratio in whole(path, asked.target, asked.runs):
            print(f"{name} on {asked.target}, threads {threads}: {ratio:.3f}")


def show_functions(asked: argparse.Namespace, models: Mapping[str, str]) -> None:
    """Prints the ratios of functions; writes the records."""
    bundled = load(BUNDLED_PATH, FunctionRecord)
    records = [r for path in asked.logs or [BUNDLED_PATH] for r in load(path, FunctionRecord)]
    table = Table("function", *(f"threads {n}: shortest, median" for n in THREADS), "ships")
    kept, gone = list[FunctionRecord](), set[object]()
    options = Tune(Path("unused"), target=asked.target)
    for path in models.values():
        check_target(path, options)
        for function, result in measure_all(functions_of(path, options), records, asked.runs):
            cells = (f"{result.timings[n].cost:.3f}, {result.medians[n]:.3f}" for n in THREADS)
            ships = result.ratio < MAX_TIME_SHARE
            table.add_row(", ".join(function.layers), *cells, "yes" if ships else "no")
            gone.add(result.key)
            kept += [result.record] if ships else []
    Console().print(table)
    if asked.write:
        others = [record for record in bundled if record.key not in gone]
        print(f"{BUNDLED_PATH}: {export([*others, *kept], BUNDLED_PATH)} records")


if __name__ == "__main__":
    main()
