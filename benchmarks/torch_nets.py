"""Networks of images for ``torch_modules.py``: blocks of torchvision's and timm's shapes.

Each has the operators and the wiring of the network that it is named after, with few channels and
small images.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CLASSES = 10


class Normed(nn.Sequential):
    """A convolution, a batch normalization, an activation."""

    def __init__(
        self, inputs: int, outputs: int, kernel: Any = 3, stride: int = 1,
        activation: type[nn.Module] | None = nn.ReLU, **kwargs: Any,
    ) -> None:  # fmt: skip
        if "padding" not in kwargs:
            kwargs["padding"] = kernel // 2
        convolution = nn.Conv2d(inputs, outputs, kernel, stride, bias=False, **kwargs)
        tail = [activation()] if activation else []
        super().__init__(convolution, nn.BatchNorm2d(outputs), *tail)


class Head(nn.Sequential):
    """A classifier behind the mean over an image."""

    def __init__(self, channels: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


class Basic(nn.Module):
    """ResNet's block of two convolutions; the shortcut is projected where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = Normed(inputs, outputs, stride=stride)
        self.conv2 = Normed(outputs, outputs, activation=None)
        self.down = (
            Normed(inputs, outputs, 1, stride, activation=None) if stride > 1 else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.conv2(self.conv1(x)) + self.down(x), inplace=True)


class Bottleneck(nn.Module):
    """ResNet's block of three convolutions; with groups it is RegNet's and ResNeXt's."""

    def __init__(self, channels: int, inner: int, groups: int = 1, squeeze: bool = False) -> None:
        super().__init__()
        self.conv1 = Normed(channels, inner, 1)
        self.conv2 = Normed(inner, inner, groups=groups)
        self.squeeze = Squeeze(inner, nn.Sigmoid) if squeeze else nn.Identity()
        self.conv3 = Normed(inner, channels, 1, activation=None)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.conv3(self.squeeze(self.conv2(self.conv1(x)))))


def resnet_basic() -> nn.Module:
    stem = [Normed(3, 16, 7, 2), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, Basic(16, 16, 1), Basic(16, 32, 2), Head(32))


def resnet_bottleneck() -> nn.Module:
    return nn.Sequential(Normed(3, 32), Bottleneck(32, 8), Bottleneck(32, 8), Head(32))


def regnet() -> nn.Module:
    blocks = [Bottleneck(32, 32, 4, squeeze=True), Bottleneck(32, 16, 8)]
    return nn.Sequential(Normed(3, 32, stride=2), *blocks, Head(32))


class Squeeze(nn.Module):
    """Squeeze and excite: a factor for each channel, of the means over all channels."""

    def __init__(self, channels: int, gate: type[nn.Module], inner: type[nn.Module] = nn.ReLU):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, channels // 4, 1)
        self.fc2 = nn.Conv2d(channels // 4, channels, 1)
        self.inner, self.gate = inner(), gate()

    def forward(self, x: Tensor) -> Tensor:
        return self.gate(self.fc2(self.inner(self.fc1(self.pool(x))))) * x


class Inverted(nn.Module):
    """An inverted residual: expansion, depthwise convolution, squeeze, projection."""

    def __init__(self, channels: int, kernel: int, activation: type[nn.Module], gate: Any) -> None:
        super().__init__()
        wide = channels * 4
        parts = [
            Normed(channels, wide, 1, activation=activation),
            Normed(wide, wide, kernel, activation=activation, groups=wide),
        ]
        if gate is not None:
            parts.append(Squeeze(wide, gate, activation if activation is nn.SiLU else nn.ReLU))
        self.block = nn.Sequential(*parts, Normed(wide, channels, 1, activation=None))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.block(x)


def mobilenet_v2() -> nn.Module:
    blocks = [Inverted(8, 3, nn.ReLU6, None) for _ in range(2)]
    return nn.Sequential(Normed(3, 8, stride=2, activation=nn.ReLU6), *blocks, Head(8))


def mobilenet_v3() -> nn.Module:
    blocks = [Inverted(16, 5, nn.Hardswish, nn.Hardsigmoid), Inverted(16, 3, nn.Hardswish, None)]
    return nn.Sequential(Normed(3, 16, stride=2, activation=nn.Hardswish), *blocks, Head(16))


def efficientnet() -> nn.Module:
    blocks = [Inverted(16, 3, nn.SiLU, nn.Sigmoid), Inverted(16, 5, nn.SiLU, nn.Sigmoid)]
    return nn.Sequential(Normed(3, 16, stride=2, activation=nn.SiLU), *blocks, Head(16))


class Dense(nn.Module):
    """DenseNet's layers, each of which reads all before it."""

    def __init__(self, channels: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(channels + n * growth), nn.ReLU(inplace=True),
                nn.Conv2d(channels + n * growth, growth, 3, padding=1, bias=False),
            )
            for n in range(layers)
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        return torch.cat(features, 1)


def densenet() -> nn.Module:
    between = [nn.BatchNorm2d(40), nn.ReLU(), nn.Conv2d(40, 20, 1), nn.AvgPool2d(2)]
    return nn.Sequential(Normed(3, 16), Dense(16, 8, 3), *between, Dense(20, 8, 2), Head(36))


class Branches(nn.Module):
    """Inception's block: four branches, joined by channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.one = Normed(channels, 8, 1)
        self.five = nn.Sequential(Normed(channels, 6, 1), Normed(6, 8, 5))
        self.wide = nn.Sequential(
            Normed(channels, 8, 1), Normed(8, 8, (1, 7), padding=(0, 3)),
            Normed(8, 8, (7, 1), padding=(3, 0)),
        )  # fmt: skip
        self.pool = Normed(channels, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.pool(F.avg_pool2d(x, 3, 1, 1))
        return torch.cat([self.one(x), self.five(x), self.wide(x), pooled], 1)


def inception() -> nn.Module:
    return nn.Sequential(Normed(3, 16), Branches(16), nn.MaxPool2d(2), Branches(32), Head(32))


class Shuffle(nn.Module):
    """ShuffleNet V2's block: half of the channels pass, and all are shuffled."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.branch = nn.Sequential(
            Normed(half, half, 1), Normed(half, half, groups=half, activation=None),
            Normed(half, half, 1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, dim=1)
        joined = torch.cat((left, self.branch(right)), dim=1)
        batch, channels, height, width = joined.shape
        pairs = joined.view(batch, 2, channels // 2, height, width)
        return torch.transpose(pairs, 1, 2).contiguous().view(batch, -1, height, width)


def shufflenet() -> nn.Module:
    return nn.Sequential(Normed(3, 24, stride=2), Shuffle(24), Shuffle(24), Head(24))


def vgg() -> nn.Module:
    features = [
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2, ceil_mode=True),
    ]  # fmt: skip
    dense = [nn.Linear(32 * 49, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, CLASSES)]
    return nn.Sequential(*features, nn.AdaptiveAvgPool2d((7, 7)), nn.Flatten(), *dense)


class ChannelsLast(nn.LayerNorm):
    """A layer normalization over the channels of an image."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    """ConvNeXt's block: depthwise convolution, dense layers of channels last, a layer scale."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.dense1, self.dense2 = (
            nn.Linear(channels, 4 * channels),
            nn.Linear(4 * channels, channels),
        )
        self.gamma = nn.Parameter(torch.full((channels,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.gamma * self.dense2(F.gelu(self.dense1(y)))
        return x + y.permute(0, 3, 1, 2)


def convnext() -> nn.Module:
    down = [ChannelsLast(16), nn.Conv2d(16, 32, 2, 2)]
    return nn.Sequential(
        nn.Conv2d(3, 16, 4, 4), ChannelsLast(16), ConvNext(16), *down, ConvNext(32), Head(32)
    )


class Mixer(nn.Module):
    """MLP-Mixer's block: dense layers over tokens, then over features."""

    def __init__(self, tokens: int, features: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.tokens = nn.Sequential(nn.Linear(tokens, 32), nn.GELU(), nn.Linear(32, tokens))
        self.features = nn.Sequential(
            nn.Linear(features, 64), nn.GELU("tanh"), nn.Linear(64, features)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.features(self.norm2(x))


class MixerNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 24, 8, 8)
        self.blocks = nn.Sequential(Mixer(16, 24), Mixer(16, 24))
        self.norm, self.head = nn.LayerNorm(24), nn.Linear(24, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(dim=1))


class Pyramid(nn.Module):
    """A detector: a pyramid of features, boxes decoded from anchors, the best of all levels.

    Returns a dictionary of boxes, scores and labels; overlapping boxes stay.
    """

    def __init__(self, classes: int = 4, best: int = 20) -> None:
        super().__init__()
        self.best, self.classes = best, classes
        self.stages = nn.ModuleList([Normed(3, 16, stride=4), Normed(16, 24, stride=2)])
        self.lateral = nn.ModuleList([nn.Conv2d(16, 16, 1), nn.Conv2d(24, 16, 1)])
        self.scores = nn.Conv2d(16, 3 * classes, 3, padding=1)
        self.boxes = nn.Conv2d(16, 3 * 4, 3, padding=1)
        self.register_buffer("sizes", torch.tensor([[8.0, 8.0], [12.0, 6.0], [6.0, 12.0]]))

    def anchors(self, x: Tensor, stride: int) -> Tensor:
        """Centres and sizes, [places × 3, 4]."""
        height, width = x.shape[-2:]
        rows = (torch.arange(height, device=x.device) + 0.5) * stride
        columns = (torch.arange(width, device=x.device) + 0.5) * stride
        y, x = torch.meshgrid(rows, columns, indexing="ij")
        centres = torch.stack([x, y], -1).reshape(-1, 1, 2).expand(-1, 3, 2)
        return torch.cat([centres, self.sizes.expand_as(centres)], -1).reshape(-1, 4)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        fine = self.stages[0](x)
        coarse = self.stages[1](fine)
        top = self.lateral[1](coarse)
        size = fine.shape[-2:]
        bottom = self.lateral[0](fine) + F.interpolate(top, size=size, mode="nearest")
        levels = [(bottom, 4), (top, 8)]
        scores, boxes = [], []
        for level, stride in levels:
            logits = self.scores(level).permute(0, 2, 3, 1).reshape(len(x), -1, self.classes)
            delta = self.boxes(level).permute(0, 2, 3, 1).reshape(len(x), -1, 4)
            anchors = self.anchors(level, stride)
            centre = anchors[:, :2] + delta[..., :2] * anchors[:, 2:]
            half = anchors[:, 2:] * torch.exp(delta[..., 2:].clamp(max=4)) / 2
            boxes.append(torch.cat([centre - half, centre + half], -1))
            scores.append(logits.sigmoid())
        best, index = torch.cat(scores, 1).flatten(1).topk(self.best, dim=1)
        place = torch.div(index, self.classes, rounding_mode="floor")
        chosen = torch.cat(boxes, 1).gather(1, place[..., None].expand(-1, -1, 4))
        size = max(x.shape[-2:])
        return {"boxes": chosen.clamp(0, size), "scores": best, "labels": index % self.classes}


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = Normed(3, 8), Normed(8, 16)
        self.middle = Normed(16, 32)
        self.up2, self.up1 = (
            nn.ConvTranspose2d(32, 16, 2, 2),
            nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1),
        )
        self.join2, self.join1 = Normed(32, 16), Normed(16, 8)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        b = self.join2(torch.cat([b, self.up2(c)], 1))
        return self.out(self.join1(torch.cat([a, self.up1(b)], 1)))


def generator() -> nn.Module:
    return nn.Sequential(
        nn.Linear(16, 32 * 16), nn.Unflatten(1, (32, 4, 4)), nn.GroupNorm(4, 32),
        nn.LeakyReLU(0.2), nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False),
        nn.InstanceNorm2d(16, affine=True), nn.ELU(), nn.ReflectionPad2d(1),
        nn.Conv2d(16, 8, 3), nn.PReLU(8), nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.ConvTranspose2d(8, 3, 3, 1, 1, groups=1), nn.Tanh(),
    )  # fmt: skip


class SuperResolution(nn.Module):
    """An image of twice the size; what it adds to a bicubic one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 16, 5, padding=2), nn.Conv2d(16, 12, 3, padding=1)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x: Tensor) -> Tensor:
        large = F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
        return (large + self.shuffle(self.conv2(torch.tanh(self.conv1(x))))).clamp(0, 1)


def video() -> nn.Module:
    return nn.Sequential(
        nn.Conv3d(3, 8, (3, 5, 5), stride=(1, 2, 2), padding=(1, 2, 2)), nn.BatchNorm3d(8),
        nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(8, 16, 3, padding=1, groups=2), nn.ReLU(),
        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, CLASSES),
    )  # fmt: skip
