"""Trains the bundled scenes network: a small U-Net that names the digit that each pixel belongs to.

    python training/scenes.py

writes ``scenes.onnx`` and ``scenes_test.npz`` into ``compiler/models/data``, and prints how many
pixels the float network gets right. A **scene** is a picture of 32x32 pixels with some of
scikit-learn's digits in it, light ones on dark noise; a pixel's class is its digit, or 10 for the
ground. Numpy's gradient descent takes about ten minutes on two cores; the same seeds give the same
files on one machine. Needs scikit-learn (extra ``dev``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import digits
import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.graph.types import Array
from vdla.compiler.models.builder import IR_VERSION, OPSET
from vdla.compiler.models.quantizer import quantize_model

DATA = Path(__file__).parents[1] / "compiler" / "models" / "data"
SEED = 11
SIDE, DIGIT = 32, 8  # of a scene and of a digit, in pixels
GROUND = 10
CLASSES = 11
INK = 0.3  # a pixel at least so bright is the digit's
STEPS, BATCH, RATE = 2000, 16, 3e-3
TESTS = 64
Params = dict[str, Array]


# Scenes ------------------------------------------------------------------------------------------


def scenes(
    pictures: Array, labels: Array, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Scenes float32 [count, 1, 32, 32], of 256 shades, and their pixels' classes uint8
    [count, 32, 32]."""
    x = rng.uniform(0, 0.15, (count, 1, SIDE, SIDE)).astype(np.float32)
    y = np.full((count, SIDE, SIDE), GROUND, np.uint8)
    for scene, classes in zip(x[:, 0], y, strict=True):
        for top in range(0, SIDE - DIGIT + 1, DIGIT + 2):
            for left in range(0, SIDE - DIGIT + 1, DIGIT + 2):
                if rng.uniform() < 0.4:
                    continue
                pick = rng.integers(len(labels))
                row, column = top + rng.integers(0, 3), left + rng.integers(0, 3)
                here = slice(row, row + DIGIT), slice(column, column + DIGIT)
                ink = pictures[pick, 0][: SIDE - row, : SIDE - column]
                scene[here] = np.maximum(scene[here], ink * rng.uniform(0.7, 1.0))
                classes[here][ink >= INK] = labels[pick]
    return np.rint(x * 255) / np.float32(255), y


# The network and its gradients -------------------------------------------------------------------


def columns(x: Array) -> Array:
    """[N, C*9, H*W]: the 3x3 neighbourhood of every pixel, zeros outside."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = [padded[:, :, r : r + h, s : s + w] for r in range(3) for s in range(3)]
    return np.stack(parts, axis=2).reshape(n, c * 9, h * w)


def uncolumns(g: Array, shape: tuple[int, ...]) -> Array:
    """The adjoint of :func:`columns`: adds every neighbourhood's gradient back to its pixels."""
    n, c, h, w = shape
    padded = np.zeros((n, c, h + 2, w + 2))
    parts = g.reshape(n, c, 9, h, w)
    for k in range(9):
        r, s = divmod(k, 3)
        padded[:, :, r : r + h, s : s + w] += parts[:, :, k]
    return padded[:, :, 1:-1, 1:-1]


@dataclass
class Network:
    """Operators in a row, each of which notes how its gradient goes back, and its ONNX node."""

    params: Params
    values: dict[str, Array]
    rng: np.random.Generator
    backs: list[tuple[str, Sequence[str], Callable[[Array], Sequence[Array]]]] = field(
        default_factory=list
    )
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    gradients: Params = field(default_factory=dict)

    def conv(self, name: str, x: str, channels: int, kernel: int = 3) -> str:
        """A convolution that keeps the size."""
        value = self.values[x]
        shape = (channels, value.shape[1], kernel, kernel)
        weight, bias = self.param(f"{name}.weight", shape), self.param(f"{name}.bias", (channels,))
        seen = columns(value) if kernel == 3 else flat(value)
        matrix = weight.reshape(channels, -1)
        result = (matrix @ seen).reshape(len(value), channels, *value.shape[2:])

        def back(d: Array) -> Sequence[Array]:
            d = flat(d)
            self.gradients[f"{name}.weight"] = product(d, seen).reshape(shape)
            self.gradients[f"{name}.bias"] = d.sum(axis=(0, 2))
            spread = matrix.T @ d
            if kernel == 3:
                return (uncolumns(spread, value.shape).astype(value.dtype),)
            return (spread.reshape(value.shape),)

        inputs = [x, f"{name}.weight", f"{name}.bias"]
        pads = {"kernel_shape": [kernel] * 2, "pads": [kernel // 2] * 4}
        self.nodes.append(helper.make_node("Conv", inputs, [name], name=name, **pads))
        return self.emit(name, [x], result + bias[:, None, None], back)

    def silu(self, x: str) -> str:
        """``x * sigmoid(x)``."""
        value = self.values[x]
        gate = 1 / (1 + np.exp(np.minimum(-value, 80)))
        factor, name = f"{x}.sigmoid", f"{x}.silu"
        self.nodes.append(helper.make_node("Sigmoid", [x], [factor], name=factor))
        self.nodes.append(helper.make_node("Mul", [x, factor], [name], name=name))
        slope = gate * (1 + value * (1 - gate))
        return self.emit(name, [x], value * gate, lambda d: (d * slope,))

    def pool(self, name: str, x: str) -> str:
        """The largest of each four pixels."""
        value = self.values[x]
        n, c, h, w = value.shape
        fours = value.reshape(n, c, h // 2, 2, w // 2, 2)
        result = fours.max(axis=(3, 5))
        winners = fours == result[:, :, :, None, :, None]
        share = winners / winners.sum(axis=(3, 5), keepdims=True)

        def back(d: Array) -> Sequence[Array]:
            return ((share * d[:, :, :, None, :, None]).reshape(value.shape).astype(value.dtype),)

        window = {"kernel_shape": [2, 2], "strides": [2, 2]}
        self.nodes.append(helper.make_node("MaxPool", [x], [name], name=name, **window))
        return self.emit(name, [x], result, back)

    def grow(self, name: str, x: str, channels: int) -> str:
        """A transposed convolution to twice the size: each pixel becomes four."""
        value = self.values[x]
        n, c, h, w = value.shape
        weight = self.param(f"{name}.weight", (c, channels, 2, 2))
        matrix = weight.reshape(c, -1)

        def woven(parts: Array) -> Array:
            return parts.reshape(n, channels, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3)

        def back(d: Array) -> Sequence[Array]:
            parts = d.reshape(n, channels, h, 2, w, 2).transpose(0, 1, 3, 5, 2, 4)
            parts = parts.reshape(n, channels * 4, h * w)
            self.gradients[f"{name}.weight"] = product(flat(value), parts).reshape(weight.shape)
            return ((matrix @ parts).reshape(value.shape),)

        window = {"kernel_shape": [2, 2], "strides": [2, 2]}
        inputs = [x, f"{name}.weight"]
        self.nodes.append(helper.make_node("ConvTranspose", inputs, [name], name=name, **window))
        result = woven(matrix.T @ flat(value)).reshape(n, channels, 2 * h, 2 * w)
        return self.emit(name, [x], result, back)

    def concat(self, name: str, a: str, b: str) -> str:
        """Channels side by side."""
        first = self.values[a].shape[1]
        result = np.concatenate([self.values[a], self.values[b]], axis=1)
        self.nodes.append(helper.make_node("Concat", [a, b], [name], name=name, axis=1))
        return self.emit(name, [a, b], result, lambda d: (d[:, :first], d[:, first:]))

    def param(self, name: str, shape: tuple[int, ...]) -> Array:
        """A parameter; He-initialised weights and zero biases at the first use."""
        if name not in self.params:
            fan_in = int(np.prod(shape[1:]))
            scale = np.sqrt(2.0 / fan_in) if len(shape) > 1 else 0.0
            self.params[name] = (self.rng.standard_normal(shape) * scale).astype(np.float32)
        return self.params[name]

    def emit(
        self,
        name: str,
        inputs: Sequence[str],
        value: Array,
        back: Callable[[Array], Sequence[Array]],
    ) -> str:
        """Notes a result and how its gradient goes to what it was made of."""
        self.values[name] = value
        self.backs.append((name, inputs, back))
        return name

    def backward(self, name: str, d: Array) -> None:
        """Fills ``gradients`` from the gradient of one result."""
        grads = {name: d}
        for result, inputs, back in reversed(self.backs):
            for each, part in zip(inputs, back(grads.pop(result)), strict=True):
                grads[each] = grads[each] + part if each in grads else part


def flat(x: Array) -> Array:
    """[N, C, H, W] as [N, C, H*W]."""
    return x.reshape(*x.shape[:2], -1)


def product(a: Array, b: Array) -> Array:
    """Σ a[n, i, p] * b[n, j, p] over n and p."""
    return np.asarray((a @ b.transpose(0, 2, 1)).sum(axis=0))


def unet(net: Network) -> str:
    """Two levels down, two up; the name of the logits [N, 11, 32, 32]."""
    x, skipped = "scene", []
    for level, channels in enumerate((16, 32)):
        x = net.silu(net.conv(f"down{level}", x, channels))
        skipped.append(x)
        x = net.pool(f"pool{level}", x)
    x = net.silu(net.conv("bottom1", x, 64))
    x = net.silu(net.conv("bottom2", x, 64))
    for level, channels in ((1, 32), (0, 16)):
        up = net.grow(f"up{level}", x, channels)
        x = net.silu(
            net.conv(f"merge{level}", net.concat(f"cat{level}", skipped[level], up), channels)
        )
    return net.conv("classes", x, CLASSES, kernel=1)


def gradients(params: Params, x: Array, y: Array, rng: np.random.Generator) -> tuple[float, Params]:
    """The cross-entropy of pixels, and its gradient."""
    net = Network(params, {"scene": x}, rng)
    logits = net.values[name := unet(net)]
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    probability = exp / exp.sum(axis=1, keepdims=True)
    wanted = np.take_along_axis(probability, y[:, None].astype(np.int64), axis=1)
    hot = y[:, None] == np.arange(CLASSES)[None, :, None, None]
    weight = np.where(y == GROUND, 0.3, 1.0)[:, None].astype(np.float32)
    net.backward(name, (probability - hot) * weight / y.size)
    return float(-(np.log(wanted + 1e-9) * weight).mean()), net.gradients


def train(pictures: Array, labels: Array) -> Params:
    """Adam, the rate falling to zero along a cosine."""
    rng = np.random.default_rng(SEED)
    params: Params = {}
    mean: Params = {}
    square: Params = {}
    for step in range(1, STEPS + 1):
        loss, g = gradients(params, *scenes(pictures, labels, BATCH, rng), rng)
        rate = RATE * 0.5 * (1 + np.cos(np.pi * step / STEPS))
        for k, v in g.items():
            mean[k] = 0.9 * mean.get(k, np.zeros_like(v)) + 0.1 * v
            square[k] = 0.999 * square.get(k, np.zeros_like(v)) + 0.001 * v * v
            m, s = mean[k] / (1 - 0.9**step), square[k] / (1 - 0.999**step)
            params[k] = (params[k] - rate * m / (np.sqrt(s) + 1e-8)).astype(np.float32)
        if step % 100 == 0:
            print(f"step {step} of {STEPS}: loss {loss:.4f}", flush=True)
    return params


def model(params: Params) -> onnx.ModelProto:
    """The float ONNX network for one scene."""
    net = Network(
        params, {"scene": np.zeros((1, 1, SIDE, SIDE), np.float32)}, np.random.default_rng()
    )
    name = unet(net)
    weights = [numpy_helper.from_array(v, k) for k, v in params.items()]
    ends = [
        helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, net.values[n].shape)
        for n in ("scene", name)
    ]
    graph = helper.make_graph(net.nodes, "scenes", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="vdla"
    )


def predicted(params: Params, x: Array) -> Array:
    """The classes of pixels [N, 32, 32] that the float network gives."""
    net = Network(params, {"scene": x}, np.random.default_rng())
    return np.asarray(net.values[unet(net)].argmax(axis=1))


def main(folder: Path = DATA) -> tuple[float, float]:
    """Trains, quantizes and writes; the float network's share of right pixels, of all and of
    digits alone."""
    x, labels, test, test_labels = digits.load()
    params = train(x, labels)
    images, classes = scenes(test, test_labels, TESTS, np.random.default_rng(SEED + 1))
    samples, _ = scenes(x, labels, 32, np.random.default_rng(SEED + 2))
    float_model = model(params)
    quantize_model(float_model, folder / "scenes.onnx", [{"scene": s[None]} for s in samples])
    right = predicted(params, images) == classes
    truth = np.array([right.mean(), right[classes != GROUND].mean()], np.float32)
    np.savez_compressed(
        folder / "scenes_test.npz",
        images=np.rint(images * 255).astype(np.uint8),
        labels=classes,
        float_accuracy=truth,
    )
    return float(truth[0]), float(truth[1])


if __name__ == "__main__":
    print("float accuracy on the test scenes: {:.4f} of pixels, {:.4f} of digits'".format(*main()))
