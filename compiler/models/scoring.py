"""Scores of a network on samples: what a quantization may not make worse.

    SignalToNoise   its outputs beside those of the floats, in dB
    Task            the share of samples whose best class is their label, in %, or what a function
                    of the user's makes of all outputs

A score is larger for a better network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np
import onnx

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.python_files import named_in
from vdla.compiler.graph.types import Array
from vdla.compiler.models.accuracy import accuracy
from vdla.compiler.models.calibration import Samples
from vdla.compiler.models.noise import SignalSums, tensors_of

Outputs = Mapping[str, Array]
Metric = Callable[[Outputs, Array], float]
MOST_DECIBELS = 200.0  # of outputs without noise


class SignalToNoise:
    """The ratio of a network's outputs, of the one that loses most, in dB."""

    unit = "dB"

    def __init__(self, floats: onnx.ModelProto, samples: Sequence[Mapping[str, Array]]) -> None:
        self.samples = samples
        self.outputs = [value.name for value in floats.graph.output]
        run = tensors_of(floats, self.outputs)
        self.truth = [run(samples[number]) for number in range(len(samples))]

    def __call__(self, model: onnx.ModelProto) -> float:
        """The score of a quantized network."""
        run = tensors_of(model, self.outputs)
        sums = {name: SignalSums() for name in self.outputs}
        for number, truth in enumerate(self.truth):
            results = run(self.samples[number])
            for name, each in sums.items():
                if truth[name].dtype.kind == "f":
                    each.add(truth[name], results[name])
        return min(min(each.decibels, MOST_DECIBELS) for each in sums.values())


@dataclass(frozen=True)
class Task:
    """Worth of a network's outputs beside the labels of its samples.

    ``labels`` are those of all samples that ``samples.portions`` are places of. ``metric`` makes a
    number of all outputs, by their names, the samples along the first axes, and of their labels;
    None for the share of samples whose best class is their label, in %.
    """

    samples: Samples
    labels: Array
    metric: Metric | None = None

    @property
    def unit(self) -> str:
        """Name of the score."""
        return "%" if self.metric is None else getattr(self.metric, "__name__", "score")

    def __call__(self, model: onnx.ModelProto) -> float:
        """The score of a network, quantized or not.

        Raises:
            ModelError: the labels don't fit, or the user's function raises or gives no number.
        """
        if self.metric is None:
            return 100 * accuracy(model, self.samples, self.labels).top1
        outputs = self._all_outputs(model)
        places = sorted({place for portion in self.samples.portions for place in portion})
        name, expected = self.unit, "a number of the function --score"
        try:
            value = float(self.metric(outputs, self.labels[places]))
        except Exception as error:  # the user's own
            actual = f"{type(error).__name__}: {first_line(error)}"
            raise ModelError(name, expected, actual) from None
        if not isfinite(value):
            raise ModelError(name, expected, value)
        return value

    def _all_outputs(self, model: onnx.ModelProto) -> dict[str, Array]:
        names = [value.name for value in model.graph.output]
        run, rows = tensors_of(model, names), dict[str, dict[int, Array]]()
        for number, portion in enumerate(self.samples.portions):
            for name, tensor in run(self.samples[number]).items():
                if tensor.ndim == 0 or len(tensor) != len(portion):
                    expected = f"one element for each of {len(portion)} samples in output {name}"
                    raise ModelError(model.graph.name, expected, list(tensor.shape))
                rows.setdefault(name, {}).update(zip(portion, tensor, strict=True))
        return {name: np.stack([own[key] for key in sorted(own)]) for name, own in rows.items()}


def metric_of(text: str) -> Metric:
    """The function that ``FILE.py:NAME`` names.

    Raises:
        ModelError: there is no such file or function, or the file can't be run.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier():
        expected = "FILE.py:NAME of a function of outputs and labels"
        raise ModelError(text, expected, "no name behind a colon")
    metric: Metric = named_in(Path(file), name)[1]
    return metric
