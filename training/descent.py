"""Common parts of the training scripts: a loss, a falling rate, and a compiled step's loop.

Forward, loss, gradients and update are one function that vdla compiles, in float32.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vdla

Array = NDArray[Any]
Params = dict[str, Array]
Loss = Callable[..., Array]  # of parameters and a batch's arrays
REPORTS = 10  # progress lines of one training


def cross_entropy(logits: Array, wanted: Array) -> Array:
    """The mean cross-entropy in nats of logits [N, classes] for the classes [N]."""
    above = logits - logits.max(axis=1, keepdims=True)
    chosen = wanted.reshape(-1, 1) == np.arange(logits.shape[1])
    likely = np.sum(np.where(chosen, above, 0.0), axis=1)
    return np.mean(np.log(np.sum(np.exp(above), axis=1)) - likely)


def compiled(
    loss: Loss, optimizer: vdla.optim.Optimizer, most: float | None = None
) -> Callable[..., Any]:
    """A step of training: ``loss, params, state = step(params, state, batch, rate)``.

    Gradients of a greater norm than ``most`` are scaled to it.
    """

    @vdla.fn
    def step(params: Params, state: Any, batch: tuple[Array, ...], rate: np.float32) -> Any:
        error, slopes = vdla.value_and_grad(loss)(params, *batch)
        if most is not None:
            slopes = vdla.optim.clipped(slopes, most)
        return error, *optimizer.step(params, slopes, state, rate)

    return step


def descend(
    step: Callable[..., Any],
    optimizer: vdla.optim.Optimizer,
    params: Params,
    batches: Iterable[tuple[Array, ...]],
    rates: Array,
) -> tuple[Params, list[float]]:
    """Parameters after a step for each rate, and the losses of all steps; prints some of them."""
    state, losses = optimizer.start(params), list[float]()
    for number, (rate, batch) in enumerate(zip(rates, batches, strict=False), 1):
        error, params, state = step(params, state, batch, np.float32(rate))
        losses.append(float(error))
        if number % max(len(rates) // REPORTS, 1) == 0:
            print(f"step {number} of {len(rates)}: loss {losses[-1]:.4f}", flush=True)
    return params, losses


def falling(rate: float, steps: int, first: int = 1) -> Array:
    """Rates that rise to ``rate`` in the first steps, and fall to 0 along a cosine."""
    number = np.arange(1, steps + 1)
    return rate * np.minimum(1, number / first) * (1 + np.cos(np.pi * number / steps)) / 2


def folder_of(description: str) -> Path:
    """The folder that a script's command line names for its files."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    return Path(parser.parse_args().folder)
