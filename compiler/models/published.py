"""Bundled networks in the spelling of others: as TensorFlow exports, and as onnxruntime quantizes.

mobilenetv3      gates over channels (squeeze-and-excitation), hard swish
resnet18-nhwc    channels last: a transposition around each layer, batch normalization in pieces
speech-bilstm    two bidirectional LSTM, whose weights a quantizer left in floats
audio-encoder    a transformer of sounds of which only the products are quantized
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx

from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Array
from vdla.compiler.graph.window import Window
from vdla.compiler.models.builder import UNUSED, Builder, images
from vdla.compiler.models.networks import IMAGE, calibration
from vdla.compiler.models.quantizer import Samples, quantize_types
from vdla.compiler.models.recurrent import OperatorBuilder
from vdla.compiler.models.transformers import Sizes

PHOTO = (1, 224, 224, 3)  # channels last
SPEECH = (1, 100, 40)  # frames of a second, bands
SOUND = (1, 80, 300)  # bands, frames of three seconds
AUDIO = Sizes(blocks=4, features=384, heads=6, length=150)
SEED = 20260901
PRODUCTS = ("Conv", "Gemm", "MatMul")  # what files that others publish quantize
TO_IMAGE, FROM_IMAGE = (0, 3, 1, 2), (0, 2, 3, 1)  # of channels last, and back


def photos() -> Array:
    """Pictures with their channels last."""
    return np.ascontiguousarray(calibration(IMAGE).transpose(FROM_IMAGE))


def speech(count: int = 6) -> Array:
    """Sequences of bands that rise and fall slowly, [count, T, C]."""
    return np.ascontiguousarray(images((1, 1, *SPEECH[1:]), count, SEED)[:, 0])


def sounds(count: int = 4) -> Array:
    """Bands of sounds, [count, C, T]."""
    return np.ascontiguousarray(images((1, 1, *SOUND[1:]), count, SEED)[:, 0])


# Squeeze and excitation --------------------------------------------------------------------------


class GateBuilder(Builder):
    """Adds MobileNetV3's functions and gates."""

    def hard_sigmoid(self, data: str) -> str:
        """``clip(x / 6 + 1 / 2, 0, 1)``; gives the name of its output."""
        value = np.clip(self.values[data] / 6 + 0.5, 0, 1)
        return self.emit("HardSigmoid", f"{data}.gate", [data], value, alpha=1 / 6, beta=0.5)

    def hard_swish(self, data: str) -> str:
        """``x * hard_sigmoid(x)`` as exporters write it; gives the name of its output."""
        gate = self.hard_sigmoid(data)
        value = self.values[data] * self.values[gate]
        return self.emit("Mul", f"{data}.swish", [data, gate], value)

    def excite(self, name: str, data: str) -> str:
        """A gate of each channel, made of all channels' means; gives the name of the product."""
        channels = self.values[data].shape[1]
        x = self.global_pool(f"{name}.mean", data)
        few = max(8, (channels // 4 + 4) // 8 * 8)
        x = self.relu(self.conv(f"{name}.reduce", x, few, Window.square(1)))
        x = self.hard_sigmoid(self.conv(f"{name}.expand", x, channels, Window.square(1), gain=2))
        return self.emit("Mul", name, [data, x], self.values[data] * self.values[x])


def mobilenet_v3() -> onnx.ModelProto:
    """MobileNetV3 small (Howard et al., ICCV 2019), for 224x224 images."""
    b = GateBuilder("mobilenetv3", 3, calibration(IMAGE))
    x = b.hard_swish(b.conv("stem", "input", 16, Window.square(3, 2)))
    plan = (
        (3, 16, 16, True, False, 2), (3, 72, 24, False, False, 2), (3, 88, 24, False, False, 1),
        (5, 96, 40, True, True, 2), (5, 240, 40, True, True, 1), (5, 240, 40, True, True, 1),
        (5, 120, 48, True, True, 1), (5, 144, 48, True, True, 1), (5, 288, 96, True, True, 2),
        (5, 576, 96, True, True, 1), (5, 576, 96, True, True, 1),
    )  # fmt: skip
    for number, (kernel, wide, channels, gated, swish, stride) in enumerate(plan):
        name, before, y = f"block{number}", b.values[x].shape[1], x
        act = b.hard_swish if swish else b.relu
        if wide != before:
            y = act(b.conv(f"{name}.expand", y, wide, Window.square(1), shift=0.5))
        window = Window.square(kernel, stride)
        y = act(b.conv(f"{name}.depthwise", y, wide, window, groups=wide, shift=0.5))
        y = b.excite(f"{name}.gate", y) if gated else y
        y = b.conv(f"{name}.project", y, channels, Window.square(1), gain=0.6)
        x = b.add(f"{name}.add", y, x) if stride == 1 and before == channels else y
    x = b.hard_swish(b.conv("head", x, 576, Window.square(1), shift=0.5))
    x = b.flatten("flatten", b.global_pool("avgpool", x))
    x = b.hard_swish(b.classifier("fc1", x, 1024))
    return b.model(b.classifier("fc2", x, 1000))


# Channels last -----------------------------------------------------------------------------------


class LastBuilder(Builder):
    """Adds layers of images [N, H, W, C] as TensorFlow's exporter writes them."""

    def turned(self, name: str, data: str, perm: Sequence[int]) -> str:
        """A ``Transpose``; gives the name of its output."""
        return self.emit("Transpose", name, [data], self.values[data].transpose(perm), perm=perm)

    def layer(self, name: str, data: str, channels: int, window: Window, gain: float = 1.0) -> str:
        """A convolution between transpositions, and a batch normalization in four pieces."""
        first = self.turned(f"{name}.first", data, TO_IMAGE)
        inputs = self.values[first].shape[1]
        weight = self.rng.standard_normal((channels, inputs, *window.kernel)).astype(np.float32)
        weight *= np.float32(np.sqrt(2.0 / (inputs * window.taps)))
        node = ops.Conv2d(name=name, output=name, data="", weight="", groups=1, **window.steps)
        raw = node.evaluate([self.values[first], weight], UNUSED)
        operands = [first, self.weight(f"{name}.weight", weight)]
        steps = {"kernel_shape": window.kernel, "strides": window.strides, "pads": window.pads}
        x = self.emit("Conv", f"{name}.conv", operands, raw, **steps)
        x = self.turned(f"{name}.last", x, FROM_IMAGE)
        return self._normalized(name, x, gain)

    def _normalized(self, name: str, x: str, gain: float) -> str:
        raw = self.values[x]
        factor, bias = self._spread(raw.transpose(TO_IMAGE), gain, 0.25)
        mean = raw.mean((0, 1, 2))
        for op, part, value in (
            ("Sub", "mean", mean), ("Mul", "factor", factor), ("Add", "bias", bias + mean * factor)
        ):  # fmt: skip
            array = value.astype(np.float32)
            before = self.values[x]
            after = {"Sub": before - array, "Mul": before * array, "Add": before + array}[op]
            constant = self.weight(f"{name}.{part}", array)
            x = self.emit(op, f"{name}.{op.lower()}", [x, constant], after)
        return x

    def pooled(self, name: str, data: str, window: Window) -> str:
        """A ``MaxPool`` between transpositions."""
        x = self.max_pool(f"{name}.pool", self.turned(f"{name}.first", data, TO_IMAGE), window)
        return self.turned(name, x, FROM_IMAGE)


def resnet18_nhwc() -> onnx.ModelProto:
    """ResNet-18 for 224x224 images with their channels last."""
    b = LastBuilder("resnet18-nhwc", 18, photos())
    x = b.relu(b.layer("conv1", "input", 64, Window.square(7, 2)))
    x = b.pooled("maxpool", x, Window.square(3, 2))
    for stage, channels in enumerate((64, 128, 256, 512), start=1):
        for block in range(2):
            name, grows = f"layer{stage}.{block}", b.values[x].shape[-1] != channels
            window = Window.square(3, 2 if grows else 1)
            y = b.relu(b.layer(f"{name}.conv1", x, channels, window))
            y = b.layer(f"{name}.conv2", y, channels, Window.square(3), gain=0.4)
            if grows:
                x = b.layer(f"{name}.downsample", x, channels, Window.square(1, 2), gain=0.8)
            x = b.relu(b.add(f"{name}.add", y, x))
    mean = b.values[x].mean((1, 2))
    x = b.emit("ReduceMean", "avgpool", [x], mean, axes=[1, 2], keepdims=0)
    return b.model(b.classifier("fc", x, 1000))


# Sequences ---------------------------------------------------------------------------------------


def speech_bilstm(hidden: int = 128, classes: int = 32) -> onnx.ModelProto:
    """Two bidirectional LSTM over frames [1, T, C], and a class for each frame."""
    b = OperatorBuilder("speech-bilstm", SEED, speech())
    frames = SPEECH[1]
    x = b.linear("bands", b.transpose("frames", "input", (1, 0, 2)), hidden)
    for number in range(2):
        x = _both_ways(b, f"layer{number}", x, hidden)
        value = np.zeros((frames, len(b.values["input"]), 2 * hidden), np.float32)
        x = b.transpose(f"layer{number}.sides", x, (0, 2, 1, 3))
        sizes = b.constant(f"layer{number}.sizes", np.array([frames, 1, 2 * hidden], np.int64))
        x = b.emit("Reshape", f"layer{number}.joined", [x, sizes], value)
    return b.model(b.linear("classes", b.transpose("rows", x, (1, 0, 2)), classes))


def _both_ways(b: OperatorBuilder, name: str, data: str, hidden: int) -> str:
    """The states [T, 2, N, H] of a bidirectional LSTM."""
    steps, batch, inputs = b.values[data].shape
    shapes = {"W": (2, 4 * hidden, inputs), "R": (2, 4 * hidden, hidden), "B": (2, 8 * hidden)}
    weights = [
        b.constant(
            f"{name}.{part}",
            (b.rng.standard_normal(shape) * (0.1 if part == "B" else shape[-1] ** -0.5))
            .astype(np.float32),
        )
        for part, shape in shapes.items()
    ]  # fmt: skip
    value = np.zeros((steps, 2, batch, hidden), np.float32)
    settings = {"hidden_size": hidden, "direction": "bidirectional"}
    return b.emit("LSTM", name, [data, *weights], value, **settings)


def audio_encoder(sizes: Sizes = AUDIO) -> onnx.ModelProto:
    """An encoder of sounds like Whisper's (Radford et al., 2022): two convolutions of a signal,
    places, blocks that normalize first."""
    b = OperatorBuilder("audio-encoder", SEED, sounds())
    x = "input"
    for number, stride in enumerate((1, 2)):
        x = b.gelu(f"conv{number}.gelu", _signal(b, f"conv{number}", x, sizes.features, stride))
    x = b.transpose("sequence", x, (0, 2, 1))
    places = 0.3 * b.rng.standard_normal((1, sizes.length, sizes.features))
    x = b.add("embedded", x, b.constant("places", places.astype(np.float32)))
    for number in range(sizes.blocks):
        x = b.block(f"block{number}", x, sizes)
    return b.model(b.layer_norm("norm", x))


def _signal(b: OperatorBuilder, name: str, data: str, channels: int, stride: int) -> str:
    """A convolution [N, C, L] by three places."""
    x = b.values[data]
    weight = b.rng.standard_normal((channels, x.shape[1], 3)) * np.sqrt(1 / (3 * x.shape[1]))
    bias = 0.1 * b.rng.standard_normal(channels)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    taps = [padded[:, :, k : k + x.shape[2] : stride] for k in range(3)]
    value = sum(np.einsum("ncl,oc->nol", tap, weight[:, :, k]) for k, tap in enumerate(taps))
    operands = [data, b.weight(f"{name}.weight", weight), b.weight(f"{name}.bias", bias)]
    steps = {"kernel_shape": [3], "strides": [stride], "pads": [1, 1]}
    return b.emit("Conv", name, operands, np.asarray(value) + bias[:, np.newaxis], **steps)


# Quantization ------------------------------------------------------------------------------------


def write_as_left(model: onnx.ModelProto, path: Path, samples: Samples) -> None:
    """Writes what onnxruntime's quantizer makes of a model, all else in floats."""
    quantize_types(model, path, samples, ())


def write_products(model: onnx.ModelProto, path: Path, samples: Samples) -> None:
    """Writes a model of which only products are quantized."""
    quantize_types(model, path, samples, PRODUCTS)
