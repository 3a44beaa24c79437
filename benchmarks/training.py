"""Time of training: an epoch of vdla over one of PyTorch, on one core.

    python benchmarks/training.py [digits patches characters] [--rounds N] [--profile]

trains the networks of the scripts in ``training``, some steps by vdla and as many by PyTorch in
turns, with Adam and the same batches. Times are those of the shortest turn, and so what an epoch
takes of such steps: of ``characters``, as many texts as its documents have room for. Compiling
isn't counted, and has a column of its own. PyTorch runs its modules as they are, eagerly.
``--profile`` prints what takes most of a step of vdla.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F

import vdla
from vdla.analysis.profile import profile
from vdla.runtime.executor import Executor

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

import characters
import descent
import digits
import patches

Array = NDArray[Any]
Batch = tuple[Array, Array]
STEPS = 20  # of a turn
LONGEST = 12  # rows of a profile
HEADS = ("network", "steps an epoch", "vdla, s", "PyTorch, s", "ratio", "compiled in, s")


@dataclass(frozen=True)
class Training:
    """One network for both: its loss and parameters for vdla, and a module of PyTorch."""

    loss: descent.Loss
    params: descent.Params
    batches: Iterator[Batch]
    epoch: int
    module: nn.Module
    most: float | None = None


class PatchesBlock(nn.Module):
    """A block of the vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        n = patches.SIZES.features
        self.norm1, self.norm2 = nn.LayerNorm(n), nn.LayerNorm(n)
        self.qkv, self.out = nn.Linear(n, 3 * n), nn.Linear(n, n)
        self.mlp = nn.Sequential(nn.Linear(n, 4 * n), nn.GELU(), nn.Linear(4 * n, n))

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(self.norm1(x)).unflatten(-1, (3, patches.SIZES.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out(mixed)
        return x + self.mlp(self.norm2(x))


class Patches(nn.Module):
    """The vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        sizes, taps = patches.SIZES, patches.PATCH + 2 * patches.OVERLAP
        self.patches = nn.Conv2d(1, sizes.features, taps, patches.PATCH, patches.OVERLAP)
        self.token = nn.Parameter(torch.zeros(1, 1, sizes.features))
        self.places = nn.Parameter(torch.zeros(1, sizes.length, sizes.features))
        self.blocks = nn.Sequential(*(PatchesBlock() for _ in range(sizes.blocks)))
        self.norm = nn.LayerNorm(sizes.features)
        self.head = nn.Linear(sizes.features, patches.CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x)[:, 0]))


class Characters(nn.Module):
    """The language model."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters.CHARACTERS, characters.FEATURES)
        self.lstm = nn.LSTM(characters.FEATURES, characters.HIDDEN, batch_first=True)
        self.head = nn.Linear(characters.HIDDEN, characters.CHARACTERS)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(self.embedding(x))[0])


def digits_training() -> Training:
    """The convolutional network."""
    x, labels, *_ = digits.load()
    rng = np.random.default_rng(0)
    first, second = digits.CHANNELS
    module = nn.Sequential(
        nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(second, 10),
    )  # fmt: skip
    batches, count = digits.batches(x, labels, rng), len(x) // digits.BATCH
    return Training(digits.loss, digits.initial(rng), batches, count, module)


def patches_training() -> Training:
    """The vision transformer; both move images by numpy."""
    x, labels, *_ = digits.load()
    batches = patches.batches(x, labels, np.random.default_rng(0))
    params, count = patches.initial(patches.network()), len(x) // digits.BATCH
    return Training(patches.loss, params, batches, count, Patches())


def characters_training() -> Training:
    """The language model."""
    text, _ = characters.documents()
    rng = np.random.default_rng(0)
    batches = characters.batches(text, characters.BATCH, rng)
    count = len(text) // (characters.LENGTH * characters.BATCH)
    params, most = characters.parameters(rng), characters.MOST
    return Training(characters.loss, params, batches, count, Characters(), most)


TRAININGS: Mapping[str, Callable[[], Training]] = {
    "digits": digits_training,
    "patches": patches_training,
    "characters": characters_training,
}


class ByVdla:
    """Steps of the compiled function."""

    def __init__(self, training: Training) -> None:
        self.adam = vdla.optim.Adam()
        self.step = descent.compiled(training.loss, self.adam, training.most)
        self.params, self.state = training.params, self.adam.start(training.params)

    def run(self, batch: Batch) -> None:
        """One step."""
        rate = np.float32(1e-3)
        _, self.params, self.state = self.step(self.params, self.state, batch, rate)

    def profile(self, batch: Batch) -> None:
        """Prints the functions that take most of a step."""
        arguments = self.params, self.state, batch, np.float32(1e-3)
        module = self.step.compile(*arguments)
        inputs = dict(zip(module.inputs, flat(arguments), strict=True))
        steps = profile(Executor(module), inputs).steps
        table = Table("function", "operator", "ms", "share")
        for each in sorted(steps, key=lambda each: -(each.seconds or 0))[:LONGEST]:
            share, ms = f"{100 * (each.share or 0):.0f} %", f"{1e3 * (each.seconds or 0):.3f}"
            table.add_row(each.title, each.op, ms, share)
        Console().print(table)


def flat(value: object) -> list[Array]:
    """The arrays of nested tuples and dicts, in the order of a graph's inputs."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flat(value[key])]
    if isinstance(value, tuple):
        return [leaf for each in value for leaf in flat(each)]
    return [np.asarray(value)]


class ByTorch:
    """Steps of PyTorch's."""

    def __init__(self, training: Training) -> None:
        self.module, self.most = training.module, training.most
        self.adam = torch.optim.Adam(self.module.parameters(), lr=1e-3)

    def run(self, batch: Batch) -> None:
        """One step."""
        x, wanted = (torch.from_numpy(np.ascontiguousarray(each)) for each in batch)
        self.adam.zero_grad()
        logits = self.module(x)
        F.cross_entropy(logits.flatten(0, -2), wanted.flatten()).backward()
        if self.most is not None:
            nn.utils.clip_grad_norm_(self.module.parameters(), self.most)
        self.adam.step()


def seconds(run: Callable[[Batch], None], batches: list[Batch]) -> float:
    """The mean time of a step over some batches, which are made before."""
    start = time.perf_counter()
    for batch in batches:
        run(batch)
    return (time.perf_counter() - start) / len(batches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(TRAININGS))
    parser.add_argument("--rounds", type=int, default=10, help="turns of each of the two")
    parser.add_argument("--profile", action="store_true", help="what takes most of vdla's step")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    table = Table(*HEADS)
    for name in arguments.networks or TRAININGS:
        training = TRAININGS[name]()
        some = [next(training.batches) for _ in range(STEPS)]
        ours, theirs = ByVdla(training), ByTorch(training)
        compiling = seconds(ours.run, some[:1])
        seconds(theirs.run, some)
        turns = [(seconds(ours.run, some), seconds(theirs.run, some))
                 for _ in range(arguments.rounds)]  # fmt: skip
        mine, other = (training.epoch * min(column) for column in zip(*turns, strict=True))
        table.add_row(
            name, str(training.epoch), f"{mine:.3f}", f"{other:.3f}", f"{mine / other:.2f}",
            f"{compiling:.1f}",
        )  # fmt: skip
        if arguments.profile:
            ours.profile(some[0])
    Console().print(table)


if __name__ == "__main__":
    main()
