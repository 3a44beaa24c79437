"""Weights of a quantized network, trained so that it gives what its floats give.

    codes      v of each chosen layer's weights: real numbers, in steps of their scales
    forward    w = (rint(v) - zero) · scale, in the QDQ network with all that it rounds
    loss       the noise of the outputs beside those of the floats, over the signal
    backward   rounding is passed straight through (arXiv:1308.3432): dv = dw · scale
    update     Adam in steps of codes, so that one rate is right for all layers

Labels aren't needed. Scales, zero points and ranges stay, and so do all cycles; so do weights whose
floats are 0, which a network that was pruned leaves out. Some samples are held back: of the codes
at a few moments, and of those before, the best on these are kept.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, log10
from typing import cast

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.autodiff.grad import grad
from vdla.compiler.autodiff.optim import Adam, State
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph.types import Array
from vdla.compiler.models.calibration import Samples, held_back
from vdla.compiler.models.layers import QUANTIZED
from vdla.compiler.models.noise import spread, tensors_of
from vdla.compiler.tracing.control import scan
from vdla.compiler.tracing.fn import fn
from vdla.compiler.tracing.network import Network

Progress = Callable[[str, int, int], None]
Codes = dict[str, Array]  # by the names of the tensors that layers read

BATCH = 8  # samples of a step
RATE = 0.02  # steps of codes that the first step of training moves one
HELD_RATIO = 4  # every so many-th sample is held back
CHECKS = 20  # times that the loss of those is measured
SEED = 0
WITHIN = 0.25  # steps that a code begins beside its integer, at most: half of the way to another
TINY = 1e-30  # a signal's least power
LIMITS = {  # of codes, by the element types of a file's integers
    onnx.TensorProto.INT4: (-8, 7),
    onnx.TensorProto.UINT4: (0, 15),
    onnx.TensorProto.INT8: (-127, 127),
    onnx.TensorProto.UINT8: (0, 255),
}


@dataclass(frozen=True)
class Tuning:
    """A network that was tuned, and the signal-to-noise ratio of its outputs on samples that are
    held back, in dB, before and after; ``layers`` are those whose weights were trained."""

    model: onnx.ModelProto
    layers: Sequence[str]
    before: float
    after: float

    def to_json(self) -> dict[str, object]:
        """The layers and the ratios for JSON, which has no infinity: None where nothing is lost."""
        ratios = {"before": self.before, "after": self.after}
        finite = {name: ratio if isfinite(ratio) else None for name, ratio in ratios.items()}
        return {"layers": list(self.layers), **finite}


@dataclass(frozen=True)
class _Weight:
    """The weights of a layer: the tensor that it reads, the name and the type of its integers.

    ``start`` are its codes as training begins, of which ``codes`` are the nearest integers; the
    other arrays broadcast to them. ``free`` is 0 where a code stays.
    """

    name: str
    stored: str
    kind: int
    layers: set[str]
    start: Array
    codes: Array
    scale: Array
    zero: Array
    free: Array

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest code."""
        return LIMITS[self.kind]


def finetuned(
    floats: onnx.ModelProto,
    quantized: onnx.ModelProto,
    samples: Samples,
    layers: set[str],
    steps: int,
    where: str = "model",
    progress: Progress = lambda what, done, total: None,
) -> Tuning:
    """A quantized network whose weights give more of what its floats give.

    Args:
        floats: the network before it was quantized; outputs and constants go by the same names.
        quantized: its QDQ form.
        samples: inputs by name, one sample after another.
        layers: names of the nodes whose weights are trained.
        steps: of training, BATCH samples each.
        where: opens errors.
        progress: is told (what, done, of).

    Raises:
        TraceError: a result follows from weights by an operator without a gradient.
        ModelError: a network has what can't be a graph, or onnxruntime doesn't run the floats.
    """
    weights = [each for each in _weights(quantized, floats) if layers & each.layers]
    if not weights:
        return Tuning(quantized, (), inf, inf)
    seen, held = held_back(samples, HELD_RATIO)
    training = _Training(_with_floats(quantized, weights), where, weights, floats)
    codes = {each.name: each.start for each in weights}
    best, before = codes, training.noise(codes, held)
    least, state = before, training.adam.start(codes)
    rates, every = _falling(steps), max(steps // CHECKS, 1)
    for number, batch in zip(range(steps), _batches(seen), strict=False):
        codes, state = training.step(codes, state, batch, rates[number])
        if (number + 1) % every == 0 and (noise := training.noise(codes, held)) < least:
            best, least = codes, noise
        progress("fine-tuning", number + 1, steps)
    names = [name for each in weights for name in sorted(each.layers)]
    return Tuning(_stored(quantized, weights, best), names, _decibels(before), _decibels(least))


def layers_with_weights(quantized: onnx.ModelProto) -> list[str]:
    """The nodes of a quantized network that have weights to train."""
    return [name for each in _weights(quantized) for name in sorted(each.layers)]


def _falling(steps: int) -> Array:
    """Rates that fall to 0 along a cosine."""
    turn = np.arange(steps, dtype=np.float32) / max(steps, 1)
    return RATE * (1 + np.cos(np.pi * turn)) / 2


def _batches(samples: Samples) -> Iterator[Sequence[Mapping[str, Array]]]:
    """Samples of one step after another, each once before any comes again."""
    rng = np.random.default_rng(SEED)
    size = min(BATCH, len(samples))
    while True:
        order = rng.permutation(len(samples))
        for start in range(0, len(order) - size + 1, size):
            yield [samples[place] for place in order[start : start + size]]


def _decibels(noise: float) -> float:
    return -10 * log10(noise) if noise > 0 else inf


class _Training:
    """Compiled functions of a network's codes: a step of training, and the noise of samples."""

    def __init__(
        self,
        model: onnx.ModelProto,
        where: str,
        weights: Sequence[_Weight],
        floats: onnx.ModelProto,
    ) -> None:
        self.net, self.weights, self.adam = Network(model, where), weights, Adam(RATE)
        outputs = {value.name: value.type.tensor_type.elem_type for value in model.graph.output}
        self.names = [n for n, kind in outputs.items() if kind == onnx.TensorProto.FLOAT]
        self.places = [place for place, name in enumerate(outputs) if name in self.names]
        if not self.names:
            raise ModelError(where, "an output of floats, to compare with", ", ".join(outputs))
        self.truth = tensors_of(floats, self.names)
        self._step, self._noise = fn(self._moved), fn(self._noise_of)

    def step(
        self, codes: Codes, state: State, batch: Sequence[Mapping[str, Array]], rate: float
    ) -> tuple[Codes, State]:
        """Codes and the state after a step."""
        return self._step(codes, state, *self._stacked(batch), np.asarray(rate, np.float32))

    def noise(self, codes: Codes, samples: Samples) -> float:
        """The mean noise of samples, over their signal."""
        parts = [self._noise(codes, *self._stacked([samples[n]])) for n in range(len(samples))]
        return float(np.mean(parts))

    def _stacked(self, batch: Sequence[Mapping[str, Array]]) -> tuple[Codes, list[Array]]:
        """Inputs by name and the floats' outputs, of all samples of a batch."""
        inputs = {name: np.stack([each[name] for each in batch]) for name in self.net.inputs}
        truths = [self.truth(each) for each in batch]
        return inputs, [np.stack([each[name] for each in truths]) for name in self.names]

    # What is traced ---------------------------------------------------------------------------

    def _rounded(self, codes: Codes) -> Codes:
        """The weights that codes stand for."""
        return {
            each.name: (np.rint(codes[each.name]) - each.zero) * each.scale for each in self.weights
        }

    def _loss(self, weights: Codes, inputs: Codes, truth: Sequence[Array]) -> Array:
        """The noise of a sample's outputs over their signal, in the mean of all outputs."""
        results = self.net(weights, *(inputs[name] for name in self.net.inputs))
        several = results if isinstance(results, tuple) else (results,)
        pairs = zip([several[place] for place in self.places], truth, strict=True)
        parts = [np.sum((y - t) ** 2) / (np.sum(t * t) + TINY) for y, t in pairs]
        mean: Array = sum(parts[1:], parts[0]) / len(parts)
        return mean

    def _noise_of(self, codes: Codes, inputs: Codes, truth: Sequence[Array]) -> Array:
        """The noise of samples over their signal, in the mean."""
        weights = self._rounded(codes)

        def turn(total: Array, each: tuple[Codes, Sequence[Array]]) -> tuple[Array, None]:
            return total + self._loss(weights, *each), None

        total, _ = scan(turn, np.zeros((), np.float32), (inputs, truth))
        return total / len(truth[0])

    def _moved(
        self, codes: Codes, state: State, inputs: Codes, truth: Sequence[Array], rate: Array
    ) -> tuple[Codes, State]:
        """Codes and the state after a step, sample by sample forward and back."""
        weights = self._rounded(codes)

        def turn(total: Codes, each: tuple[Codes, Sequence[Array]]) -> tuple[Codes, None]:
            slopes = cast("Codes", grad(self._loss)(weights, *each))
            return {name: total[name] + slopes[name] for name in total}, None

        zeros = {each.name: np.zeros(each.codes.shape, np.float32) for each in self.weights}
        slopes, _ = scan(turn, zeros, (inputs, truth))
        steps = {each.name: slopes[each.name] * (each.scale * each.free) for each in self.weights}
        moved, state = self.adam.step(codes, steps, state, rate)
        limits = {each.name: each.limits for each in self.weights}
        return {name: np.clip(moved[name], *limits[name]) for name in moved}, state


# Weights of files --------------------------------------------------------------------------------


def _weights(quantized: onnx.ModelProto, floats: onnx.ModelProto | None = None) -> list[_Weight]:
    """The weights of a network: constants of bytes or nibbles that are dequantized."""
    constants = {tensor.name: tensor for tensor in quantized.graph.initializer}
    before = {tensor.name: tensor for tensor in (floats or quantized).graph.initializer}
    result = []
    for node in quantized.graph.node:
        stored = constants.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if stored is None or stored.data_type not in LIMITS:
            continue
        readers = {each.name for each in quantized.graph.node if node.output[0] in each.input}
        known = before.get(node.input[0].removesuffix(QUANTIZED))
        array = numpy_helper.to_array(known) if known is not None else None
        result.append(_weight(node, stored, constants, readers, array))
    return result


def _weight(
    node: onnx.NodeProto,
    stored: onnx.TensorProto,
    constants: Mapping[str, onnx.TensorProto],
    layers: set[str],
    floats: Array | None,
) -> _Weight:
    """The weights that a node dequantizes, which begin at what they were before."""
    codes = numpy_helper.to_array(stored).astype(np.float32)
    parts = [numpy_helper.to_array(constants[name]) for name in node.input[1:3]]
    scale, zero = (
        spread(node, each.astype(np.float32), codes.shape)
        for each in (*parts, np.zeros((), np.float32))[:2]
    )
    start, free = codes, np.ones((), np.float32)
    if floats is not None and floats.shape == codes.shape:
        start = codes + np.clip(floats / scale + zero - codes, -1, 1) * WITHIN
        free = (floats != 0).astype(np.float32)
    kept = start.astype(np.float32), codes, scale, zero, free
    return _Weight(node.output[0], stored.name, stored.data_type, layers, *kept)


def _with_floats(model: onnx.ModelProto, weights: Sequence[_Weight]) -> onnx.ModelProto:
    """A network whose weights are constants of floats."""
    result, names = copy.deepcopy(model), {each.name for each in weights}
    kept = [node for node in result.graph.node if names.isdisjoint(node.output)]
    del result.graph.node[:]
    result.graph.node.extend(kept)
    result.graph.initializer.extend(
        numpy_helper.from_array((each.codes - each.zero) * each.scale, each.name)
        for each in weights
    )
    return result


def _stored(model: onnx.ModelProto, weights: Sequence[_Weight], codes: Codes) -> onnx.ModelProto:
    """A network with other codes."""
    result = copy.deepcopy(model)
    constants = {tensor.name: tensor for tensor in result.graph.initializer}
    for each in weights:
        whole = np.rint(codes[each.name]).astype(np.int8 if each.limits[0] else np.uint8)
        tensor = helper.make_tensor(each.stored, each.kind, whole.shape, whole.ravel())
        constants[each.stored].CopyFrom(tensor)
    return result
