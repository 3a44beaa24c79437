"""Layers of a QDQ network with constant weights: rows of weights, and the inputs that they meet.

A layer's weights are ``rows`` [groups, outputs, inputs] of a group of channels; its inputs are
``columns`` [groups, inputs, places], one for each place of its output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import numpy_helper

from vdla.compiler.graph.types import Array

LAYERS = ("Conv", "Gemm", "MatMul")
STORED = {onnx.TensorProto.INT8: (-127, 127), onnx.TensorProto.INT4: (-8, 7)}  # codes, by type
QUANTIZED = "_quantized"  # ends what onnxruntime calls a constant's integers


@dataclass
class Layer:
    """A layer: its node in the network of floats, and the constants of its weights and its bias in
    the quantized one.

    ``codes`` and ``scale`` are its weights, integers and the factor of each output channel;
    ``bias`` and ``bias_scale`` are its bias, None where it has none.
    """

    node: onnx.NodeProto
    floats: Array
    codes: onnx.TensorProto
    scale: onnx.TensorProto
    bias: onnx.TensorProto | None
    bias_scale: onnx.TensorProto | None
    attributes: Mapping[str, object] = field(default_factory=dict)

    @property
    def data(self) -> str:
        """The tensor that it reads."""
        return str(self.node.input[0])

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest code."""
        return STORED[self.codes.data_type]

    @property
    def by_channel(self) -> bool:
        """Whether its rows may have a scale each: it has no more rows than scales."""
        return bool(prod(self.scale.dims) == prod(self.rows.shape[:2]))

    @property
    def groups(self) -> int:
        """Groups of channels that see each other alone."""
        group = self.attributes.get("group", 1)
        assert isinstance(group, int)
        return group

    @property
    def rows(self) -> Array:
        """Weights before they were quantized, [groups, outputs, inputs], in float64."""
        return self._as_rows(self.floats)

    @property
    def scales(self) -> Array:
        """Factor of each row, [groups, outputs]."""
        scale = numpy_helper.to_array(self.scale).astype(np.float64)
        groups, outputs, _ = self.rows.shape
        return np.broadcast_to(scale.ravel(), (groups * outputs,)).reshape(groups, outputs)

    def write(self, codes: Array, scales: Array) -> None:
        """Stores codes [groups, outputs, inputs], with the factors of their rows; the bias keeps
        its value."""
        array = self.as_weight(codes)
        name, kind = self.codes.name, self.codes.data_type
        self.codes.CopyFrom(
            onnx.helper.make_tensor(name, kind, array.shape, array.astype(np.int8).ravel())
        )
        before = numpy_helper.to_array(self.scale)
        after = scales.ravel()[: before.size].reshape(before.shape).astype(np.float32)
        self.scale.CopyFrom(numpy_helper.from_array(after, self.scale.name))
        if (after != before).any():
            self.move_bias(after / before)

    def move_bias(self, factor: Array) -> None:
        """Gives the bias, where it has one, steps that are ``factor`` times as large, one for each
        output channel: those of its products, so that both add up in integers."""
        if self.bias is None or self.bias_scale is None:
            return
        codes, scale = numpy_helper.to_array(self.bias), numpy_helper.to_array(self.bias_scale)
        limits = np.iinfo(np.int32)
        moved = np.clip(np.rint(codes / factor.astype(np.float64)), limits.min, limits.max)
        self.bias.CopyFrom(numpy_helper.from_array(moved.astype(np.int32), self.bias.name))
        moved_scale = (scale * factor).astype(np.float32)
        self.bias_scale.CopyFrom(numpy_helper.from_array(moved_scale, self.bias_scale.name))

    def as_weight(self, rows: Array) -> Array:
        """Rows [groups, outputs, inputs] as the file has weights."""
        return np.asarray(rows[0].T if self._turned else rows.reshape(self.floats.shape))

    def as_scales(self, scales: Array) -> Array:
        """Scales [groups, outputs, blocks] of blocks of inputs as the file has them: as weights,
        with blocks along the axis of inputs."""
        if self._turned:
            return np.asarray(scales[0].T)
        shape = self.floats.shape
        return scales.reshape(shape[0], -1, *shape[2:])

    @property
    def input_axis(self) -> int:
        """Axis of the weights along which inputs lie."""
        return 0 if self._turned else 1

    def columns(self, data: Array) -> Array:
        """Inputs of each place, [groups, inputs, places], of the tensor that it reads."""
        if self.node.op_type == "Conv":
            return self._windows(data)
        if self.attributes.get("transA"):
            data = data.T
        return np.ascontiguousarray(data.reshape(-1, data.shape[-1]).T)[None]

    @property
    def _turned(self) -> bool:
        """Whether its weights have an output channel in each column."""
        return self.node.op_type != "Conv" and not self.attributes.get("transB", 0)

    def _as_rows(self, weight: Array) -> Array:
        if self._turned:
            return np.ascontiguousarray(weight.T, np.float64)[None]
        return weight.astype(np.float64).reshape(self.groups, weight.shape[0] // self.groups, -1)

    def _windows(self, data: Array) -> Array:
        """The window of each place of a convolution of any number of dimensions."""
        kernel = self.floats.shape[2:]
        rank = len(kernel)
        strides, dilations = (self._numbers(key, rank) for key in ("strides", "dilations"))
        reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
        padded = np.pad(data, ((0, 0), (0, 0), *self._pads(data.shape[2:], reach, strides)))
        axes = tuple(range(2, 2 + rank))
        views = sliding_window_view(padded, reach, axes)
        steps = [slice(None, None, s) for s in strides]
        taps = [slice(None, None, d) for d in dilations]
        views = views[(slice(None), slice(None), *steps, *taps)]
        n, c, *rest = views.shape
        places, size = prod(rest[:rank]), c // self.groups * prod(kernel)
        order = (1, *range(2 + rank, 2 + 2 * rank), 0, *axes)
        return np.asarray(views.transpose(order).reshape(self.groups, size, n * places))

    def _numbers(self, key: str, rank: int) -> list[int]:
        value = self.attributes.get(key, [1] * rank)
        assert isinstance(value, list)
        return value

    def _pads(
        self, image: tuple[int, ...], reach: list[int], strides: list[int]
    ) -> list[tuple[int, int]]:
        rank, auto = len(image), self.attributes.get("auto_pad", b"NOTSET")
        if auto in (b"SAME_UPPER", b"SAME_LOWER"):
            total = [
                max((-(-size // s) - 1) * s + r - size, 0)
                for size, s, r in zip(image, strides, reach, strict=True)
            ]
            less, more = [t // 2 for t in total], [t - t // 2 for t in total]
            first, last = (less, more) if auto == b"SAME_UPPER" else (more, less)
            return list(zip(first, last, strict=True))
        value = self.attributes.get("pads", [0] * 2 * rank)
        assert isinstance(value, list)
        pads = [0] * 2 * rank if auto == b"VALID" else value
        return [(pads[i], pads[rank + i]) for i in range(rank)]


def layers_of(quantized: onnx.ModelProto, floats: onnx.ModelProto) -> list[Layer]:
    """The layers of a quantized network whose weights are constants of integers around 0 that no
    other node reads, by the nodes of the network of floats."""
    before = {node.name: node for node in floats.graph.node if node.op_type in LAYERS}
    weights = {tensor.name: tensor for tensor in floats.graph.initializer}
    constants = {tensor.name: tensor for tensor in quantized.graph.initializer}
    makers = {node.output[0]: node for node in quantized.graph.node}
    readers: dict[str, int] = {}
    for name in (name for node in quantized.graph.node for name in node.input):
        readers[name] = readers.get(name, 0) + 1
    result = []
    for node in quantized.graph.node:
        own = before.get(node.name)
        if own is None or own.input[1] not in weights:
            continue
        array = numpy_helper.to_array(weights[own.input[1]])
        read = [_constants(makers.get(name), constants, readers) for name in node.input[1:3]]
        (codes, scale), (bias, bias_scale) = (*read, (None, None))[:2]
        if codes is None or scale is None or codes.name != own.input[1] + QUANTIZED:
            continue
        if codes.data_type in STORED and _is_plain(own, array):
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in own.attribute}
            result.append(Layer(own, array, codes, scale, bias, bias_scale, attributes))
    return result


def _is_plain(node: onnx.NodeProto, weight: Array) -> bool:
    return node.op_type == "Conv" or weight.ndim == 2


def _constants(
    node: onnx.NodeProto | None,
    constants: Mapping[str, onnx.TensorProto],
    readers: Mapping[str, int],
) -> tuple[onnx.TensorProto, onnx.TensorProto] | tuple[None, None]:
    """Integers and factors that a DequantizeLinear of constants reads, if it alone does and its
    zero points are 0; None twice elsewhere."""
    if node is None or node.op_type != "DequantizeLinear" or node.input[0] not in constants:
        return None, None
    names = list(node.input[:2])
    if readers[node.output[0]] > 1 or any(readers[name] > 1 for name in names):
        return None, None
    if len(node.input) > 2 and numpy_helper.to_array(constants[node.input[2]]).any():
        return None, None
    codes, scale = (constants[name] for name in names)
    return codes, scale
