"""Bundled networks of what people bring today: detectors, generators, segmentation, in float."""

from __future__ import annotations

import numpy as np
import onnx

from vdla.compiler.graph.types import Array
from vdla.compiler.graph.window import Window
from vdla.compiler.models.builder import Builder
from vdla.compiler.models.networks import IMAGE, calibration

SCREEN = (1, 4, 84, 84)  # four frames of an Atari game, in grey
NOISE = (1, 100, 1, 1)
SCENE = (1, 3, 256, 256)
SLICE = (1, 3, 128, 128)
NOISE_SEED = 20151119


def noise(shape: tuple[int, ...]) -> Array:
    """Six vectors of normal noise, on which a generator is built and calibrated."""
    rng = np.random.default_rng(NOISE_SEED)
    return rng.standard_normal((6, *shape[1:])).astype(np.float32)


def dqn() -> onnx.ModelProto:
    """The deep Q-network (Mnih et al., Nature 2015): four frames in, values of 18 actions out."""
    b = Builder("dqn", 13, calibration(SCREEN))
    x = b.relu(b.conv("conv1", "input", 32, Window.square(8, 4, 0)))
    x = b.relu(b.conv("conv2", x, 64, Window.square(4, 2, 0)))
    x = b.relu(b.conv("conv3", x, 64, Window.square(3, 1, 0)))
    x = b.relu(b.classifier("fc1", b.flatten("flatten", x), 512))
    return b.model(b.classifier("fc2", x, 18))


def dcgan() -> onnx.ModelProto:
    """DCGAN's generator (Radford et al., ICLR 2016): 100 numbers in, a 64x64 picture out."""
    b = Builder("dcgan", 15, noise(NOISE))
    x = b.relu(b.conv_transpose("project", "input", 512, Window.square(4, 1, 0)))
    for number, channels in enumerate((256, 128, 64), start=1):
        x = b.relu(b.conv_transpose(f"grow{number}", x, channels, Window.square(4, 2, 1)))
    return b.model(
        b.tanh(b.conv_transpose("paint", x, 3, Window.square(4, 2, 1), gain=0.5, shift=0.0))
    )


def mobilenet_v2() -> onnx.ModelProto:
    """MobileNetV2, width 1.0 (Sandler et al., CVPR 2018), for 224x224 images."""
    b = Builder("mobilenetv2", 2, calibration(IMAGE))
    x = b.relu6(b.conv("conv1", "input", 32, Window.square(3, 2)))
    plan = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
            (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
    for stage, (expansion, channels, count, stride) in enumerate(plan, start=1):
        for i in range(count):
            name, step = f"block{stage}.{i}", stride if i == 0 else 1
            x = _inverted(b, name, x, channels, expansion, Window.square(3, step))
    x = b.relu6(b.conv("head", x, 1280, Window.square(1), shift=0.5))
    x = b.flatten("flatten", b.global_pool("avgpool", x))
    return b.model(b.classifier("fc", x, 1000))


def efficientnet_lite0() -> onnx.ModelProto:
    """EfficientNet-Lite0 (Tan and Le, ICML 2019, without gates), for 224x224 images."""
    b = Builder("efficientnet-lite0", 19, calibration(IMAGE))
    x = b.relu6(b.conv("stem", "input", 32, Window.square(3, 2)))
    plan = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
            (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))  # fmt: skip
    for stage, (expansion, channels, count, stride, kernel) in enumerate(plan, start=1):
        for i in range(count):
            name, step = f"block{stage}.{i}", stride if i == 0 else 1
            x = _inverted(b, name, x, channels, expansion, Window.square(kernel, step))
    x = b.relu6(b.conv("head", x, 1280, Window.square(1), shift=0.5))
    x = b.flatten("flatten", b.global_pool("avgpool", x))
    return b.model(b.classifier("fc", x, 1000))


def yolo_nano() -> onnx.ModelProto:
    """A detector like YOLOv5n: backbone, pyramid and neck of SiLU blocks, three heads; 256x256."""
    b = Builder("yolo-nano", 5, calibration(SCENE))
    x = _silu_conv(b, "stem", "input", 16, 3, 2)
    levels = []
    for stage, (channels, count) in enumerate(((32, 1), (64, 2), (128, 3), (256, 1)), start=1):
        x = _silu_conv(b, f"down{stage}", x, channels, 3, 2)
        x = _csp(b, f"csp{stage}", x, channels, count, residual=True)
        levels.append(x)
    _, third, fourth, x = levels
    top = _silu_conv(b, "top", _pyramid(b, "sppf", x, 256), 128, 1)
    x = b.concat("up4.cat", b.upsample("up4", top), fourth)
    middle = _silu_conv(b, "middle", _csp(b, "neck4", x, 128, 1), 64, 1)
    x = b.concat("up3.cat", b.upsample("up3", middle), third)
    small = _csp(b, "neck3", x, 64, 1)
    x = b.concat("down4.cat", _silu_conv(b, "down4.conv", small, 64, 3, 2), middle)
    medium = _csp(b, "head4", x, 128, 1)
    x = b.concat("down5.cat", _silu_conv(b, "down5.conv", medium, 128, 3, 2), top)
    large = _csp(b, "head5", x, 256, 1)
    heads = zip(("small", "medium", "large"), (small, medium, large), strict=True)
    return b.model(*[b.conv(f"detect.{name}", y, 255, Window.square(1)) for name, y in heads])


def unet() -> onnx.ModelProto:
    """A small U-Net (Ronneberger et al., MICCAI 2015): 128x128 pictures, two classes a pixel."""
    b = Builder("unet", 12, calibration(SLICE))
    x, skipped = "input", []
    for level, channels in enumerate((16, 32, 64)):
        x = _double(b, f"down{level}", x, channels)
        skipped.append(x)
        x = b.max_pool(f"pool{level}", x, Window.square(2, 2, 0))
    x = _double(b, "bottom", x, 128)
    for level, skip in reversed(list(enumerate(skipped))):
        channels = b.values[skip].shape[1]
        up = b.conv_transpose(f"up{level}", x, channels, Window.square(2, 2, 0))
        x = _double(b, f"merge{level}", b.concat(f"cat{level}", skip, up), channels)
    return b.model(b.conv("classes", x, 2, Window.square(1)))


# Parts -------------------------------------------------------------------------------------------


def _inverted(b: Builder, name: str, x: str, channels: int, expansion: int, window: Window) -> str:
    """An inverted bottleneck: expand, depthwise, project, and a residual where shapes allow."""
    before = b.values[x].shape[1]
    wide, y = before * expansion, x
    if expansion > 1:
        y = b.relu6(b.conv(f"{name}.expand", y, wide, Window.square(1), shift=0.5))
    y = b.relu6(b.conv(f"{name}.depthwise", y, wide, window, groups=wide, shift=0.5))
    y = b.conv(f"{name}.project", y, channels, Window.square(1), gain=0.6)
    same = before == channels and window.strides == (1, 1)
    return b.add(f"{name}.add", y, x) if same else y


def _silu_conv(b: Builder, name: str, x: str, channels: int, kernel: int, stride: int = 1) -> str:
    """A convolution and SiLU."""
    return b.silu(b.conv(name, x, channels, Window.square(kernel, stride)))


def _csp(b: Builder, name: str, x: str, channels: int, count: int, residual: bool = False) -> str:
    """A cross-stage partial block: bottlenecks on one half of the channels."""
    half = channels // 2
    y = _silu_conv(b, f"{name}.in", x, half, 1)
    rest = _silu_conv(b, f"{name}.rest", x, half, 1)
    for i in range(count):
        inner = _silu_conv(b, f"{name}.{i}.squeeze", y, half, 1)
        inner = _silu_conv(b, f"{name}.{i}.spread", inner, half, 3)
        y = b.add(f"{name}.{i}.add", inner, y) if residual else inner
    return _silu_conv(b, f"{name}.out", b.concat(f"{name}.cat", y, rest), channels, 1)


def _pyramid(b: Builder, name: str, x: str, channels: int) -> str:
    """Spatial pyramid pooling: three max pools in a row, all of them joined."""
    parts = [_silu_conv(b, f"{name}.in", x, channels // 2, 1)]
    for i in range(3):
        parts.append(b.max_pool(f"{name}.pool{i}", parts[-1], Window.square(5)))
    return _silu_conv(b, f"{name}.out", b.concat(f"{name}.cat", *parts), channels, 1)


def _double(b: Builder, name: str, x: str, channels: int) -> str:
    """Two convolutions with ReLUs."""
    x = b.relu(b.conv(f"{name}.conv1", x, channels, Window.square(3)))
    return b.relu(b.conv(f"{name}.conv2", x, channels, Window.square(3)))
