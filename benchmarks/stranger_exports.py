"""More networks of ``strangers.py``: CNNs as other exporters and authors write them.

Images of TensorFlow lie as N, H, W, C: each convolution has transpositions around it, and what
stands between is along the last axis. Normalizations come in pieces, squeezes and their functions
in several spellings, and numbers of channels that fill no blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from stranger_models import Net

FRONT, BACK = [0, 3, 1, 2], [0, 2, 3, 1]  # to N, C, H, W, and to N, H, W, C


class Rows(Net):
    """A network under construction whose images lie as N, H, W, C."""

    def __init__(self, name: str, seed: int, size: int, channels: int) -> None:
        super().__init__(name, seed, (1, size, size, channels))
        self.channels["input"] = channels

    def turned(self, x: str, make: Callable[[str], str]) -> str:
        """The result of an operator of N, C, H, W as N, H, W, C."""
        return self.node("Transpose", make(self.node("Transpose", x, perm=FRONT)), perm=BACK)

    def layer(self, x: str, channels: int, kernel: int, stride: int = 1, **other: Any) -> str:
        """A convolution between transpositions, and a normalization in pieces."""
        x = self.turned(x, lambda y: self.conv(y, channels, kernel, stride, **other))
        return self.pieces(x)

    def pieces(self, x: str) -> str:
        """A normalization: ``(x - mean) * factor + offset``."""
        shape = (1, 1, 1, self.channels[x])
        x = self.node("Sub", x, self.constant(self.rng.normal(0, 0.3, shape)))
        x = self.node("Mul", x, self.constant(self.rng.uniform(0.5, 1.5, shape)))
        return self.node("Add", x, self.constant(self.rng.normal(0, 0.3, shape)))

    def padded(self, x: str, before: int, after: int) -> str:
        """Zeros around rows and columns."""
        pads = [0, before, before, 0, 0, after, after, 0]
        return self.node("Pad", x, self.constant(pads, np.int64))

    def joined(self, *parts: str) -> str:
        """Parts one behind another along the channels."""
        result = self.concat(*parts, axis=3)
        self.channels[result] = sum(self.channels[part] for part in parts)
        return result

    def means(self, x: str, keep: int = 0) -> str:
        """The mean of all pixels."""
        return self.node("ReduceMean", x, axes=[1, 2], keepdims=keep)


def rows() -> onnx.ModelProto:
    """A network of TensorFlow: residuals, pads, and concatenations along the last axis."""
    b = Rows("rows", 11, 32, 3)
    x = b.relu(b.layer(b.padded("input", 1, 1), 16, 3, 2))
    x = b.turned(b.padded(x, 0, 1), lambda y: b.pool("MaxPool", y, 3, 2))
    y = b.layer(b.relu(b.layer(b.relu(b.layer(x, 16, 1)), 16, 3)), 32, 1)
    x = b.relu(b.node("Add", y, b.layer(x, 32, 1)))
    y = b.relu(b.layer(b.padded(b.relu(b.layer(x, 24, 1)), 0, 1), 24, 3))
    x = b.joined(b.relu(b.layer(b.padded(x, 0, 1), 40, 3)), y)
    gate = b.relu(b.turned(b.means(x, keep=1), lambda y: b.conv(y, 16, 1)))
    gate = b.node("Sigmoid", b.turned(gate, lambda y: b.conv(y, 64, 1)))
    x = b.relu(b.pieces(b.node("Mul", x, gate)))
    weight = b.constant(b.rng.standard_normal((64, 10)) / 8)
    x = b.node("Add", b.node("MatMul", b.means(x), weight), b.constant(b.rng.normal(0, 0.2, 10)))
    return b.model(b.node("Softmax", x, axis=-1))


def squeezes() -> onnx.ModelProto:
    """Factors for channels by products whose inner numbers fill no block, in several spellings."""
    b = Net("squeezes", 12, (1, 3, 32, 32))
    x = b.silu(b.conv("input", 16, 3, 2))
    for number, (channels, inner) in enumerate(((16, 4), (24, 10), (24, 6))):
        y = b.silu(b.depthwise(b.silu(b.conv(x, 4 * b.channels[x], 1)), 3))
        if number == 1:
            means = b.node("ReduceMean", y, axes=[2, 3], keepdims=1)
        else:
            means = b.node("GlobalAveragePool", y)
        wide = b.channels[y]
        if number == 2:  # dense layers, and a reshape
            flat = b.node("Flatten", means)
            for n, m, function in ((wide, inner, b.relu), (inner, wide, None)):
                weight = b.constant(b.rng.standard_normal((n, m)) / np.sqrt(n))
                flat = b.node("Gemm", flat, weight, b.constant(b.rng.normal(0, 0.2, m)))
                flat = function(flat) if function else flat
            gate = b.node("Reshape", flat, b.constant([1, wide, 1, 1], np.int64))
        else:
            gate = b.conv((b.silu, b.relu)[number](b.conv(means, inner, 1)), wide, 1)
        gate = b.node("HardSigmoid" if number == 1 else "Sigmoid", gate)
        y = b.conv(b.node("Mul", *((gate, y) if number else (y, gate))), channels, 1)
        b.channels[y] = channels
        x = b.node("Add", x, y) if b.channels[x] == channels else y
    return b.model(b.classes(b.silu(b.conv(x, 64, 1))))


def boxes() -> onnx.ModelProto:
    """A YOLOX: a focus of strided slices, parts of 24 and 40, heads whose ends are floats."""
    b = Net("boxes", 13, (1, 3, 32, 32))
    slices = []
    for row, column in ((0, 0), (1, 0), (0, 1), (1, 1)):
        starts, ends, axes, steps = (
            b.constant(each, np.int64) for each in ([row, column], [32, 32], [2, 3], [2, 2])
        )
        slices.append(b.node("Slice", "input", starts, ends, axes, steps))
        b.channels[slices[-1]] = 3
    x = b.silu(b.conv(b.concat(*slices), 24, 3))
    x = b.concat(b.silu(b.conv(x, 40, 3)), x)
    x = b.silu(b.conv(x, 40, 3, 2))
    parts = [b.silu(b.conv(x, 20, 1)), b.silu(b.conv(x, 12, 1))]
    fine = b.silu(b.conv(b.concat(*parts), 32, 1))
    coarse = b.silu(b.conv(fine, 24, 3, 2))
    heads = []
    for level in (fine, coarse):
        own = b.silu(b.conv(level, 16, 1))
        place, kinds = b.silu(b.conv(own, 16, 3)), b.silu(b.conv(own, 16, 3))
        ends = b.conv(place, 4, 1), b.conv(place, 1, 1), b.conv(kinds, 3, 1)
        head = b.concat(ends[0], *[b.node("Sigmoid", end) for end in ends[1:]])
        heads.append(b.node("Reshape", head, b.constant([1, 8, -1], np.int64)))
    return b.model(b.node("Transpose", b.concat(*heads, axis=2), perm=[0, 2, 1]))


def decoded() -> onnx.ModelProto:
    """A detector whose ends are floats: boxes by softmax and anchors, scores by sigmoid."""
    b = Net("decoded", 14, (1, 3, 32, 32))
    x = b.silu(b.conv(b.silu(b.conv("input", 16, 3, 2)), 32, 3, 2))
    heads = []
    for level in (x, b.silu(b.conv(x, 32, 3, 2))):
        head = b.concat(b.conv(level, 32, 1), b.conv(level, 3, 1))
        heads.append(b.node("Reshape", head, b.constant([1, 35, -1], np.int64)))
    whole = b.concat(*heads, axis=2)
    sizes = b.constant([32, 3], np.int64)
    names = ["sides", "scores"]
    b.nodes.append(onnx.helper.make_node("Split", [whole, sizes], names, name="split", axis=1))
    sides = b.node("Reshape", "sides", b.constant([1, 4, 8, -1], np.int64))
    sides = b.node("Softmax", b.node("Transpose", sides, perm=[0, 2, 1, 3]), axis=1)
    weight = b.constant(np.arange(8).reshape(1, 8, 1, 1))
    sides = b.node("Reshape", b.node("Conv", sides, weight), b.constant([1, 4, -1], np.int64))
    anchors = b.constant(b.rng.uniform(0, 8, (1, 4, 80)))
    sides = b.node("Mul", b.node("Add", sides, anchors), b.constant([[4.0] * 64 + [8.0] * 16]))
    return b.model(b.concat(sides, b.node("Sigmoid", "scores")))


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    f.__name__: f for f in (rows, squeezes, boxes, decoded)
}
