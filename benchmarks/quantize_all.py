"""A quantizer that quantizes the result of every operator on floats, as some tools do.

onnxruntime's quantizes what it has integers for. This one leaves no two operators unquantized
between: each of a normalization's pieces, a product before its bias. Activations are int8 with one
scale, weights of products and convolutions int8 with one for each output channel; other constants
stay float.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from vdla.analysis.ort import ort_run

Array = NDArray[Any]
FLOAT = onnx.TensorProto.FLOAT
AXES = {"MatMul": -1, "Conv": 0}  # of a weight, that has output channels


def quantize_all(model: onnx.ModelProto, samples: Iterable[Mapping[str, Array]]) -> onnx.ModelProto:
    """A model, whose types are inferred, quantized by the ranges that samples give."""
    quantizer = _Quantizer(copy.deepcopy(model), _ranges(model, samples))
    return quantizer.quantized()


def _floats(graph: onnx.GraphProto) -> list[str]:
    """The tensors of floats that nodes compute."""
    values = (*graph.value_info, *graph.output)
    known = {v.name for v in values if v.type.tensor_type.elem_type == FLOAT}
    return [name for node in graph.node for name in node.output if name in known]


def _ranges(
    model: onnx.ModelProto, samples: Iterable[Mapping[str, Array]]
) -> dict[str, tuple[float, float]]:
    """The least and the greatest number of each tensor, and zero."""
    probe = copy.deepcopy(model)
    outputs = {value.name for value in probe.graph.output}
    for name in _floats(model.graph):
        if name not in outputs:
            probe.graph.output.append(helper.make_tensor_value_info(name, FLOAT, None))
    result: dict[str, tuple[float, float]] = {}
    for inputs in samples:
        for name, array in {**inputs, **ort_run(probe, inputs, fuse=False)}.items():
            low, high = result.get(name, (0.0, 0.0))
            result[name] = min(low, float(array.min())), max(high, float(array.max()))
    return result


class _Quantizer:
    def __init__(self, model: onnx.ModelProto, ranges: Mapping[str, tuple[float, float]]) -> None:
        self.model, self.ranges, self.nodes = model, ranges, list[onnx.NodeProto]()
        self.weights = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
        self.real: dict[str, str] = {}  # the dequantized tensor in the place of another one

    def quantized(self) -> onnx.ModelProto:
        """The model with QuantizeLinear and DequantizeLinear behind each operator."""
        graph, floats = self.model.graph, {*_floats(self.model.graph)}
        for value in graph.input:
            self.activation(value.name)
        for node in graph.node:
            if node.op_type in AXES and node.input[1] in self.weights:
                self.weight(node.input[1], AXES[node.op_type])
            made = copy.deepcopy(node)
            del made.input[:]
            made.input.extend(self.real.get(name, name) for name in node.input)
            self.nodes.append(made)
            for name in node.output:
                if name in floats:
                    self.activation(name)
        for value in graph.output:
            value.name = self.real[value.name]
        del graph.node[:], graph.initializer[:], graph.value_info[:]
        graph.node.extend(self.nodes)
        graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in self.weights.items())
        return self.model

    def activation(self, name: str) -> None:
        """Adds a tensor's integers."""
        low, high = self.ranges[name]
        scale = np.float32(max((high - low) / 255, 1e-8))
        zero = np.int8(np.clip(np.rint(-128 - low / scale), -128, 127))
        numbers = self.numbers(name, np.array(scale), np.array(zero))
        integers = [f"{name}.integers"]
        self.nodes.append(helper.make_node("QuantizeLinear", [name, *numbers], integers))
        self.dequantized(name, integers[0], numbers)

    def weight(self, name: str, axis: int) -> None:
        """Adds a weight's integers, with one scale for each output channel."""
        if name in self.real:
            return
        array = self.weights[name]
        axis %= array.ndim
        others = tuple(n for n in range(array.ndim) if n != axis)
        scale = np.maximum(np.abs(array).max(others) / 127, 1e-8).astype(np.float32)
        rows = scale.reshape([-1 if n == axis else 1 for n in range(array.ndim)])
        self.weights[f"{name}.integers"] = np.rint(array / rows).astype(np.int8)
        numbers = self.numbers(name, scale, np.zeros(len(scale), np.int8))
        self.dequantized(name, f"{name}.integers", numbers, axis=axis)

    def numbers(self, name: str, scale: Array, zero: Array) -> list[str]:
        """A scale and a zero point, as initializers."""
        names = [f"{name}.scale", f"{name}.zero"]
        self.weights |= dict(zip(names, (scale, zero), strict=True))
        return names

    def dequantized(self, name: str, data: str, numbers: list[str], **attributes: int) -> None:
        self.real[name] = f"{name}.real"
        inputs = [data, *numbers]
        node = helper.make_node("DequantizeLinear", inputs, [self.real[name]], **attributes)
        self.nodes.append(node)
