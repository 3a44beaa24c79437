"""Random configs times random networks: the simulator's outputs are the host's, bit for bit.

    python tests/support/fuzz.py --seed 7 --pairs 100

Pair ``n`` is network ``n // CONFIGS`` on the ``n``-th config. Each ends in one of three ways: its
outputs are equal, the compiler refuses it by a UserError, or it fails: another exception, a
deadlock, an output that differs, or more than LIMIT seconds. A failure is shrunk to fewer layers
and fewer settings and printed as what to type.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parent))

from random_configs import random_settings, smaller_settings
from random_networks import Network, random_network

from vdla.compiler.build import Options, compile_model
from vdla.farm.processes import ProcessPool
from vdla.farm.work import Job, JobPool
from vdla.isa.config import load_config
from vdla.names.farms import farm_pool
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module
from vdla.support.errors import UserError

CONFIGS = 5  # that each network meets
LIMIT = 60  # seconds of a pair
HOST = load_config("tiny")  # of a module for the processor alone: it means nothing there

Outputs = Mapping[str, Any]
Part = tuple[int, int, bool]  # pairs from one number to before another, and whether to shrink


@dataclass(frozen=True)
class Pair:
    """A network and the settings of a config, over ``tiny``."""

    number: int
    network: Network
    settings: tuple[str, ...]

    @classmethod
    def of(cls, number: int) -> Pair:
        """The pair of a number; the same ever after."""
        settings = random_settings(Random(number))
        return cls(number, random_network(number // CONFIGS), tuple(settings))

    def __str__(self) -> str:
        options = " ".join(f"--set {each}" for each in self.settings)
        return f"pair {self.number}: {self.network}\n  -c tiny {options}"

    def smaller(self) -> Iterator[Pair]:
        """Pairs with a smaller network, then with a setting less."""
        yield from (replace(self, network=each) for each in self.network.smaller())
        fewer = smaller_settings(self.settings)
        yield from (replace(self, settings=tuple(each)) for each in fewer)


@dataclass
class Report:
    """How many pairs ended how. ``layers`` counts the accelerator's, over all pairs."""

    equal: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failed: dict[int, str] = field(default_factory=dict)
    layers: int = 0

    def merge(self, other: Report) -> None:
        """Adds what other pairs came to."""
        self.equal += other.equal
        self.refused += other.refused
        self.failed |= other.failed
        self.layers += other.layers

    def __str__(self) -> str:
        failed = Counter(text.partition(":")[0] for text in self.failed.values())
        return (
            f"equal {self.equal}, refused {self.refused.total()}, failed {len(self.failed)} "
            f"{dict(failed) or ''}; layers on the accelerator {self.layers}"
        )


class Newest:
    """A function that keeps its newest value. Unlike ``functools.lru_cache``'s it can be sent to
    machines that don't have this file."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.args: tuple[Any, ...] | None = None
        self.value: Any = None

    def __call__(self, *args: Any) -> Any:
        """The function's value."""
        if args != self.args:
            self.value, self.args = self.function(*args), args
        return self.value


class TooLong(Exception):
    """A pair that takes more than LIMIT seconds."""


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raises TooLong in the block when it takes longer."""

    def stop(*_: object) -> None:
        raise TooLong(f"expected an end within {seconds} s, found none")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def inputs_of(module: Module) -> dict[str, Any]:
    """Inputs that reach beyond what the quantization can hold."""
    rng = np.random.default_rng(1)
    return {
        name: rng.uniform(-6, 6, module.tensors[name].shape).astype(np.float32)
        for name in module.inputs
    }


def saved(network: Network) -> Path:
    """The network's ONNX file, which stays until the process ends."""
    path = Path(_folder().name, "network.onnx")
    onnx.save(network.model(), path)
    return path


@Newest
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@Newest
def expected(network: Network) -> Outputs:
    """What the host computes."""
    module = compile_model(saved(network), HOST, Options(device="cpu"))
    return Executor(module, CpuDevice()).run(inputs_of(module)).outputs


def run(pair: Pair) -> int:
    """Runs a pair on the simulator; the layers that the accelerator took.

    Raises:
        UserError: the compiler refuses it.
        Exception: whatever else is a failure.
    """
    config = load_config("tiny", pair.settings)
    with limited(LIMIT):
        wanted = expected(pair.network)
        options = Options(min_fill=0.5 if pair.number % CONFIGS == 0 else 0.0)
        module = compile_model(saved(pair.network), config, options)
        found = Executor(module, SimDevice(config)).run(inputs_of(module)).outputs
    for name, array in wanted.items():
        assert np.array_equal(array, found[name]), f"{name}: expected what the host has"
    return sum(row["device"] == "vdla" for row in module.metadata["placement"])


def failure(pair: Pair, report: Report | None = None) -> str:
    """What is wrong with a pair; nothing where it is equal or refused."""
    report = Report() if report is None else report
    try:
        report.layers += run(pair)
    except UserError as error:
        report.refused[str(error).partition(":")[0]] += 1
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    report.equal += 1
    return ""


def shrunk(pair: Pair, fails: Callable[[Pair], bool]) -> Pair:
    """The smallest pair that still fails, of those that ``smaller`` leads to."""
    while smaller := next(filter(fails, pair.smaller()), None):
        pair = smaller
    return pair


def fuzz(seed: int, pairs: int, *, shrink: bool = True, pool: JobPool | None = None) -> Report:
    """Runs pairs ``seed`` to ``seed + pairs - 1``; prints each that fails, as small as it gets.

    A pool's processes share them, a network's at a time.
    """
    firsts = sorted({seed, *range(seed - seed % CONFIGS + CONFIGS, seed + pairs, CONFIGS)})
    parts = list(zip(firsts, [*firsts[1:], seed + pairs], [shrink] * len(firsts), strict=True))
    report = Report()
    results = _shared(pool, parts) if pool else (run_part(*part) for part in parts)
    for part, texts in results:
        report.merge(part)
        for text in texts:
            print(text, flush=True)
    return report


def _shared(pool: JobPool, parts: Sequence[Part]) -> Iterator[tuple[Report, list[str]]]:
    """What becomes of parts in a pool; one that nobody can run fails as a whole."""
    for number, answer in pool.run(Job(run_part, part) for part in parts):
        first, end, _ = parts[number]
        lost = Report(failed=dict.fromkeys(range(first, end), f"{answer.status}: {answer.note}"))
        yield answer.value or (lost, [f"pairs {first} to {end - 1}: {answer.note}"])


def run_part(first: int, end: int, shrink: bool) -> tuple[Report, list[str]]:
    """Runs pairs ``first`` to ``end - 1``; how they ended, and a text for each that failed."""
    report, texts = Report(), []
    for number in range(first, end):
        pair = Pair.of(number)
        if text := failure(pair, report):
            report.failed[number] = text
            kind = text.partition(":")[0]
            if shrink:
                pair = shrunk(pair, lambda p, kind=kind: failure(p).startswith(f"{kind}:"))
            texts.append(f"{text[:400]}\n  {pair}")
    return report, texts


def main() -> None:
    """The command: exit code 1 when a pair fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--workers", type=int, default=1, help="processes that share the pairs")
    parser.add_argument("--farm", metavar="ADDRESS", help="have a farm's machines share them")
    options = parser.parse_args()
    began = time.monotonic()
    if options.farm:
        chosen = farm_pool(options.farm, None, False, print)
    else:
        chosen = ProcessPool(options.workers) if options.workers > 1 else nullcontext()
    with chosen as pool:
        report = fuzz(options.seed, options.pairs, shrink=not options.no_shrink, pool=pool)
    took = time.monotonic() - began
    print(f"seed {options.seed}, {options.pairs} pairs: {report}; {took:.0f} s")
    raise SystemExit(bool(report.failed))


if __name__ == "__main__":
    main()
