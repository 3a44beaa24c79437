"""Float ONNX networks with made-up weights that behave like trained ones.

Weights are He-initialised from a seed. Each convolution is then rescaled and biased so that, on one
calibration image, every channel has the mean and spread a folded batch normalization would give it:
activations keep a healthy range through the whole depth.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Array, TensorType
from vdla.compiler.graph.window import Window

OPSET = 17
IR_VERSION = 8
UNUSED = TensorType((), "float32")


class Builder:
    """Adds operators one by one; ``values`` follows every tensor on the calibration images."""

    def __init__(self, name: str, seed: int, images: Array) -> None:
        self.name, self.rng = name, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.values: dict[str, Array] = {"input": images}

    def emit(
        self, op: str, name: str, inputs: list[str], value: Array, **attributes: object
    ) -> str:
        """Adds an ONNX node that writes ``name``."""
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        self.values[name] = np.ascontiguousarray(value, np.float32)
        return name

    def weight(self, name: str, array: Array) -> str:
        """Adds an initializer."""
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name))
        return name

    def conv(
        self,
        name: str,
        data: str,
        channels: int,
        window: Window,
        *,
        groups: int = 1,
        gain: float = 1.0,
        shift: float = 0.25,
    ) -> str:
        """A convolution whose channels have spread about ``gain`` and mean about ±``shift``."""
        per_group = self.values[data].shape[1] // groups
        fan_in = per_group * window.taps
        shape = (channels, per_group, *window.kernel)
        weight = self.rng.standard_normal(shape) * np.sqrt(2.0 / fan_in)
        node = ops.Conv2d(
            name=name,
            output=name,
            data=data,
            weight="",
            groups=groups,
            **window.steps,
        )
        weight = weight.astype(np.float32)
        raw = node.evaluate([self.values[data], weight], UNUSED)
        factor, bias = (array.astype(np.float32) for array in self._spread(raw, gain, shift))
        factor = factor[:, None, None, None]
        inputs = [
            data,
            self.weight(f"{name}.weight", weight * factor),
            self.weight(f"{name}.bias", bias),
        ]
        value = raw * factor[:, 0] + bias[:, None, None]
        attributes = {
            "group": groups,
            "dilations": list(window.dilations),
            **window_attributes(window),
        }
        return self.emit("Conv", name, inputs, value, **attributes)

    def conv_transpose(
        self,
        name: str,
        data: str,
        channels: int,
        window: Window,
        *,
        gain: float = 1.0,
        shift: float = 0.25,
    ) -> str:
        """A transposed convolution by a square window, alike padded at all sides, whose channels
        are spread as those of ``conv``."""
        kernel, stride, pad = window.kernel[0], window.strides[0], window.pads[0]
        x = self.values[data]
        before, (height, width) = x.shape[1], x.shape[2:]
        weight = self.rng.standard_normal((before, channels, kernel, kernel))
        size = [(length - 1) * stride + kernel for length in (height, width)]
        raw = np.zeros((len(x), channels, *size))
        for ky, kx in np.ndindex(kernel, kernel):
            rows = slice(ky, ky + (height - 1) * stride + 1, stride)
            columns = slice(kx, kx + (width - 1) * stride + 1, stride)
            raw[:, :, rows, columns] += np.einsum("nihw,io->nohw", x, weight[:, :, ky, kx])
        raw = raw[:, :, pad : size[0] - pad, pad : size[1] - pad]
        factor, bias = self._spread(raw, gain, shift)
        inputs = [
            data,
            self.weight(f"{name}.weight", weight * factor[:, None, None]),
            self.weight(f"{name}.bias", bias),
        ]
        value = raw * factor[:, None, None] + bias[:, None, None]
        return self.emit("ConvTranspose", name, inputs, value, **window_attributes(window))

    def _spread(self, raw: Array, gain: float, shift: float) -> tuple[Array, Array]:
        """A factor and a bias per channel, with which ``raw`` [N, C, H, W] has spread about
        ``gain`` and mean about ±``shift``."""
        channels = raw.shape[1]
        gamma = gain * self.rng.uniform(0.6, 1.4, channels)
        beta = shift * (1.0 + self.rng.standard_normal(channels))
        factor = gamma / (raw.std(axis=(0, 2, 3)) + 1e-3)
        return factor, beta - raw.mean(axis=(0, 2, 3)) * factor

    def relu(self, data: str) -> str:
        """A ``Relu`` on a tensor; gives the name of its output."""
        return self.emit("Relu", f"{data}.relu", [data], np.maximum(self.values[data], 0))

    def relu6(self, data: str) -> str:
        """A ``Clip`` to 0 … 6 on a tensor; gives the name of its output."""
        low, high = f"{data}.low", f"{data}.high"
        self.weights.append(numpy_helper.from_array(np.float32(0), low))
        self.weights.append(numpy_helper.from_array(np.float32(6), high))
        value = np.clip(self.values[data], 0, 6)
        return self.emit("Clip", f"{data}.relu6", [data, low, high], value)

    def tanh(self, data: str) -> str:
        """A ``Tanh`` on a tensor; gives the name of its output."""
        return self.emit("Tanh", f"{data}.tanh", [data], np.tanh(self.values[data]))

    def silu(self, data: str) -> str:
        """``x * sigmoid(x)`` as exporters write it; gives the name of its output."""
        gate = 1 / (1 + np.exp(-self.values[data]))
        factor = self.emit("Sigmoid", f"{data}.sigmoid", [data], gate)
        return self.emit("Mul", f"{data}.silu", [data, factor], self.values[data] * gate)

    def concat(self, name: str, *parts: str) -> str:
        """Several tensors' channels side by side; gives the name of the output."""
        value = np.concatenate([self.values[part] for part in parts], axis=1)
        return self.emit("Concat", name, list(parts), value, axis=1)

    def upsample(self, name: str, data: str) -> str:
        """Each pixel twice in both directions (nearest); gives the name of the output."""
        scales = self.weight(f"{name}.scales", np.array([1, 1, 2, 2]))
        value = self.values[data].repeat(2, axis=2).repeat(2, axis=3)
        nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
                   "nearest_mode": "floor"}  # fmt: skip
        return self.emit("Resize", name, [data, "", scales], value, **nearest)

    def add(self, name: str, a: str, b: str) -> str:
        """An ``Add`` of two tensors of one shape; gives the name of its output."""
        return self.emit("Add", name, [a, b], self.values[a] + self.values[b])

    def max_pool(self, name: str, data: str, window: Window) -> str:
        """A ``MaxPool``; gives the name of its output."""
        node = ops.MaxPool(
            name=name,
            output=name,
            data=data,
            kernel=window.size,
            **window.steps,
        )
        value = node.evaluate([self.values[data]], UNUSED)
        return self.emit("MaxPool", name, [data], value, **window_attributes(window))

    def global_pool(self, name: str, data: str) -> str:
        """A ``GlobalAveragePool``, the mean over height and width; gives the name of its output."""
        value = self.values[data].mean(axis=(2, 3), keepdims=True)
        return self.emit("GlobalAveragePool", name, [data], value)

    def flatten(self, name: str, data: str) -> str:
        """A ``Flatten`` of all dimensions but the batch into one; gives the name of its output."""
        value = self.values[data].reshape(self.values[data].shape[0], -1)
        return self.emit("Flatten", name, [data], value, axis=1)

    def classifier(
        self, name: str, data: str, classes: int, *, spread: float = 3.0, centering: float = 0.7
    ) -> str:
        """A dense layer whose logits differ between images, not only between classes.

        ``centering`` is how much of the mean image's features it takes away from all: pooled
        features are alike. What is left has all the noise, so take no more than features need.
        """
        features = self.values[data]
        weight = self.rng.standard_normal((classes, features.shape[1]))
        center = centering * features.mean(axis=0)
        weight *= spread / ((features - center) @ weight.T).std()
        bias = 0.3 * self.rng.standard_normal(classes) - weight @ center
        inputs = [data, self.weight(f"{name}.weight", weight), self.weight(f"{name}.bias", bias)]
        return self.emit("Gemm", name, inputs, features @ weight.T + bias, transB=1)

    def model(self, *outputs: str) -> onnx.ModelProto:
        """The finished model for one image."""
        ends = []
        for name in ("input", *outputs):
            shape = [1, *self.values[name].shape[1:]]
            ends.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
        graph = helper.make_graph(self.nodes, self.name, ends[:1], ends[1:], self.weights)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="vdla"
        )


def images(shape: tuple[int, ...], count: int, seed: int) -> Array:
    """Random pictures with structure: tinted gratings of several scales, and noise.

    Pure noise averages out in a deep network, so that every image would look the same to it.
    """
    rng = np.random.default_rng(seed)
    channels, height, width = shape[1:]
    y, x = np.meshgrid(np.linspace(0, 1, height), np.linspace(0, 1, width), indexing="ij")
    result = np.empty((count, channels, height, width))
    for i in range(count):
        picture = 0.5 * rng.standard_normal((channels, 1, 1)) * np.ones((channels, height, width))
        for scale in (1, 3, 8, 20):
            angle, phase = rng.uniform(0, 2 * np.pi, 2)
            wave = np.sin(2 * np.pi * scale * (x * np.cos(angle) + y * np.sin(angle)) + phase)
            picture += 0.6 * rng.standard_normal((channels, 1, 1)) * wave
        picture += rng.uniform(0.05, 0.5) * rng.standard_normal(picture.shape)
        result[i] = picture
    return result.astype(np.float32)


def window_attributes(window: Window) -> dict[str, list[int]]:
    """ONNX's attributes of convolutions and pools, but dilations: pools here have none."""
    return {
        "kernel_shape": list(window.kernel),
        "strides": list(window.strides),
        "pads": list(window.pads),
    }
