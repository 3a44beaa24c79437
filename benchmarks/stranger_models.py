"""The networks of ``strangers.py``: onnx graphs with weights of a seed, quantized by onnxruntime.

Styles: ``u8`` and ``s8c`` are QuantizeLinear and DequantizeLinear around uint8 activations with
weights of one scale, and around int8 ones with a scale per output channel; ``qop`` has operators on
uint8 instead (QLinearConv and others). ``all`` has them around every operator, whether
onnxruntime's quantizer knows it or not (``quantize_all.py``), ``products`` around convolutions and
products of matrices alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from quantize_all import quantize_all

Array = NDArray[Any]
OPSET, SAMPLES = 17, 4


class Net:
    """A network under construction: a method adds an operator and gives its result's name."""

    def __init__(self, name: str, seed: int, shape: Sequence[int]) -> None:
        self.name, self.rng, self.shape = name, np.random.default_rng(seed), tuple(shape)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.channels = {"input": shape[1]}

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """An operator that keeps its first operand's channels."""
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        self.channels[name] = self.channels.get(next(filter(None, inputs)), 0)
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """An initializer."""
        name = f"constant{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def conv(self, x: str, channels: int, kernel: int, stride: int = 1, **other: Any) -> str:
        """A convolution of an image, a signal or a volume, padded so as to keep its size."""
        rank, groups = len(self.shape) - 2, other.get("group", 1)
        dilation = other.pop("dilation", 1)
        pad = dilation * (kernel - 1) // 2
        fan = self.channels[x] // groups * kernel**rank
        weight = self.rng.standard_normal((channels, self.channels[x] // groups, *[kernel] * rank))
        inputs = self.constant(weight * np.sqrt(2 / fan)), self.constant(self._bias(channels))
        steps = {
            "strides": [stride] * rank,
            "pads": [pad] * (2 * rank),
            "dilations": [dilation] * rank,
        }
        result = self.node("Conv", x, *inputs, **steps, **other)
        self.channels[result] = channels
        return result

    def depthwise(self, x: str, kernel: int, stride: int = 1, dilation: int = 1) -> str:
        """A convolution of each channel by itself."""
        channels = self.channels[x]
        return self.conv(x, channels, kernel, stride, group=channels, dilation=dilation)

    def up(self, x: str, channels: int) -> str:
        """A transposed convolution to twice the size."""
        before = self.channels[x]
        weight = self.rng.standard_normal((before, channels, 2, 2)) / np.sqrt(before)
        inputs = self.constant(weight), self.constant(self._bias(channels))
        result = self.node("ConvTranspose", x, *inputs, strides=[2, 2])
        self.channels[result] = channels
        return result

    def _bias(self, channels: int) -> Array:
        return self.rng.normal(0, 0.2, channels)

    def norm(self, x: str) -> str:
        """A batch normalization."""
        n = self.channels[x]
        mean, variance = self.rng.normal(0, 0.3, n), self.rng.uniform(0.5, 2, n)
        values = self.rng.uniform(0.5, 1.5, n), self.rng.normal(0, 0.3, n), mean, variance
        return self.node("BatchNormalization", x, *map(self.constant, values))

    def relu(self, x: str) -> str:
        """A ReLU."""
        return self.node("Relu", x)

    def silu(self, x: str) -> str:
        """``x * sigmoid(x)``."""
        return self.node("Mul", x, self.node("Sigmoid", x))

    def concat(self, *parts: str, axis: int = 1) -> str:
        """Parts one behind another."""
        result = self.node("Concat", *parts, axis=axis)
        if axis == 1:
            self.channels[result] = sum(self.channels[part] for part in parts)
        return result

    def split(self, x: str) -> tuple[str, str]:
        """Both halves of the channels."""
        half, name = self.channels[x] // 2, f"split{len(self.nodes)}"
        names = f"{name}.a", f"{name}.b"
        sizes = self.constant([half, half], np.int64)
        self.nodes.append(helper.make_node("Split", [x, sizes], names, name=name, axis=1))
        self.channels.update(dict.fromkeys(names, half))
        return names

    def shuffle(self, x: str, size: int, groups: int = 2) -> str:
        """Channels of the groups take turns."""
        n = self.channels[x]
        parts = self.constant([1, groups, n // groups, size, size], np.int64)
        whole = self.constant([1, n, size, size], np.int64)
        turned = self.node("Transpose", self.node("Reshape", x, parts), perm=[0, 2, 1, 3, 4])
        return self.node("Reshape", turned, whole)

    def resize(self, x: str, mode: str, factor: int = 2, **attributes: Any) -> str:
        """An image so many times as large."""
        scales = self.constant([1, 1, factor, factor])
        return self.node("Resize", x, "", scales, mode=mode, **attributes)

    def pool(self, kind: str, x: str, kernel: int, stride: int = 1, **other: Any) -> str:
        """A pool; by default padded so that a stride of 1 keeps the image's size."""
        rank, pad = len(self.shape) - 2, other.pop("pad", (kernel - 1) // 2)
        steps = {"kernel_shape": [kernel] * rank, "strides": [stride] * rank}
        return self.node(kind, x, **steps, pads=[pad] * (2 * rank), **other)

    def classes(self, x: str, count: int = 10) -> str:
        """The mean of all pixels, and a dense layer."""
        flat = self.node("Flatten", self.node("GlobalAveragePool", x))
        n = self.channels[x]
        weight = self.constant(self.rng.standard_normal((count, n)) / np.sqrt(n))
        return self.node("Gemm", flat, weight, self.constant(self._bias(count)), transB=1)

    def model(self, *outputs: str) -> onnx.ModelProto:
        """The finished model."""
        kind = onnx.TensorProto.FLOAT
        start = helper.make_tensor_value_info("input", kind, self.shape)
        ends = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
        graph = helper.make_graph(self.nodes, self.name, [start], ends, self.weights)
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)


# Networks ----------------------------------------------------------------------------------------


def gates() -> onnx.ModelProto:
    """Attention over channels, as EfficientNet and MobileNetV3 have it."""
    b = Net("gates", 1, (1, 3, 32, 32))
    x = b.silu(b.conv("input", 16, 3, 2))
    for channels, hard in ((24, False), (24, True), (40, True)):
        stride, before = (1 if channels == b.channels[x] else 2), x
        function = (lambda v: b.node("HardSwish", v)) if hard else b.silu
        y = function(b.conv(x, 3 * b.channels[x], 1))
        y = function(b.depthwise(y, 5 if hard else 3, stride))
        gate = b.relu(b.conv(b.node("GlobalAveragePool", y), 8, 1))
        gate = b.node("HardSigmoid" if hard else "Sigmoid", b.conv(gate, b.channels[y], 1))
        y = b.conv(b.node("Mul", y, gate), channels, 1)
        x = b.node("Add", y, before) if stride == 1 else y
    return b.model(b.classes(b.silu(b.conv(x, 64, 1))))


def dense() -> onnx.ModelProto:
    """DenseNet: normalization and ReLU behind concatenations."""
    b = Net("dense", 2, (1, 3, 32, 32))
    x = b.pool("MaxPool", b.relu(b.conv("input", 24, 3, 2)), 3, 2)
    for block in range(2):
        for _ in range(3):
            y = b.conv(b.relu(b.norm(x)), 48, 1)
            x = b.concat(x, b.conv(b.relu(b.norm(y)), 12, 3))
        if block == 0:
            x = b.conv(b.relu(b.norm(x)), 32, 1)
            x = b.pool("AveragePool", x, 2, 2, pad=0)
    return b.model(b.classes(b.relu(b.norm(x))))


def hourglass() -> onnx.ModelProto:
    """A U-Net that grows by bilinear resizes and by a transposed convolution."""
    b = Net("hourglass", 3, (1, 3, 32, 32))
    x, skipped = "input", []
    for channels in (16, 24, 32):
        x = b.relu(b.conv(b.relu(b.conv(x, channels, 3)), channels, 3))
        skipped.append(x)
        x = b.pool("MaxPool", x, 2, 2, pad=0)
    x = b.relu(b.conv(x, 48, 3))
    modes = ("half_pixel", "align_corners", None)
    for mode, skip in zip(modes, reversed(skipped), strict=True):
        if mode is None:
            x = b.up(x, 16)
        else:
            x = b.resize(x, "linear", coordinate_transformation_mode=mode)
        x = b.relu(b.conv(b.concat(skip, x), b.channels[skip], 3))
    return b.model(b.conv(x, 2, 1))


def detector() -> onnx.ModelProto:
    """A detector's backbone, pyramid of pools, neck and two heads, as YOLOv8 has them."""
    b = Net("detector", 4, (1, 3, 64, 64))

    def block(x: str, channels: int) -> str:
        parts = list(b.split(b.silu(b.conv(x, channels, 1))))
        inner = b.silu(b.conv(parts[-1], channels // 2, 3))
        parts.append(b.node("Add", b.silu(b.conv(inner, channels // 2, 3)), parts[-1]))
        return b.silu(b.conv(b.concat(*parts), channels, 1))

    x = b.silu(b.conv(b.silu(b.conv("input", 16, 3, 2)), 24, 3, 2))
    fine = block(b.silu(b.conv(x, 32, 3, 2)), 32)
    x = b.silu(b.conv(block(b.silu(b.conv(fine, 48, 3, 2)), 48), 24, 1))
    pools = [x]
    for _ in range(3):
        pools.append(b.pool("MaxPool", pools[-1], 5))
    coarse = b.silu(b.conv(b.concat(*pools), 48, 1))
    nearest = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    up = b.resize(coarse, "nearest", **nearest)
    fine = block(b.concat(up, fine), 32)
    down = b.node("LeakyRelu", b.conv(fine, 48, 3, 2), alpha=0.1)
    coarse = block(b.concat(down, coarse), 48)
    heads = [b.conv(b.silu(b.conv(x, 32, 3)), 20, 1) for x in (fine, coarse)]
    shape = b.constant([1, 20, -1], np.int64)
    return b.model(b.concat(*[b.node("Reshape", x, shape) for x in heads], axis=2))


def shuffles() -> onnx.ModelProto:
    """Fire modules of SqueezeNet, units of ShuffleNet."""
    b = Net("shuffles", 5, (1, 3, 32, 32))
    x = b.pool("MaxPool", b.relu(b.conv("input", 24, 3, 2)), 3, 2, pad=0, ceil_mode=1)
    x = b.relu(b.conv(x, 8, 1))
    x = b.concat(b.relu(b.conv(x, 28, 1)), b.relu(b.conv(x, 28, 3)))
    left = b.relu(b.conv(b.depthwise(x, 3, 2), 28, 1))
    right = b.relu(b.conv(b.depthwise(b.relu(b.conv(x, 28, 1)), 3, 2), 28, 1))
    x = b.shuffle(b.concat(left, right), 4)
    for _ in range(2):
        left, right = b.split(x)
        right = b.depthwise(b.relu(b.conv(right, 28, 1)), 3)
        x = b.shuffle(b.concat(left, b.relu(b.conv(right, 28, 1))), 4)
    return b.model(b.classes(b.relu(b.conv(x, 64, 1))))


def signal() -> onnx.ModelProto:
    """A temporal network: dilated convolutions of a signal, residuals, pools."""
    b = Net("signal", 6, (1, 8, 128))
    x = b.relu(b.conv("input", 32, 7, 2))
    for dilation in (1, 2, 4):
        y = b.relu(b.depthwise(x, 3, dilation=dilation))
        x = b.relu(b.node("Add", b.conv(y, 32, 1), x))
    x = b.pool("MaxPool", x, 3, 2)
    x = b.relu(b.norm(b.conv(x, 48, 3, dilation=2)))
    x = b.pool("AveragePool", x, 2, 2, pad=0)
    return b.model(b.classes(x))


def volume() -> onnx.ModelProto:
    """A network of volumes, as C3D is."""
    b = Net("volume", 7, (1, 4, 8, 16, 16))
    x = b.relu(b.conv("input", 16, 3))
    x = b.pool("MaxPool", x, 2, 2, pad=0)
    x = b.relu(b.norm(b.conv(x, 32, 3)))
    y = b.conv(b.relu(b.conv(x, 32, 1)), 32, 3)
    x = b.pool("AveragePool", b.relu(b.node("Add", x, y)), 2, 2, pad=0)
    return b.model(b.classes(x))


def pools() -> onnx.ModelProto:
    """Averages of odd divisors and pads, pools that round up, dilated depthwise convolutions."""
    b = Net("pools", 8, (1, 3, 35, 35))
    x = b.pool("MaxPool", b.relu(b.conv("input", 32, 3, 2)), 3, 2, pad=0, ceil_mode=1)
    a = b.relu(b.conv(b.pool("AveragePool", x, 3), 16, 1))
    c = b.relu(b.conv(b.pool("AveragePool", x, 3, count_include_pad=1), 16, 1))
    d = b.relu(b.depthwise(b.depthwise(x, 3, dilation=2), 3, dilation=3))
    x = b.concat(a, c, d)
    x = b.pool("AveragePool", x, 3, 2, pad=1, ceil_mode=1, count_include_pad=1)
    x = b.relu(b.conv(b.pool("AveragePool", x, 2, 2, pad=0, ceil_mode=1), 48, 3))
    flat = b.node("Flatten", x)
    weight = b.constant(b.rng.standard_normal((10, 48 * 9)) / 20)
    return b.model(b.node("Gemm", flat, weight, b.constant(np.zeros(10)), transB=1))


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    f.__name__: f for f in (gates, dense, hourglass, detector, shuffles, signal, volume, pools)
}


# Quantization ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Style:
    """Options with which onnxruntime's quantizer is called."""

    operators: bool = False
    unsigned: bool = False
    per_channel: bool = False
    every: bool = False
    products: bool = False  # alone: all between them stays float
    symmetric: bool = False


STYLES = {
    "u8": Style(unsigned=True),
    "s8c": Style(per_channel=True),
    "qop": Style(operators=True, unsigned=True),
    "all": Style(every=True),
    "products": Style(products=True, per_channel=True),
    "products_u8": Style(products=True, unsigned=True),
    "products_s8": Style(products=True, symmetric=True),
}
PRODUCTS = ("MatMul", "Gemm", "Conv")


def images(model: onnx.ModelProto, count: int, seed: int) -> Iterator[dict[str, Array]]:
    """Random inputs: smooth waves and noise."""
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    rng = np.random.default_rng(seed)
    for _ in range(count):
        wave = rng.uniform(-1, 1, (*shape[:2], *[1] * (len(shape) - 2)))
        for axis, size in enumerate(shape[2:], start=2):
            steps = np.linspace(0, rng.uniform(2, 12), size) + rng.uniform(0, 6)
            wave = wave + np.sin(steps).reshape([-1 if n == axis else 1 for n in range(len(shape))])
        yield {"input": (wave + 0.3 * rng.standard_normal(shape)).astype(np.float32)}


def samples(model: onnx.ModelProto) -> dict[str, Array]:
    """The inputs with which a network is quantized, one behind another."""
    several = [*images(model, SAMPLES, 0)]
    return {name: np.concatenate([each[name] for each in several]) for name in several[0]}


def is_partial(style: str) -> bool:
    """Whether a style quantizes products alone, so that inputs that are added to stay floats."""
    return STYLES[style].products


def write(model: onnx.ModelProto, style: str, path: Path) -> dict[str, Array]:
    """Writes a network, quantized in a style, and gives an input for it."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )
    from onnxruntime.quantization.shape_inference import quant_pre_process

    chosen, samples = STYLES[style], images(model, SAMPLES, 0)
    if chosen.every:
        onnx.save(quantize_all(model, samples), path)
        return next(images(model, 1, 99))

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, Array] | None:
            return next(samples, None)

    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with TemporaryDirectory() as folder:
            source, ready = Path(folder) / "float.onnx", Path(folder) / "ready.onnx"
            onnx.save(model, source)
            quant_pre_process(source, ready, skip_symbolic_shape=True)
            quantize_static(
                ready,
                path,
                Reader(),
                quant_format=QuantFormat.QOperator if chosen.operators else QuantFormat.QDQ,
                per_channel=chosen.per_channel,
                activation_type=QuantType.QUInt8 if chosen.unsigned else QuantType.QInt8,
                weight_type=QuantType.QInt8,
                op_types_to_quantize=PRODUCTS if chosen.products else None,
                extra_options={"ActivationSymmetric": chosen.symmetric},
            )
    finally:
        logger.setLevel(level)
    return next(images(model, 1, 99))
