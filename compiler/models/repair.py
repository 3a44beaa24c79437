"""Repairs of a float network before it is quantized: what it computes stays, its ranges don't.

* ``equalize``: a channel between two layers is scaled down in the one and up in the other, so that
  all channels of a tensor, which share one scale, have ranges alike (Nagel et al., 2019).
* ``smooth``: of the channels that a normalization makes, a share of their ranges moves into the
  weights of the dense layers behind it (SmoothQuant, Xiao et al., 2023).
* ``correct_biases``: the mean error of a layer's channels, by its rounded weights and inputs, goes
  into its bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from vdla.compiler.graph.types import Array

LAYERS = ("Conv", "Gemm", "MatMul")
BETWEEN = ("Relu", "LeakyRelu")  # f(s·x) = s·f(x) for s > 0
ROUNDS = 20  # of all pairs, at most
SETTLED = 1e-3  # largest change of a scale, as a logarithm


@dataclass(frozen=True)
class Pair:
    """Two layers of which the first one's output channels are the second one's inputs."""

    first: onnx.NodeProto
    second: onnx.NodeProto


def equalize(model: onnx.ModelProto) -> int:
    """Equalizes the channels between layers, in place; gives the number of pairs.

    Taken are convolutions and dense layers with constant weights, with nothing but a Relu or a
    LeakyRelu between them, whose tensors nobody else reads.
    """
    weights = _Weights(model)
    pairs = _pairs(model.graph, weights)
    for _ in range(ROUNDS):
        change = max((_balance(pair, weights) for pair in pairs), default=0.0)
        if change < SETTLED:
            break
    weights.write()
    return len(pairs)


def correct_biases(model: onnx.ModelProto, errors: Mapping[str, Array]) -> int:
    """Takes mean errors of layers' channels off their biases, in place; gives how many layers.

    Args:
        model: of floats; layers without a bias get one.
        errors: by the layer's node, one number for each channel of its output.
    """
    weights, count = _Weights(model), 0
    for node in model.graph.node:
        if node.name not in errors or node.op_type not in ("Conv", "Gemm"):
            continue
        name = _bias_of(node)
        error = errors[node.name]
        before = weights.arrays.get(name) if name else None
        if name and before is None:
            continue  # computed in the network
        if name is None:
            name = f"{node.name}.bias"
            del node.input[2:]
            node.input.append(name)
            model.graph.initializer.append(numpy_helper.from_array(np.zeros(0, np.float32), name))
            before = np.zeros(error.shape, np.float32)
        factor = _attribute(node, "beta", 1.0) if node.op_type == "Gemm" else 1.0
        assert before is not None
        weights.arrays[name] = (before - error / factor).astype(np.float32)
        count += 1
    weights.write()
    return count


def smoothed(model: onnx.ModelProto) -> list[str]:
    """Tensors that ``smooth`` can scale: results of normalizations that dense layers alone read."""
    return [norm.result for norm in _norms(_Weights(model))]


def smooth(model: onnx.ModelProto, largest: Mapping[str, Array], share: float) -> int:
    """Moves a share of channels' ranges into the weights behind them, in place; gives the number of
    tensors.

    Channel j of a normalization's result is divided by ``|x_j|**share / |w_j|**(1 - share)``, with
    the largest magnitudes of the two, and the weights that it meets are multiplied by it.

    Args:
        model: of floats.
        largest: magnitude of each channel of the tensors that ``smoothed`` names.
        share: 0 to 1.
    """
    weights = _Weights(model)
    norms = _norms(weights)
    for norm in norms:
        columns = [np.abs(_columns(layer, weights)).max(1) for layer in norm.layers]
        below, above = np.max(columns, axis=0), largest[norm.result].astype(np.float64)
        usable = (above > 0) & (below > 0)
        scale = np.ones(len(above))
        scale[usable] = above[usable] ** share / below[usable] ** (1 - share)
        for name in norm.vectors:
            weights.arrays[name] = (weights.arrays[name] / scale).astype(np.float32)
        for layer in norm.layers:
            _set_columns(layer, weights, _columns(layer, weights) * scale[:, None])
    weights.write()
    return len(norms)


@dataclass(frozen=True)
class _Norm:
    """A normalization's result, the vectors of constants that it is made with, its readers."""

    result: str
    vectors: list[str]
    layers: list[onnx.NodeProto]


def _norms(weights: _Weights) -> list[_Norm]:
    """Normalizations over the last axis whose results dense layers with constants alone read."""
    graph = weights.graph
    makers = {name: node for node in graph.node for name in node.output}
    outputs = {value.name for value in graph.output}
    result = []
    for node in graph.node:
        layers = weights.readers.get(node.output[0], []) if node.output else []
        vectors = _factors(node, makers, weights)
        dense = [each for each in layers if _is_dense_of(each, node.output[0], weights)]
        if vectors and layers and len(dense) == len(layers) and node.output[0] not in outputs:
            result.append(_Norm(node.output[0], vectors, layers))
    return result


def _is_dense_of(node: onnx.NodeProto, data: str, weights: _Weights) -> bool:
    dense = node.op_type in ("Gemm", "MatMul") and node.input[0] == data
    return dense and _is_layer(node, weights)


def _factors(
    node: onnx.NodeProto, makers: Mapping[str, onnx.NodeProto], weights: _Weights
) -> list[str]:
    """Vectors of the last axis that a node's result is proportional to: a normalization's factors
    and offsets, in one node or as a product and a sum behind it."""
    if node.op_type in ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"):
        last = int(_attribute(node, "axis", -1)) == -1
        names = [name for name in node.input[1:] if name]
        return names if last and all(_is_vector(name, weights) for name in names) else []
    if node.op_type == "Add":
        data, vectors = _apart(node, weights)
        product = makers.get(data)
        alone = product is not None and len(weights.readers[data]) == 1
        if product is None or not alone or product.op_type != "Mul":
            return []
        _, factors = _apart(product, weights)
        return [*vectors, *factors] if vectors and factors else []
    return _apart(node, weights)[1] if node.op_type == "Mul" else []


def _apart(node: onnx.NodeProto, weights: _Weights) -> tuple[str, list[str]]:
    """The data and the vector of a sum or a product of two."""
    vectors = [name for name in node.input if _is_vector(name, weights)]
    data = [name for name in node.input if name not in vectors]
    return data[0] if data else "", vectors if len(vectors) == 1 else []


def _is_vector(name: str, weights: _Weights) -> bool:
    return weights.own(name) and weights.arrays[name].ndim == 1 and weights.arrays[name].size > 1


def layer_axes(model: onnx.ModelProto) -> dict[str, int]:
    """Axis of the channels in the output of each layer that ``correct_biases`` takes."""
    axes = {"Conv": 1, "Gemm": 1}
    return {node.name: axes[node.op_type] for node in model.graph.node if node.op_type in axes}


class _Weights:
    """A model's constants of floats, by name, and how many nodes read each tensor."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        self.arrays = {
            tensor.name: numpy_helper.to_array(tensor).copy()
            for tensor in model.graph.initializer
            if tensor.data_type == onnx.TensorProto.FLOAT
        }
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def own(self, name: str) -> bool:
        """Whether a tensor is a constant that one node alone reads."""
        return name in self.arrays and len(self.readers.get(name, ())) == 1

    def write(self) -> None:
        """Writes the arrays into the model."""
        for tensor in self.graph.initializer:
            if tensor.name in self.arrays:
                tensor.CopyFrom(numpy_helper.from_array(self.arrays[tensor.name], tensor.name))


def _pairs(graph: onnx.GraphProto, weights: _Weights) -> list[Pair]:
    """All pairs, in the order of their first layers."""
    outputs = {value.name for value in graph.output}
    result = []
    for node in graph.node:
        last = node
        while _is_between(last, node) and (reader := _only_reader(last, weights, outputs)):
            last = reader
            if last.op_type not in BETWEEN:
                break
        both = last is not node and _is_layer(node, weights) and _is_layer(last, weights)
        if both and len(_lines(node, weights)) == len(_columns(last, weights)):
            result.append(Pair(node, last))
    return result


def _is_between(last: onnx.NodeProto, first: onnx.NodeProto) -> bool:
    return last is first or last.op_type in BETWEEN


def _only_reader(
    node: onnx.NodeProto, weights: _Weights, outputs: set[str]
) -> onnx.NodeProto | None:
    """The one node that reads a node's result; None where there are others, or outputs."""
    readers = weights.readers.get(node.output[0], [])
    return readers[0] if len(readers) == 1 and node.output[0] not in outputs else None


def _is_layer(node: onnx.NodeProto, weights: _Weights) -> bool:
    """Whether a node is a layer with constants of its own, of as many groups as 1 or channels."""
    if node.op_type not in LAYERS or not weights.own(node.input[1]):
        return False
    bias = _bias_of(node)
    if bias is not None and not weights.own(bias):
        return False
    if node.op_type == "Conv":
        weight = weights.arrays[node.input[1]]
        group = int(_attribute(node, "group", 1))
        return bool(group == 1 or (group == len(weight) and weight.shape[1] == 1))
    if node.op_type == "Gemm":
        return not _attribute(node, "transA", 0)
    return bool(weights.arrays[node.input[1]].ndim == 2)


def _balance(pair: Pair, weights: _Weights) -> float:
    """Balances the channels of a pair; gives the largest change, as a logarithm."""
    first, second = _lines(pair.first, weights), _columns(pair.second, weights)
    above, below = (np.abs(rows).max(1) for rows in (first, second))
    usable = (above > 0) & (below > 0)
    scale = np.ones(len(above))
    scale[usable] = np.sqrt(above[usable] / below[usable])
    first /= scale[:, None]
    second *= scale[:, None]
    _set_lines(pair.first, weights, first)
    _set_columns(pair.second, weights, second)
    bias = _bias_of(pair.first)
    if bias is not None:
        weights.arrays[bias] = (weights.arrays[bias] / scale).astype(np.float32)
    return float(np.abs(np.log(scale)).max())


# A layer's weights as one line for each channel ---------------------------------------------------


def _lines(node: onnx.NodeProto, weights: _Weights) -> Array:
    """Weights of each channel of a layer's output: a row for each."""
    weight: Array = weights.arrays[node.input[1]].astype(np.float64)
    if node.op_type == "Conv" or _attribute(node, "transB", 0):
        return np.asarray(weight.reshape(len(weight), -1))
    return np.asarray(weight.T.copy())


def _set_lines(node: onnx.NodeProto, weights: _Weights, rows: Array) -> None:
    shape = weights.arrays[node.input[1]].shape
    turned = node.op_type != "Conv" and not _attribute(node, "transB", 0)
    value = rows.T if turned else rows.reshape(shape)
    weights.arrays[node.input[1]] = value.astype(np.float32)


def _is_depthwise(node: onnx.NodeProto) -> bool:
    return node.op_type == "Conv" and int(_attribute(node, "group", 1)) > 1


def _columns(node: onnx.NodeProto, weights: _Weights) -> Array:
    """Weights that each channel of a layer's input meets: a row for each."""
    weight: Array = weights.arrays[node.input[1]].astype(np.float64)
    if _is_depthwise(node):
        return np.asarray(weight.reshape(len(weight), -1))
    if node.op_type == "Conv" or _attribute(node, "transB", 0):
        rows = np.ascontiguousarray(weight.swapaxes(0, 1)).reshape(weight.shape[1], -1)
        return np.asarray(rows)
    return np.array(weight)


def _set_columns(node: onnx.NodeProto, weights: _Weights, rows: Array) -> None:
    shape = weights.arrays[node.input[1]].shape
    if _is_depthwise(node):
        value = rows.reshape(shape)
    elif node.op_type == "Conv" or _attribute(node, "transB", 0):
        value = rows.reshape(shape[1], shape[0], *shape[2:]).swapaxes(0, 1)
    else:
        value = rows
    weights.arrays[node.input[1]] = np.ascontiguousarray(value, np.float32)


def _bias_of(node: onnx.NodeProto) -> str | None:
    """The tensor of a layer's bias; None without one."""
    return str(node.input[2]) if len(node.input) > 2 and node.input[2] else None


def _attribute(node: onnx.NodeProto, name: str, default: float) -> float:
    """A number among a node's attributes."""
    for each in node.attribute:
        if each.name == name:
            return float(onnx.helper.get_attribute_value(each))
    return default
