"""The bundled networks, layer by layer, in float."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from vdla.compiler.graph.types import Array
from vdla.compiler.graph.window import Window
from vdla.compiler.models.builder import Builder, images
from vdla.support.numbers import ceil_div

IMAGE = (1, 3, 224, 224)
CALIBRATION_SEED = 20180713


@dataclass(frozen=True)
class ConvShape:
    """One row of the OSDI'18 paper's Table 2: a ResNet-18 convolution."""

    name: str
    size: int
    inputs: int
    outputs: int
    kernel: int
    stride: int

    @property
    def macs(self) -> int:
        """Multiply-adds for one image."""
        side = ceil_div(self.size, self.stride)
        return side * side * self.inputs * self.outputs * self.kernel * self.kernel


RESNET18_CONVS = (
    ConvShape("C1", 224, 3, 64, 7, 2),
    ConvShape("C2", 56, 64, 64, 3, 1),
    ConvShape("C3", 56, 64, 64, 1, 1),
    ConvShape("C4", 56, 64, 128, 3, 2),
    ConvShape("C5", 56, 64, 128, 1, 2),
    ConvShape("C6", 28, 128, 128, 3, 1),
    ConvShape("C7", 28, 128, 256, 3, 2),
    ConvShape("C8", 28, 128, 256, 1, 2),
    ConvShape("C9", 14, 256, 256, 3, 1),
    ConvShape("C10", 14, 256, 512, 3, 2),
    ConvShape("C11", 14, 256, 512, 1, 2),
    ConvShape("C12", 7, 512, 512, 3, 1),
)


def calibration(shape: tuple[int, ...]) -> Array:
    """The images a network is built and calibrated on: four pictures and two of pure noise."""
    rng = np.random.default_rng(CALIBRATION_SEED)
    normal = rng.standard_normal((1, *shape[1:])).astype(np.float32)
    uniform = rng.uniform(0, 1, (1, *shape[1:])).astype(np.float32)
    return np.concatenate([images(shape, 4, CALIBRATION_SEED), normal, uniform])


def resnet18() -> onnx.ModelProto:
    """ResNet-18 for 224x224 images, as in torchvision."""
    b = Builder("resnet18", 18, calibration(IMAGE))
    x = b.relu(b.conv("conv1", "input", 64, Window.square(7, 2)))
    x = b.max_pool("maxpool", x, Window.square(3, 2))
    for stage, channels in enumerate((64, 128, 256, 512), start=1):
        for block in range(2):
            x = _basic_block(b, f"layer{stage}.{block}", x, channels)
    x = b.flatten("flatten", b.global_pool("avgpool", x))
    return b.model(b.classifier("fc", x, 1000))


def _basic_block(b: Builder, name: str, x: str, channels: int) -> str:
    grows = b.values[x].shape[1] != channels
    stride = 2 if grows else 1
    y = b.relu(b.conv(f"{name}.conv1", x, channels, Window.square(3, stride)))
    y = b.conv(f"{name}.conv2", y, channels, Window.square(3), gain=0.4)
    if grows:
        x = b.conv(f"{name}.downsample", x, channels, Window.square(1, 2), gain=0.8)
    return b.relu(b.add(f"{name}.add", y, x))


def resnet50() -> onnx.ModelProto:
    """ResNet-50 for 224x224 images, as in torchvision (strides in the 3x3 convolutions)."""
    b = Builder("resnet50", 50, calibration(IMAGE)[:1])
    x = b.relu(b.conv("conv1", "input", 64, Window.square(7, 2)))
    x = b.max_pool("maxpool", x, Window.square(3, 2))
    for stage, (channels, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), start=1):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 1 else 1
            x = _bottleneck(b, f"layer{stage}.{block}", x, channels, stride)
    x = b.flatten("flatten", b.global_pool("avgpool", x))
    return b.model(b.classifier("fc", x, 1000))


def _bottleneck(b: Builder, name: str, x: str, channels: int, stride: int) -> str:
    y = b.relu(b.conv(f"{name}.conv1", x, channels, Window.square(1)))
    y = b.relu(b.conv(f"{name}.conv2", y, channels, Window.square(3, stride)))
    y = b.conv(f"{name}.conv3", y, 4 * channels, Window.square(1), gain=0.4)
    if b.values[x].shape[1] != 4 * channels:
        x = b.conv(f"{name}.downsample", x, 4 * channels, Window.square(1, stride), gain=0.8)
    return b.relu(b.add(f"{name}.add", y, x))


def mobilenet() -> onnx.ModelProto:
    """MobileNet v1, width 1.0, for 224x224 images."""
    b = Builder("mobilenet", 1, calibration(IMAGE))
    x = b.relu6(b.conv("conv1", "input", 32, Window.square(3, 2)))
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
    plan += [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
    for i, (channels, stride) in enumerate(plan, start=1):
        groups = b.values[x].shape[1]
        window = Window.square(3, stride)
        x = b.relu6(b.conv(f"dw{i}", x, groups, window, groups=groups, shift=0.5))
        x = b.relu6(b.conv(f"pw{i}", x, channels, Window.square(1), shift=0.5))
    x = b.flatten("flatten", b.global_pool("avgpool", x))
    return b.model(b.classifier("fc", x, 1000))


def single_conv(shape: ConvShape) -> onnx.ModelProto:
    """One convolution with bias and Relu."""
    picture = images((1, shape.inputs, shape.size, shape.size), 2, CALIBRATION_SEED)
    b = Builder(shape.name, int(shape.name[1:]), picture)
    window = Window.square(shape.kernel, shape.stride)
    return b.model(b.relu(b.conv("conv", "input", shape.outputs, window)))
