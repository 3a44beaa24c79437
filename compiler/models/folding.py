"""Sums and products with constants behind layers, in the layers' weights.

A batch normalization that its exporter wrote as ``(x - mean) * factor + offset`` is three operators
on floats, and a quantizer would round after each.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from vdla.compiler.graph.types import Array

LAYERS = {"Conv": 0, "ConvTranspose": 1, "Gemm": 1, "MatMul": 1}  # the weights' axis of results
FUNCTIONS = ("Add", "Sub", "Mul", "Div")


def fold_behind_layers(model: onnx.ModelProto) -> None:
    """Changes a model in place: layers do what the constants behind them do, channel by channel.

    before: Conv(x, w, b) - mean, then * factor, then + offset
    after:  Conv(x, w * factor, (b - mean) * factor + offset)

    Results differ by roundings of float32 alone. Where others read a layer's result, it stays.
    """
    folder = _Folder(model.graph)
    kept = [node for node in model.graph.node if not folder.folds(node)]
    if len(kept) == len(model.graph.node):
        return
    read = {name for node in kept for name in node.input}
    constants = [each for each in model.graph.initializer if each.name in read]
    made = (numpy_helper.from_array(folder.values[n], n) for n in folder.made if n in read)
    constants.extend(made)
    for field, values in ((model.graph.node, kept), (model.graph.initializer, constants)):
        del field[:]
        field.extend(values)


@dataclass
class _Layer:
    """A layer of known weights, and the axis of its results' channels in these."""

    node: onnx.NodeProto
    weight: Array
    bias: Array | None
    axis: int

    @property
    def channels(self) -> int:
        """Number of channels of its results."""
        return int(self.weight.shape[self.axis])

    @property
    def axes_behind(self) -> int:
        """Number of axes behind the channels in its results."""
        return self.weight.ndim - 2

    @property
    def rank(self) -> int:
        """Number of axes that its results have at least."""
        return 1 if self.node.op_type == "MatMul" else self.weight.ndim

    def scaled(self, factor: Array, offset: Array) -> bool:
        """Whether it has taken in a factor and an offset of each channel."""
        if self.bias is None and self.node.op_type == "MatMul" and offset.any():
            return False
        shape = [-1 if axis == self.axis else 1 for axis in range(self.weight.ndim)]
        bias = np.zeros(self.channels) if self.bias is None else self.bias
        with np.errstate(all="ignore"):
            weight = (self.weight * factor.reshape(shape)).astype(np.float32)
            bias = (bias.reshape(-1) * factor + offset).astype(np.float32)
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            return False
        self.weight = weight
        self.bias = None if self.node.op_type == "MatMul" else bias
        return True

    def by_channel(self, value: Array) -> Array | None:
        """A constant's one value for each channel; None where it has others."""
        behind = self.axes_behind
        if value.dtype != np.float32 or value.ndim > self.rank:
            return None
        one = value.ndim > behind and value.shape[-1 - behind] == value.size
        if value.size != 1 and not (one and value.size == self.channels):
            return None
        return np.broadcast_to(value.reshape(-1).astype(np.float64), (self.channels,))


class _Folder:
    """A graph under change; ``values`` are its constants, ``made`` the names of new ones."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.values = {w.name: numpy_helper.to_array(w) for w in graph.initializer}
        self.made: list[str] = []
        self.layers: dict[str, _Layer] = {}  # by their results, which one node alone reads
        read = Counter(name for node in graph.node for name in node.input)
        read.update({value.name: 2 for value in graph.output})
        self.read_once = {name for name, count in read.items() if count == 1}

    def folds(self, node: onnx.NodeProto) -> bool:
        """Whether the layer before a node does from now on what the node does; notes layers."""
        if node.domain:
            return False
        if node.op_type in LAYERS:
            layer = self.layer(node)
            if layer is not None and node.output[0] in self.read_once:
                self.layers[node.output[0]] = layer
        if node.op_type not in FUNCTIONS:
            return False
        for place in (0, 1):
            layer = self.layers.get(node.input[place])
            value = self.values.get(node.input[1 - place])
            own = layer.by_channel(value) if layer and value is not None else None
            terms = None if own is None else _terms(node.op_type, own, place == 1)
            if layer and terms and layer.scaled(*terms):
                self.write(layer, node.output[0])
                return True
        return False

    def layer(self, node: onnx.NodeProto) -> _Layer | None:
        """A layer whose weights and bias are known and whose product is plain; else None."""
        weight = self.values.get(node.input[1])
        name = node.input[2] if len(node.input) > 2 else ""
        bias = self.values.get(name)
        if weight is None or weight.dtype != np.float32 or (name and bias is None):
            return None
        values = {each.name: each for each in node.attribute}
        if any(values[k].f != 1 for k in ("alpha", "beta") if k in values):
            return None
        if node.op_type == "ConvTranspose" and "group" in values and values["group"].i != 1:
            return None
        turned = node.op_type == "Gemm" and "transB" in values and values["transB"].i
        axis = 0 if turned else LAYERS[node.op_type]
        if weight.ndim <= axis or (bias is not None and bias.size != weight.shape[axis]):
            return None
        if node.op_type == "MatMul" and weight.ndim != 2:
            return None
        return _Layer(node, weight, bias, axis)

    def write(self, layer: _Layer, result: str) -> None:
        """Has a layer write the result of a node behind it, by new constants."""
        node = layer.node
        del node.input[1:]
        for what, array in (("weight", layer.weight), ("bias", layer.bias)):
            if array is not None:
                name = f"{result}.{what}"
                while name in self.values:
                    name += ".folded"
                node.input.append(name)
                self.values[name] = array
                self.made.append(name)
        node.output[0] = result
        if result in self.read_once:
            self.layers[result] = layer


def _terms(function: str, value: Array, behind: bool) -> tuple[Array, Array] | None:
    """The factor and the offset that a constant is; ``behind``: the data are the second operand.
    None for a quotient by the data."""
    one, zero = np.ones_like(value), np.zeros_like(value)
    with np.errstate(all="ignore"):
        known = {
            "Add": (one, value),
            "Mul": (value, zero),
            "Sub": (-one, value) if behind else (one, -value),
            "Div": None if behind else (1 / value, zero),
        }
    return known[function]
