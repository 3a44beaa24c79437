"""Three small networks of PyTorch for the quantizers of others, and their files of floats.

    python benchmarks/foreign_networks.py FOLDER

writes FOLDER/NAME.float.onnx and FOLDER/NAME.npz, an input for each of a few samples. Weights and
samples follow from a seed.

    residual   convolutions with normalization, a depthwise one in a residual block, pools, a layer
    encoder    a block of a transformer: attention of two heads, GELU, normalizations, a layer
    mixed      gates over channels, hard functions, clips, a concatenation, two ways to grow
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

OPSET, SAMPLES, SEED = 17, 4, 7


class Residual(nn.Module):
    """A classifier of images."""

    shape = (1, 3, 16, 16)

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=1, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
        )
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.inner = nn.ReLU()
        self.pointwise = nn.Conv2d(16, 16, 1)
        self.outer = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.wide = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.average = nn.AvgPool2d(2)
        self.whole = nn.AdaptiveAvgPool2d(1)
        self.classes = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = self.outer(x + self.pointwise(self.inner(self.depthwise(x))))
        x = self.whole(self.average(self.wide(self.pool(x))))
        return self.classes(torch.flatten(x, 1))


class Encoder(nn.Module):
    """A classifier of sequences."""

    shape = (1, 16, 32)

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(32), nn.LayerNorm(32)
        self.query, self.key, self.value = (nn.Linear(32, 32) for _ in range(3))
        self.out = nn.Linear(32, 32)
        self.softmax = nn.Softmax(-1)
        self.up, self.gelu, self.down = nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)
        self.classes = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        y = self.before(x)
        heads = [
            part(y).reshape(1, 16, 2, 16).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        ]
        scores = torch.matmul(heads[0], heads[1].transpose(-1, -2)) * 0.25
        y = torch.matmul(self.softmax(scores), heads[2])
        x = x + self.out(y.transpose(1, 2).reshape(1, 16, 32))
        x = x + self.down(self.gelu(self.up(self.between(x))))
        return self.classes(torch.mean(x, 1))


class Mixed(nn.Module):
    """A network from images to images."""

    shape = (1, 3, 16, 16)

    def __init__(self) -> None:
        super().__init__()
        self.first, self.swish = nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.Hardswish()
        self.expand, self.six = nn.Conv2d(16, 32, 1), nn.ReLU6()
        self.depthwise = nn.Conv2d(32, 32, 5, padding=2, groups=32)
        self.whole = nn.AdaptiveAvgPool2d(1)
        self.squeeze, self.relu = nn.Conv2d(32, 8, 1), nn.ReLU()
        self.excite, self.gate = nn.Conv2d(8, 32, 1), nn.Hardsigmoid()
        self.project = nn.Conv2d(32, 16, 1)
        self.left, self.leaky = nn.Conv2d(16, 16, 1), nn.LeakyReLU(0.1)
        self.smooth = nn.AvgPool2d(3, stride=1, padding=1)
        self.down = nn.Conv2d(32, 16, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(16, 16, 2, stride=2)
        self.nearest = nn.Upsample(scale_factor=2, mode="nearest")
        self.last, self.end = nn.Conv2d(16, 4, 3, padding=1), nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        x = self.swish(self.first(x))
        y = self.depthwise(self.six(self.expand(x)))
        y = y * self.gate(self.excite(self.relu(self.squeeze(self.whole(y)))))
        x = x + self.project(y)
        x = torch.cat([self.leaky(self.left(x)), self.smooth(x)], 1)
        x = self.nearest(torch.relu(self.up(self.down(x))))
        return self.end(self.last(x))


NETWORKS = {"residual": Residual, "encoder": Encoder, "mixed": Mixed}


def network(name: str) -> nn.Module:
    """A network with the weights of the seed; normalizations have seen some data."""
    torch.manual_seed(SEED)
    module = NETWORKS[name]().train()
    with torch.no_grad():
        for sample in samples(name):
            module(torch.from_numpy(sample))
    return module.eval()


def samples(name: str) -> Iterator[np.ndarray]:
    """Inputs that a network is calibrated with: noise about a mean for each channel."""
    shape, rng = NETWORKS[name].shape, np.random.default_rng(SEED)
    for _ in range(SAMPLES):
        means = rng.uniform(-1, 1, (*shape[:2], *[1] * (len(shape) - 2)))
        yield (means + rng.standard_normal(shape)).astype(np.float32)


def export(name: str, path: Path) -> None:
    """Writes a network as an ONNX file of floats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network(name),
            (torch.zeros(NETWORKS[name].shape),),
            path,
            opset_version=OPSET,
            input_names=["input"],
            output_names=["output"],
            dynamo=False,
        )


def main() -> None:
    """Writes all files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        export(name, folder / f"{name}.float.onnx")
        np.savez(folder / f"{name}.npz", *samples(name))


if __name__ == "__main__":
    main()
