"""Noise that a quantization adds to a network, layer by layer: signal-to-noise ratios in dB.

Three ratios of a layer say where accuracy is lost:

* ``weights``: its weights beside the floats that they stand for;
* ``own``: its output where its inputs are exact but for their rounding, so what it loses itself;
* ``network``: its output in the quantized network, so all that was lost up to here.

onnxruntime runs the floats and, without fused operators, what the quantizer made of them.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, log10
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.runtime.external import exact_session

Array = NDArray[Any]
Progress = Callable[[str, int, int], None]
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
OUTPUT = "_QuantizeLinear_Input"  # ends what the quantizer calls the result behind an output
EXACT = "exact."  # begins the names of inputs that take the floats' own tensors


@dataclass(frozen=True)
class LayerNoise:
    """Ratios of a layer, in dB; infinite where nothing is lost, None without quantized weights."""

    name: str
    op: str
    weights: float | None
    own: float
    network: float

    def to_json(self) -> dict[str, object]:
        """The ratios for JSON, which has no infinity: None where nothing is lost."""
        ratios = {"weights": self.weights, "own": self.own, "network": self.network}
        finite = {k: v if v is not None and isfinite(v) else None for k, v in ratios.items()}
        return {"name": self.name, "op": self.op, **finite}


@dataclass(frozen=True)
class Noise:
    """Ratios of all layers, in the network's order, and the number of samples that they are of."""

    layers: Sequence[LayerNoise]
    samples: int


def layer_noise(
    floats: onnx.ModelProto,
    quantized: onnx.ModelProto,
    samples: Sequence[Mapping[str, Array]],
    progress: Progress = lambda what, done, total: None,
) -> Noise:
    """The ratios of every layer whose output a quantizer rounds, or that has quantized weights.

    Args:
        floats: the network before it was quantized; tensors and nodes are matched by name.
        quantized: its QDQ form.
        samples: inputs by name, one sample after another.
        progress: is told (what, done, of).

    Raises:
        ModelError: onnxruntime doesn't run one of the networks.
    """
    network = _Network(quantized)
    layers = network.layers(_results(floats))
    alone = _Alone(floats, network, layers)
    in_network = tensors_of(quantized, [network.seen(layer.output[0]) for layer in layers])
    sums: dict[tuple[str, str], SignalSums] = defaultdict(SignalSums)
    for number, sample in enumerate(samples):
        truth, own = alone.run(sample)
        seen = in_network(sample)
        for layer in layers:
            result, signal = layer.output[0], truth[_of_floats(layer)]
            sums[layer.name, "network"].add(signal, seen[network.seen(result)])
            sums[layer.name, "own"].add(signal, network.rounds(result, own[result]))
        progress("noise", number + 1, len(samples))
    before = {tensor.name: tensor for tensor in floats.graph.initializer}
    ratios = [
        LayerNoise(
            layer.name,
            layer.op_type,
            network.weight_noise(layer, before),
            sums[layer.name, "own"].decibels,
            sums[layer.name, "network"].decibels,
        )
        for layer in layers
    ]
    return Noise(ratios, len(samples))


def rounding_noise(
    floats: onnx.ModelProto, quantized: onnx.ModelProto, samples: Sequence[Mapping[str, Array]]
) -> dict[str, float]:
    """The ratio that rounding alone leaves of each tensor that is rounded, by its name in floats.

    Args:
        floats: the network before it was quantized.
        quantized: its QDQ form.
        samples: inputs by name, one sample after another.
    """
    network, known = _Network(quantized), _results(floats)
    names = {name: name.removesuffix(OUTPUT) for name in network.quantizers}
    names = {name: own for name, own in names.items() if own in known}
    run = tensors_of(floats, list(names.values()))
    sums = {own: SignalSums() for own in names.values()}
    for sample in samples:
        truth = {**sample, **run(sample)}
        for name, own in names.items():
            sums[own].add(truth[own], network.rounds(name, truth[own]))
    return {own: each.decibels for own, each in sums.items()}


def rounded_before(floats: onnx.ModelProto, quantized: onnx.ModelProto, name: str) -> list[str]:
    """The tensors of floats that a quantizer rounds last before a node's results.

    Args:
        floats: the network before it was quantized.
        quantized: its QDQ form.
        name: of the node, in both.
    """
    rounded = {tensor.removesuffix(OUTPUT) for tensor in _Network(quantized).quantizers}
    makers = {output: node for node in floats.graph.node for output in node.output}
    rest = [node for node in floats.graph.node if node.name == name]
    result = dict[str, None]()
    while rest:
        for tensor in rest.pop().input:
            if tensor in rounded:
                result[tensor] = None
            elif tensor in makers:
                rest.append(makers[tensor])
    return list(result)


def mean_errors(
    floats: onnx.ModelProto,
    quantized: onnx.ModelProto,
    samples: Sequence[Mapping[str, Array]],
    axes: Mapping[str, int],
) -> dict[str, Array]:
    """Mean error of some layers' outputs, index by index of an axis, where their inputs are exact
    but for their rounding and their outputs aren't rounded.

    Args:
        floats: the network before it was quantized.
        quantized: its QDQ form.
        samples: inputs by name, one sample after another.
        axes: the axis of each layer's output, by the name of its node.
    """
    network = _Network(quantized)
    layers = [layer for layer in network.layers(_results(floats)) if layer.name in axes]
    # The quantizer leaves out a Relu that saturation stands for: what is before it is the layer's.
    named = {layer.name for layer in layers}
    before = {node.name: str(node.output[0]) for node in floats.graph.node if node.name in named}
    alone = _Alone(floats, network, layers, before.values())
    totals: dict[str, Array] = {}
    for sample in samples:
        truth, own = alone.run(sample)
        for layer in layers:
            error = own[layer.output[0]].astype(np.float64) - truth[before[layer.name]]
            others = tuple(i for i in range(error.ndim) if i != axes[layer.name] % error.ndim)
            totals[layer.name] = totals.get(layer.name, 0.0) + error.mean(others)
    return {name: total / len(samples) for name, total in totals.items()}


class _Alone:
    """Layers of a quantized network whose inputs are the floats' own."""

    def __init__(
        self,
        floats: onnx.ModelProto,
        network: _Network,
        layers: Sequence[onnx.NodeProto],
        more: Iterable[str] = (),
    ) -> None:
        self.exact = network.rounded & _results(floats)
        wanted = [*self.exact, *(_of_floats(layer) for layer in layers), *more]
        self.floats = tensors_of(floats, wanted)
        fed = network.with_exact_inputs(self.exact)
        self.layers = tensors_of(fed, [layer.output[0] for layer in layers])

    def run(self, sample: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        """The floats' tensors of a sample, and the results of the layers, both by name."""
        truth = {**sample, **self.floats(sample)}
        fed = {EXACT + name: truth[name] for name in self.exact}
        return truth, self.layers({**sample, **fed})


class SignalSums:
    """Powers of a signal and of its noise, over all samples."""

    def __init__(self) -> None:
        self.signal = self.noise = 0.0

    def add(self, exact: Array, result: Array) -> None:
        """Adds a tensor, and what became of it."""
        signal = exact.astype(np.float64)
        self.signal += float(np.sum(signal**2))
        self.noise += float(np.sum((result.astype(np.float64) - signal) ** 2))

    @property
    def decibels(self) -> float:
        """Ratio of the two, in dB; infinite without noise, -infinite without a signal."""
        if not self.noise:
            return inf
        return 10 * log10(self.signal / self.noise) if self.signal else -inf


class _Network:
    """A QDQ network: which tensors are rounded, and how."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.quantizers = {
            node.input[0]: node
            for node in model.graph.node
            if node.op_type == QUANTIZE and node.input[0] not in self.constants
        }
        self.dequantizers = {
            node.input[0]: node for node in model.graph.node if node.op_type == DEQUANTIZE
        }

    @property
    def rounded(self) -> set[str]:
        """Tensors of floats that a quantizer rounds."""
        return set(self.quantizers)

    def layers(self, known: set[str]) -> list[onnx.NodeProto]:
        """Operators with quantized weights or a rounded output, which the floats have, too."""
        return [
            node
            for node in self.model.graph.node
            if node.op_type not in (QUANTIZE, DEQUANTIZE)
            and _of_floats(node) in known
            and (node.output[0] in self.quantizers or self._weights(node))
        ]

    def seen(self, name: str) -> str:
        """The tensor that readers of a result see: the rounded one where it is rounded."""
        quantizer = self.quantizers.get(name)
        reader = self.dequantizers.get(quantizer.output[0]) if quantizer else None
        return str(reader.output[0]) if reader else name

    def rounds(self, name: str, array: Array) -> Array:
        """A tensor as its quantizer and its dequantizer round it."""
        quantizer = self.quantizers.get(name)
        if quantizer is None:
            return array
        scale, zero = self._scale(quantizer)
        limits = np.iinfo(zero.dtype)
        steps = np.rint(array.astype(np.float64) / scale) + zero
        kept = np.clip(steps, limits.min, limits.max) - zero.astype(np.float64)
        return np.asarray(kept * scale)

    def with_exact_inputs(self, names: Iterable[str]) -> onnx.ModelProto:
        """The network with the quantizers of some tensors fed from inputs of their own."""
        result = copy.deepcopy(self.model)
        for node in result.graph.node:
            if node.op_type == QUANTIZE and node.input[0] in names:
                node.input[0] = EXACT + node.input[0]
        for name in names:
            value = onnx.helper.make_tensor_value_info(EXACT + name, onnx.TensorProto.FLOAT, None)
            result.graph.input.append(value)
        return result

    def weight_noise(
        self, layer: onnx.NodeProto, before: Mapping[str, onnx.TensorProto]
    ) -> float | None:
        """The ratio of a layer's weights; None where the floats have none of that name."""
        sums = SignalSums()
        for node in self._weights(layer):
            name = str(node.input[0]).removesuffix("_quantized")
            if name not in before:
                continue
            integers = numpy_helper.to_array(self.constants[node.input[0]]).astype(np.float64)
            scale, zero = (spread(node, each, integers.shape) for each in self._scale(node))
            floats = numpy_helper.to_array(before[name])
            if floats.shape == integers.shape:
                sums.add(floats, (integers - zero.astype(np.float64)) * scale)
        return sums.decibels if sums.signal else None

    def _weights(self, layer: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Dequantizers of constants that a layer reads; biases, of int32, left out."""
        makers = {node.output[0]: node for node in self.dequantizers.values()}
        wide = onnx.TensorProto.INT32
        return [
            node
            for node in (makers[name] for name in layer.input if name in makers)
            if node.input[0] in self.constants and self.constants[node.input[0]].data_type != wide
        ]

    def _scale(self, node: onnx.NodeProto) -> tuple[Array, Array]:
        """Scale and zero point of a quantizer or a dequantizer."""
        scale = numpy_helper.to_array(self.constants[node.input[1]]).astype(np.float64)
        if len(node.input) > 2 and node.input[2]:
            return scale, numpy_helper.to_array(self.constants[node.input[2]])
        return scale, np.zeros((), np.uint8)


def spread(node: onnx.NodeProto, values: Array, shape: Sequence[int]) -> Array:
    """Scales or zero points of a dequantizer, to broadcast against its data: one, one for each
    index of its axis, or one for each block."""
    if not values.ndim:
        return values
    attributes = {each.name: each.i for each in node.attribute}
    axis, size = attributes.get("axis", 1) % len(shape), attributes.get("block_size", 0)
    if size:
        return np.take(np.repeat(values, size, axis), range(shape[axis]), axis)
    return values.reshape([-1 if i == axis else 1 for i in range(len(shape))])


def _of_floats(layer: onnx.NodeProto) -> str:
    """The result of a layer as the floats call it."""
    return str(layer.output[0]).removesuffix(OUTPUT)


def _results(model: onnx.ModelProto) -> set[str]:
    """Names of inputs and of operators' results."""
    graph = model.graph
    names = {name for node in graph.node for name in node.output if name}
    return names | {value.name for value in graph.input}


def tensors_of(
    model: onnx.ModelProto, wanted: Sequence[str]
) -> Callable[[Mapping[str, Array]], dict[str, Array]]:
    """A function that gives tensors of a network, by name, for its inputs."""
    own = copy.deepcopy(model)
    inputs = {value.name for value in own.graph.input}
    names = [name for name in dict.fromkeys(wanted) if name not in inputs]
    if not names:
        return lambda arrays: {}
    del own.graph.output[:]
    own.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names
    )
    import onnxruntime

    try:
        session = exact_session(onnxruntime, own.SerializeToString(), fuse=False)
    except Exception as error:  # onnxruntime has no common base class for its errors
        place = model.graph.name
        raise ModelError(place, "a model onnxruntime runs", first_line(error)) from None
    needed = [value.name for value in session.get_inputs()]

    def run(arrays: Mapping[str, Array]) -> dict[str, Array]:
        results = session.run(names, {name: arrays[name] for name in needed})
        return dict(zip(names, results, strict=True))

    return run
