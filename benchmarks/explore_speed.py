"""Exact designs per second: how fast designs are compiled and simulated, beside ZigZag's model.

    python benchmarks/explore_speed.py [--designs 20] [--models resnet18-convs,resnet18]
                                       [--space default] [--seed 0] [--zigzag PYTHON]

One core. Designs are drawn from a space by chance; nothing is known of any before, so the first
ones are compiled from nothing and later ones share what their configs have in common. ``paced`` are
the same designs once more, with another pace of the memory: many of their kernels are known.
``stored`` are the same designs in another process, which finds their loops on disk (in the user's
cache).

``--zigzag`` names a Python that has zigzag-dse and six (``python -m venv V && V/bin/pip install
zigzag-dse six``). It evaluates ResNet-18 on its own TPU-like design in the same run, with its
default search of mappings (LOMA); what it answers is a model's estimate, not a compiled program's
cycles.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from random import Random
from statistics import fmean
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from vdla.explore.networks import Networks
from vdla.explore.space import IllegalError, Space, load_space
from vdla.isa.config import Config
from vdla.names.models import model_files
from vdla.sim.machine import warm_up

ZIGZAG = """
import logging, os
from importlib.resources import files
from zigzag.api import get_hardware_performance_zigzag
logging.disable(logging.CRITICAL)
inputs = files("zigzag") / "inputs"
start = sum(os.times()[:4])
get_hardware_performance_zigzag(
    workload=str(inputs / "workload" / "resnet18.onnx"),
    accelerator=str(inputs / "hardware" / "tpu_like.yaml"),
    mapping=str(inputs / "mapping" / "tpu_like.yaml"),
)
print(sum(os.times()[:4]) - start)
"""


def designs(space: Space, rng: Random) -> Iterator[Config]:
    """Legal designs, drawn by chance."""
    while True:
        try:
            yield space.design(space.random_point(rng))
        except IllegalError:
            continue


def seconds(networks: Networks, configs: Sequence[Config]) -> tuple[list[float], int]:
    """Processor seconds of each design that can run the networks, and how many can't: these are
    refused early, and would make the rate look better."""
    result, refused = [], 0
    for config in configs:
        start = time.process_time()
        runs = networks.exact(config)
        taken = time.process_time() - start
        if any(run.refusal for run in runs.values()):
            refused += 1
        else:
            result.append(taken)
    return result, refused


class Rate(NamedTuple):
    """Processor seconds of each design, the same with another memory, and how many were refused."""

    taken: list[float]
    paced: list[float]
    refused: int


def rate(model: str, configs: Sequence[Config], *, kept: bool) -> Rate:
    """Rate of designs in a process that knows no design, with loops on disk if ``kept``."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_rate, model, configs, kept).result()


def _rate(model: str, configs: Sequence[Config], kept: bool) -> Rate:
    networks = Networks(model_files(model), kept=kept)
    for config in configs:
        warm_up(config)
    taken, refused = seconds(networks, configs)
    slower = [replace(c, memory=replace(c.memory, latency=200)) for c in configs]
    return Rate(taken, seconds(networks, slower)[0], refused)


def zigzag(python: str) -> float:
    """Processor seconds that ZigZag takes for ResNet-18 on one design."""
    with tempfile.TemporaryDirectory() as folder:  # it writes its results where it runs
        done = subprocess.run(
            [python, "-c", ZIGZAG], capture_output=True, text=True, timeout=3600, cwd=folder
        )
    if done.returncode:
        raise SystemExit(f"{python}: expected zigzag-dse and six, found:\n{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=20)
    parser.add_argument("--models", default="resnet18-convs,resnet18")
    parser.add_argument("--space", default="default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--zigzag", metavar="PYTHON")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core
    drawn = designs(load_space(options.space), Random(options.seed))
    configs = [next(drawn) for _ in range(options.designs)]
    titles = "designs", "s each", "designs/s", "first", "paced", "stored", "refused"
    table = Table("evaluation", *titles)
    whole = 0.0
    for model in options.models.split(","):
        new = rate(model, configs, kept=False)
        rate(model, configs, kept=True)
        stored = rate(model, configs, kept=True)
        mean = fmean(new.taken)
        whole = mean if model == "resnet18" else whole
        table.add_row(
            f"vdla, {model}, exact", str(len(new.taken)), f"{mean:.2f}", f"{1 / mean:.2f}",
            f"{new.taken[0]:.2f}", f"{fmean(new.paced):.2f}", f"{fmean(stored.taken):.2f}",
            str(new.refused),
        )  # fmt: skip
    if options.zigzag:
        taken_there = zigzag(options.zigzag)
        ratio = f"{taken_there / whole:.0f}× vdla's" if whole else ""
        table.add_row("ZigZag, resnet18, LOMA", "1", f"{taken_there:.2f}", f"{1 / taken_there:.3f}",
                      ratio, "", "", "")  # fmt: skip
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
