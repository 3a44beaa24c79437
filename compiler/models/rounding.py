"""Weights rounded by what a layer's inputs are: GPTQ (Frantar et al., 2023).

The nearest integers make the least error of a weight, not of a layer's output. Here weights are
rounded one input after another, and the error of each goes into those that come later, by the
inputs' second moments ``H = Σ x xᵀ``:

    q = round(w_k / scale);  w_j -= (w_k - q · scale) / U_kk · U_kj  for j > k,  UᵀU = H⁻¹

Weights that are zero stay zero, and those behind them make up for that: a network that was pruned
stays so (``pruning.py``). onnxruntime's quantizer has chosen the scales. Those of 4-bit weights are
chosen anew: with 15 steps the largest weight is rarely the best end of the range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import onnx

from vdla.compiler.graph.types import Array
from vdla.compiler.models.layers import Layer, layers_of
from vdla.compiler.models.noise import tensors_of

Progress = Callable[[str, int, int], None]

DAMPING = 0.01  # of the moments' mean diagonal, added to it, at least
BLOCK = 128  # inputs whose errors are spread over the others at once
PLACES = 4096  # of a layer's output, that moments are of, at most, for each sample
HELD = 1 << 26  # elements of moments that are in memory at a time, with as many of factors
SHRINKS = np.linspace(0.4, 1.0, 31)  # of a range, tried for 4-bit weights
FEW_STEPS = 15


@dataclass
class Moments:
    """Second moments of a layer's inputs, [groups, inputs, inputs], summed over ``places``."""

    sums: Array
    places: int = 0

    def add(self, columns: Array) -> None:
        """Adds inputs, [groups, inputs, places]."""
        self.sums = self.sums + (columns @ columns.swapaxes(1, 2)).astype(np.float64)
        self.places += columns.shape[2]

    @property
    def damped(self) -> Array:
        """The moments with more on the diagonal, the more so where places are few beside inputs:
        what few samples say of many inputs isn't so for others."""
        mean = np.einsum("gkk->gk", self.sums).mean(1)
        share = max(DAMPING, self.sums.shape[1] / max(self.places, 1))
        more = np.where(mean > 0, share * mean, 1.0)
        return np.asarray(self.sums + np.eye(self.sums.shape[1]) * more[:, None, None])

    @property
    def powers(self) -> Array:
        """The damped moments' diagonal, [groups, inputs]."""
        return np.asarray(np.einsum("gkk->gk", self.damped))

    @cached_property
    def order(self) -> Array:
        """Inputs from the one of most power to the least, [groups, inputs]."""
        return np.argsort(-self.powers, axis=1, kind="stable")

    @cached_property
    def factors(self) -> Array:
        """``U`` of ``UᵀU = H⁻¹``, upper triangular, of inputs in their ``order``."""
        turned = np.take_along_axis(self.damped, self.order[:, :, None], 1)
        turned = np.take_along_axis(turned, self.order[:, None], 2)
        lower = np.linalg.cholesky(np.linalg.inv(turned))
        return np.asarray(lower.swapaxes(1, 2))


class LayerInputs:
    """Second moments of what the layers of a network of floats read.

    They are counted once, as far as HELD elements hold them, for any number of quantizations.
    """

    def __init__(self, floats: onnx.ModelProto, samples: Sequence[Mapping[str, Array]]) -> None:
        self.floats, self.samples = floats, samples
        self._known = dict[str, Moments]()

    def of(self, layers: Sequence[Layer]) -> Iterator[tuple[Layer, Moments]]:
        """Layers with their moments, as many at a time as memory is to hold."""
        for part in _parts(layers):
            unknown = [layer for layer in part if layer.node.name not in self._known]
            own = _moments(unknown, self.floats, self.samples) if unknown else []
            made = {layer.node.name: each for layer, each in zip(unknown, own, strict=True)}
            if sum(map(_size, layers)) <= HELD:
                self._known |= made
            for layer in part:
                name = layer.node.name
                yield layer, made[name] if name in made else self._known[name]


def round_by_inputs(
    quantized: onnx.ModelProto,
    inputs: LayerInputs,
    progress: Progress = lambda what, done, total: None,
) -> int:
    """Rounds the weights of convolutions and dense layers anew, in place; gives how many layers.

    Args:
        quantized: a QDQ network whose weights have one scale, or one for each output channel.
        inputs: of the network before, whose nodes have the same names.
        progress: is told (what, done, of).
    """
    layers = layers_of(quantized, inputs.floats)
    for number, (layer, moments) in enumerate(inputs.of(layers)):
        few = layer.by_channel and layer.limits[1] - layer.limits[0] <= FEW_STEPS
        layer.write(*rounded(layer.rows, layer.scales, moments, layer.limits, rescaled=few))
        progress("rounding", number + 1, len(layers))
    return len(layers)


def rounded(
    rows: Array, scales: Array, inputs: Moments, limits: tuple[int, int], *, rescaled: bool
) -> tuple[Array, Array]:
    """Codes of weights, and their scales.

    Args:
        rows: weights, [groups, outputs, inputs].
        scales: of each row, [groups, outputs].
        inputs: what the layer has read.
        limits: the least and the greatest code.
        rescaled: whether each row gets the scale by which it loses least.
    """
    if rescaled:
        scales = best_scales(rows, inputs.powers, limits)
    whole = np.broadcast_to(scales[..., None], rows.shape)
    return rounded_by(rows, whole, inputs, limits), scales


def rounded_by(
    rows: Array, scales: Array, inputs: Moments | None, limits: tuple[int, int]
) -> Array:
    """Codes of weights [groups, outputs, inputs], each with a scale.

    Args:
        rows: weights.
        scales: of each weight.
        inputs: what the layer has read; None rounds to the nearest.
        limits: the least and the greatest code.
    """
    if inputs is None:
        return np.asarray(np.clip(np.rint(rows / scales), *limits))
    order = inputs.order
    taken, steps = (np.take_along_axis(each, order[:, None], 2) for each in (rows, scales))
    codes = _fed_back(taken, steps, inputs.factors, limits)
    return np.take_along_axis(codes, np.argsort(order, axis=1)[:, None], 2)


def _fed_back(rows: Array, scale: Array, factors: Array, limits: tuple[int, int]) -> Array:
    """Codes of rows, the error of each input's given to those behind it; zeros stay zero."""
    rest, codes, kept = rows.copy(), np.zeros_like(rows), rows != 0
    inputs = rows.shape[2]
    for start in range(0, inputs, BLOCK):
        end = min(start + BLOCK, inputs)
        errors = np.zeros((*rows.shape[:2], end - start))
        for k in range(start, end):
            weight = rest[..., k]
            nearest = np.clip(np.rint(weight / scale[..., k]), *limits)
            codes[..., k] = np.where(kept[..., k], nearest, 0)
            error = (weight - codes[..., k] * scale[..., k]) / factors[:, None, k, k]
            rest[..., k + 1 : end] -= error[..., None] * factors[:, None, k, k + 1 : end]
            errors[..., k - start] = error
        rest[..., end:] -= errors @ factors[:, start:end, end:]
    return codes


def best_scales(rows: Array, weights: Array, limits: tuple[int, int]) -> Array:
    """Scale of each row that loses least, where errors count as ``weights`` of inputs say."""
    most = np.abs(rows).max(2)
    full = np.where(most > 0, most, 1.0) / -limits[0]
    losses = []
    for shrink in SHRINKS:
        scale = (full * shrink)[..., None]
        error = rows - np.clip(np.rint(rows / scale), *limits) * scale
        losses.append((error**2 * (weights[:, None] + 1e-12)).sum(2))
    return np.asarray(full * SHRINKS[np.argmin(losses, axis=0)])


def _parts(layers: Sequence[Layer]) -> Iterator[list[Layer]]:
    """Layers in runs whose moments are held at a time."""
    part, held = list[Layer](), 0
    for layer in layers:
        size = _size(layer)
        if part and held + size > HELD:
            yield part
            part, held = [], 0
        part.append(layer)
        held += size
    if part:
        yield part


def _size(layer: Layer) -> int:
    """Elements of a layer's moments."""
    groups, _, inputs = layer.rows.shape
    return int(groups * inputs**2)


def _moments(
    layers: Sequence[Layer], floats: onnx.ModelProto, samples: Sequence[Mapping[str, Array]]
) -> list[Moments]:
    """Second moments of layers' inputs, as the floats make them."""
    run = tensors_of(floats, [layer.data for layer in layers])
    result = [Moments(np.zeros(())) for _ in layers]
    for number in range(len(samples)):
        tensors = {**samples[number]}
        tensors |= run(tensors)
        for layer, moments in zip(layers, result, strict=True):
            columns = layer.columns(tensors[layer.data])
            step = -(-columns.shape[2] // PLACES)
            moments.add(columns[..., ::step].astype(np.float32))
    return result
