"""Accuracy of a classifier before and after it is quantized, on samples with labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph.types import Array
from vdla.compiler.models.calibration import Samples
from vdla.compiler.models.noise import tensors_of

Progress = Callable[[str, int, int], None]
BEST = 5  # classes among which the label has to be


@dataclass(frozen=True)
class Accuracy:
    """Shares of the samples, 0 to 1, whose label is the best class, or one of the best five."""

    top1: float
    top5: float
    samples: int

    def __str__(self) -> str:
        return f"{100 * self.top1:.2f} % (top-5 {100 * self.top5:.2f} %)"


def read_labels(path: Path, *, any_shape: bool = False) -> Array:
    """Labels in a ``.npy`` file, or in a text of one number a line: a class for each sample, or
    with ``any_shape`` an array with an element for each.

    Raises:
        ModelError: it can't be read, or holds something else.
    """
    expected = "labels: a .npy of integers, or a text of one a line"
    try:
        if path.suffix == ".npy":
            labels = np.load(path)
        else:
            labels = np.array([int(line) for line in path.read_text().split()])
    except FileNotFoundError:
        raise ModelError(str(path), expected, "no file") from None
    except Exception as error:  # numpy, int and text decoding each raise their own
        raise ModelError(str(path), expected, error) from None
    if any_shape and labels.ndim:
        return np.asarray(labels)
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise ModelError(str(path), expected, f"{labels.dtype} of shape {list(labels.shape)}")
    return np.asarray(labels)


def check_labels(labels: Sequence[int] | Array, samples: Samples, where: str) -> None:
    """Raises ModelError unless there is a label for each sample."""
    if len(labels) != samples.samples:
        raise ModelError(where, f"a label for each of {samples.samples} samples", len(labels))


def accuracy(
    model: onnx.ModelProto,
    samples: Samples,
    labels: Sequence[int] | Array,
    progress: Progress = lambda what, done, total: None,
) -> Accuracy:
    """The accuracy of a model's first output, by onnxruntime without fused operators.

    Args:
        model: of floats, or quantized.
        samples: its inputs.
        labels: a class for each sample.
        progress: is told (what, done, of).

    Raises:
        ModelError: the output has no scores of classes, or a label is none of them.
    """
    output = model.graph.output[0].name
    run = tensors_of(model, [output])
    ranks: dict[int, int] = {}  # of each sample's label among the classes, 0 for the best
    for number, portion in enumerate(samples.portions):
        scores = run(samples[number])[output]
        scores = scores.reshape(len(scores), -1) if scores.size else scores
        own = np.asarray([labels[place] for place in portion])
        if len(scores) != len(portion):
            expected = f"scores for {len(portion)} samples in output {output}"
            raise ModelError(model.graph.name, expected, list(scores.shape))
        if own.min() < 0 or own.max() >= scores.shape[1]:
            wrong = own[(own < 0) | (own >= scores.shape[1])][0]
            raise ModelError(model.graph.name, f"labels below {scores.shape[1]}", int(wrong))
        best = scores[np.arange(len(own)), own]
        ranks |= dict(zip(portion, (scores > best[:, None]).sum(1), strict=True))
        progress("accuracy", number + 1, len(samples))
    all_ranks = np.array(list(ranks.values()))
    return Accuracy(float((all_ranks < 1).mean()), float((all_ranks < BEST).mean()), len(all_ranks))
